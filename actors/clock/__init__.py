"""The clock: turns the passing of time into events, so that no decision needs to know the time.

Decides nothing from messages. It folds two fields that any event of the catalogue may carry, counted from the time the
server stored it:

- ``deadline_after_ms`` sets a deadline for the event's exchange, which ``response.emitted`` settles. A repeated event
  does not postpone it.
- ``wake_after_ms`` sets a timer of the event's owner for its agent and session, of which there is one: the latest event
  sets it anew, and 0 cancels it.

What comes due is appended as ``clock.fired``, caused by the message that set it and naming its subject: the shell
sleeps until then. A deadline is fired in its exchange, which the responder ends. A timer is fired with agent and
session but without an exchange, so that it can end none: its owner knows it by ``set_by``.

No event carries both fields: what it set would be fired under one id, which is made from the cause.
"""

from actors.clock.decider import SETTERS, ClockState, decide, evolve, timer
from actors.clock.settings import ClockSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.responder import ResponseEmitted

ACTOR = Actor(
    name="clock",
    scope=Scope.GLOBAL,
    consumes=(*SETTERS, ResponseEmitted),
    state_type=ClockState,
    settings_type=ClockSettings,
    initial=ClockState,
    decide=decide,
    evolve=evolve,
    timer=timer,
)
