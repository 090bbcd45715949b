"""The router: selects the mode an exchange is answered in, by arithmetic on recorded signals.

Decides one ``router.mode_selected`` for every input that the arbiter has escalated: RESPOND, CLARIFY, ACKNOWLEDGE or
IGNORE as terminal mode, or ACT first. Consumes ``input.received`` (the text), ``appraisal.completed`` (its topic),
``arbiter.escalated`` (the go-ahead) and ``response.emitted`` (what was answered, which makes the next exchange's
context). No model is asked.

Source: the deterministic mode router of the cognitive architecture document, with its contradictions settled as the
design's page on subsystems says. ``signals`` reads texts, ``scoring`` holds the formula, ``settings`` its numbers,
``selection`` puts them together, ``decider`` keeps the state.

Behaviour 2: decides on ``arbiter.escalated`` instead of ``reflex.passed``, and takes the topic from the appraisal.
"""

from actors.router.decider import State, decide, evolve, initial
from actors.router.settings import RouterSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import RouterConfigured, RouterFailed

ACTOR: Actor[State] = Actor(
    name="router",
    scope=Scope.SESSION,
    consumes=(InputReceived, AppraisalCompleted, ArbiterEscalated, ResponseEmitted),
    state_type=State,
    settings_type=RouterSettings,
    initial=initial,
    decide=decide,
    evolve=evolve,
    configured=RouterConfigured,
    failed=RouterFailed,
    behaviour=2,
)

__all__ = ["ACTOR"]
