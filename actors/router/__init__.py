"""The router: selects the mode an exchange is answered in, by arithmetic on recorded signals.

Decides one ``router.mode_selected`` for every input that reflex has passed: RESPOND, CLARIFY, ACKNOWLEDGE or IGNORE as
terminal mode, or ACT first. Consumes ``input.received`` (the text), ``reflex.passed`` (the go-ahead) and
``response.emitted`` (what was answered, which makes the next exchange's context). No model is asked.

Source: the deterministic mode router of the cognitive architecture document, with its contradictions settled as the
design's page on subsystems says. ``signals`` reads texts, ``scoring`` holds the formula, ``settings`` its numbers,
``selection`` puts them together, ``decider`` keeps the state.
"""

from actors.router.decider import State, decide, evolve, initial
from actors.router.settings import RouterSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import RouterConfigured, RouterFailed

ACTOR: Actor[State] = Actor(
    name="router",
    scope=Scope.SESSION,
    consumes=(InputReceived, ReflexPassed, ResponseEmitted),
    state_type=State,
    settings_type=RouterSettings,
    initial=initial,
    decide=decide,
    evolve=evolve,
    configured=RouterConfigured,
    failed=RouterFailed,
)

__all__ = ["ACTOR"]
