"""The monitor: whether the shares of an agent's modes stay healthy. It reports, and changes nothing.

A mode is how an exchange is answered: in substance (RESPOND), by asking back (CLARIFY), after looking things up (ACT),
by a brief word (ACKNOWLEDGE), or not at all (IGNORE). The router decides that. A misroute is a decision that the next
input shows to be wrong; a missed ACT is one kind. Over the latest two hundred decisions of a day the monitor computes
each mode's share; the shares of ambiguous decisions, of misroutes and of missed ACT; and how evenly the modes are
spread. It reports each measure that leaves its healthy range, reaches a red flag (a limit far outside that range), or
comes back: only on a change, with hysteresis, and only after thirty decisions.

A decision is the first choice of an exchange. It counts as ACT if an ACT loop followed, else as the mode of the answer.
The choice after a loop cannot be ACT; counting it would make the share of ACT too low.

``decision_window`` keeps the decisions, ``hysteresis`` when a share counts as unhealthy, ``settings`` the ranges,
``decider`` the state.
"""

from actors.monitor.decider import State, decide, evolve
from actors.monitor.settings import MonitorSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.router import FeedbackObserved, ModeSelected

ACTOR: Actor[State] = Actor(
    name="monitor",
    scope=Scope.AGENT,
    consumes=(ModeSelected, FeedbackObserved),
    state_type=State,
    settings_type=MonitorSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    in_background=True,
)
