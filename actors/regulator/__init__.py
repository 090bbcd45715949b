"""The regulator: a slow feedback loop that alone may change the router's weights, a little at a time, within bounds.

The router decides by weighted scores how to answer an exchange: its *mode*, such as RESPOND or CLARIFY. Once a day, for
each agent, the regulator looks at the last day's routing decisions (at least ten), and names what is wrong, each fault
as a *pressure* with a severity (``pressures``). It corrects the worst one by moving one weight a little: by .05 times
the severity, at most by .02, within the hard bounds of ``schemas.vocabulary.regulator.BOUNDS``. The change is on
*trial*: two days later the same metric must be below .9 of its earlier value, or the change is undone. If the metric
has risen, the next change of that weight is half as large. At least two days lie between two changes of a weight, and
all changes of a day, reverts included, add up to .02 at most.

The regulator only emits events. Routers apply them live, in the log's order (``actors.router.regulator_offsets``), and
record in every decision the weights that it was made with. From there the regulator knows them.

``decision_window`` counts decisions, ``pressures`` names what is wrong and which weights correct it, ``trial_outcome``
judges adjustments on trial, ``weight_changes`` chooses the one change of a cycle, ``control_loop`` puts a cycle
together, ``agent_record`` holds what is kept of an agent, ``decider`` the state.
"""

from actors.regulator.decider import State, decide, evolve
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
    initial=State,
    decide=decide,
    evolve=evolve,
    in_background=True,
)
