"""Reflection: while an agent is idle, a strong model looks again at how its inputs were routed (source M).

A consultant, no authority: it says where decisions were ambiguous, and sets nothing. What follows from a pressure is
the regulator's. It sees numbers and signals, never what a person said, and nothing waits for it.

==========================  ==========================================================================================
safeguard                   an opinion that fails it is ignored, and says why
==========================  ==========================================================================================
confidence                  the model is surer than .70, else ``low_confidence``
the person's word           a person who was content outweighs a disagreement: ``user_satisfied``
causality                   the named dimension shows in the signals, else ``dimension_without_signal``
what was offered            the suggested mode had a score, else ``invalid``
a sustained pattern         pressure only where, over 7 days, enough opinions count and more than 25% of them disagree
==========================  ==========================================================================================

The second and third are asked of disagreements alone: an opinion that agrees claims no fault. A person's content that
is heard after the look back takes the disagreement out of the window again.

``sampling``  which decisions are looked at     ``asking``   the question and its answer
``judging``   safeguards, and the window        ``causes``   which signals bear a dimension out
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
    consumes=(
        InputReceived,
        ModeSelected,
        FeedbackObserved,
        ResponseEmitted,
        ClockFired,
        LlmCompleted,
        LlmFailed,
    ),
    state_type=State,
    settings_type=ReflectionSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    reconfigure=reconfigured,
)

__all__ = ["ACTOR"]
