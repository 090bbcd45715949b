"""The monitor: whether an agent's modes stay in their healthy shares. It watches, and moves nothing.

Over the latest two hundred decisions of a day it takes each mode's share, the shares of ambiguous decisions, of
misroutes and of missed ACT, and how evenly the modes are spread, and reports what leaves its healthy range, raises a
red flag or comes back: on a change, with hysteresis, from thirty decisions on.

A decision is the first choice of an exchange, counted as ACT where an ACT loop followed, else as the mode that was
answered in: of the choices after a loop none can be ACT, and a share of ACT could not be told.

``window`` keeps the decisions, ``judging`` the conditions, ``settings`` the ranges, ``decider`` the state.

Source: the deterministic mode router of the cognitive architecture document, "Mode Entropy Monitoring".
"""

from actors.monitor.decider import State, decide, evolve, initial
from actors.monitor.settings import MonitorSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.router import FeedbackObserved, ModeSelected

ACTOR: Actor[State] = Actor(
    name="monitor",
    scope=Scope.AGENT,
    consumes=(ModeSelected, FeedbackObserved),
    state_type=State,
    settings_type=MonitorSettings,
    initial=initial,
    decide=decide,
    evolve=evolve,
)

__all__ = ["ACTOR"]
