"""The regulator: the single authority over the router's weights, which it corrects slowly and within bounds.

Once a day and an agent it looks at the last day's routing decisions (ten at least), names what is wrong
(``pressures``), and answers the worst of it by moving one weight a little: by .05 times the severity, by .02 at most,
within the hard bounds of ``schemas.vocabulary.regulator.BOUNDS``. Two days later the same measure must have fallen
below .9 of what it was, or the change is undone; where it has risen, the next change of that weight is half as large.
Between two changes of a weight lie two days, and all changes of a day come to .02 at most, reverts included.

It writes nothing but its events. Routers take them up live and in order (``actors.router.overlay``), and record the
weights that they decide with in every decision, from where the regulator knows them.

``window`` counts decisions, ``pressures`` names what is wrong and which weight answers it, ``loop`` holds the trials
and every limit on a change, ``settings`` the numbers, ``decider`` the state.

Source: the deterministic mode router of the cognitive architecture document, "Routing Stability Regulator" and "Single
Authority for Weight Mutation", with its contradictions settled as the design's page on subsystems says.
"""

from actors.regulator.decider import State, decide, evolve, initial
from actors.regulator.settings import RegulatorSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.reflection import ReflectionConcluded
from schemas.vocabulary.router import FeedbackObserved, ModeSelected

ACTOR: Actor[State] = Actor(
    name="regulator",
    scope=Scope.AGENT,
    consumes=(ModeSelected, FeedbackObserved, ReflectionConcluded, ClockFired),
    state_type=State,
    settings_type=RegulatorSettings,
    initial=initial,
    decide=decide,
    evolve=evolve,
)

__all__ = ["ACTOR"]
