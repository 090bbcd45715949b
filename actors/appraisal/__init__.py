"""Appraisal: turns an input into recorded numbers, once. All later stages are plain arithmetic on these numbers.

All model inference on inputs happens here; so everything downstream replays bit for bit. From ``input.received`` it
computes the topic among those of the session; the trust in the text and in each layer (truth, indeterminacy,
falsehood); affect (how pleasant and how exciting the text is), novelty and uncertainty; the risks of what it asks for
(harm, a change of the system's own rules); and the action it proposes. The event names the models that the numbers come
from. It also carries the text's embedding, so that folding a log needs no model and gives the same state on every
machine.

If a language model is to be asked, it judges the parts of an input that the local numbers leave open (``trust.gate``).
``appraisal.judgement_requested`` asks it; ``appraisal.judged`` records the result, and how much of the falsehood that
counts comes from the model. A model can only raise falsehood; with an unusable answer, the local numbers stand.

A model's answer to a person is turned into numbers before anybody reads it (``appraisal.answer_appraised``): how well
it addresses the question, how far it drifts from all that came before it, and which biases its words show. The request
says what the model was given, and whether guardrails will judge the answer.
"""

from actors.appraisal.answer_scores import missing_model, models_of
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
