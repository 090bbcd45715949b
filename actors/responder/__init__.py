"""The responder: the only writer of an exchange's end, exactly one ``response.emitted`` for each accepted input.

Decides from ``input.received`` (opens the exchange), the verdicts of the stages (``reflex.blocked``,
``router.mode_selected``), their failures (``reflex.failed``, ``router.failed``: fail closed) and ``clock.fired``
(the deadline). The first verdict ends an exchange; everything later about it, and every repeated input, is
ignored. ``reflex.passed`` only tells which stage was silent when a deadline passes. Answers come from the
composer, which needs no language model and says that there is none.
"""

from actors.responder.decider import NEXT_STAGE, VERDICTS, ResponderState, decide, evolve
from actors.responder.settings import ResponderSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponderConfigured, ResponderFailed

ACTOR = Actor(
    name="responder",
    scope=Scope.SESSION,
    consumes=tuple(dict.fromkeys((InputReceived, *NEXT_STAGE, *VERDICTS))),
    state_type=ResponderState,
    settings_type=ResponderSettings,
    initial=ResponderState,
    decide=decide,
    evolve=evolve,
    configured=ResponderConfigured,
    failed=ResponderFailed,
)
