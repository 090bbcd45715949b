"""The clock: turns the passing of time into events, so that no decision needs to know the time.

No message makes the clock emit an event. It folds two fields that any event may carry, both counted from the time at
which the server stored the event:

- ``deadline_after_ms`` sets a deadline for the event's exchange; ``response.emitted`` removes it. A repeated event does
  not postpone it.
- ``wake_after_ms`` sets the timer that the event's owner has for this agent and session. There is only one: a later
  event replaces it, and 0 cancels it.

The shell sleeps until the earliest time is due, then appends ``clock.fired``, whose cause is the message that set the
time and whose ``set_by`` is that message's public subject. A deadline fires in its exchange, which the responder then
ends. A timer fires with agent and session but without an exchange, so that it can end none; its owner knows it by
``set_by``.

No event carries both fields. The id of ``clock.fired`` is made from its cause, so the two would share one id, and the
second would be dropped as a duplicate.
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
    in_background=True,
)
