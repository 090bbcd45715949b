"""Reflection: while an agent is idle, asks a strong model for a second opinion on how its inputs were routed.

Such a decision chooses how to answer (a *mode*, such as RESPOND or CLARIFY) by *signals*, numbers that the router reads
from the text and from memory. Reflection only advises: it reports which decisions were ambiguous, and changes no
setting. If enough opinions disagree, its report calls that a *pressure*, and the regulator may change a weight of the
router. The model sees numbers and signals, never a person's text, and no exchange waits for it.

==========================  ==========================================================================================
safeguard                   an opinion that fails it is ignored, and the reason recorded
==========================  ==========================================================================================
known mode                  the suggested mode had a score, else ``invalid``
confidence                  the model's confidence is above .70, else ``low_confidence``
the person's reaction       a satisfied person outweighs a disagreement: ``user_satisfied``
causality                   the named dimension (a way to be ambiguous, such as in intent or in tone) shows in the
                            decision's signals, else ``dimension_without_signal``
==========================  ==========================================================================================

The last two apply to disagreements alone, since an opinion that agrees claims no fault. If the person shows
satisfaction only afterwards, the disagreement is removed from the window again. There is a pressure only if, over 7
days, enough opinions count and more than 25% of them disagree.

``sampling``          which decisions are reviewed
``opinion_call``      the request to the model, and its answer
``causality_check``   which signals support a dimension
``opinion_counting``  which opinions count, and what follows from those of the window
"""

from actors.reflection.decider import State, decide, evolve, reconfigured
from actors.reflection.settings import ReflectionSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import FeedbackObserved, ModeSelected

ACTOR: Actor[State] = Actor(
    name="reflection",
    scope=Scope.AGENT,
    consumes=(InputReceived, ModeSelected, FeedbackObserved, ResponseEmitted, ClockFired, LlmCompleted, LlmFailed),
    state_type=State,
    settings_type=ReflectionSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    reconfigure=reconfigured,
    in_background=True,
)
