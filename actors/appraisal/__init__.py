"""Appraisal, the senses: turns an input into recorded numbers, once; all later stages are plain arithmetic on them.

It decides from ``input.received``: the topic among those of the session, the trust in the text and in each layer
(source C: truth, indeterminacy, falsehood), how the text feels, how new and how uncertain it is, what it could
violate, and what a thought about it would do. The event names the models that spoke. It carries the text's embedding,
so that folding a log needs no model and gives the same state wherever it is done.

Where a language model is set to be asked, it judges the parts of an input that the local numbers leave open
(``trust.gate``): ``appraisal.judgement_requested`` asks, ``appraisal.judged`` says what came of it, and how much of the
falsehood that counts is the model's. It raises falsehood only; what says nothing usable leaves the local numbers.

A model's answer is turned into numbers before anybody reads it (``appraisal.answer_appraised``): how well it addresses
what was asked, how far it strays from all that came before it, and the biases that its words show. The request says
what the model was given, and whether anybody will judge the answer.
"""

from actors.appraisal.answers import missing_model, models_of
from actors.appraisal.decider import AppraisalState, decide, evolve, warm
from actors.appraisal.settings import AppraisalSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.guardrails import AppraisalRequested
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.reflex import ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested

ACTOR = Actor(
    name="appraisal",
    scope=Scope.SESSION,
    consumes=(
        InputReceived,
        ResponseRequested,
        LlmCompleted,
        ReflexAnswerPassed,
        LlmFailed,
        ClockFired,
        AppraisalRequested,
        ResponseEmitted,
        ForgetOrdered,
        AllowanceRecorded,
        AllowanceWithdrawn,
    ),
    state_type=AppraisalState,
    settings_type=AppraisalSettings,
    initial=AppraisalState,
    decide=decide,
    evolve=evolve,
    models=models_of,
    missing_model=missing_model,
    warm=warm,
)
