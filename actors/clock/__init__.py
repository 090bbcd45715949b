"""The clock: turns the passing of time into events, so that no decision needs to know the time.

Decides nothing from messages. It folds every event that carries ``deadline_after_ms`` (today
``input.received``) into a pending deadline of that event's exchange, counted from the time the server
stored it, and drops it at the exchange's ``response.emitted``. A deadline that comes due unsettled is
appended as ``clock.fired``, caused by the message that set it: the shell sleeps until the timer says.
"""

from actors.clock.decider import SETTERS, ClockState, decide, evolve, timer
from actors.clock.settings import ClockSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.clock import ClockConfigured, ClockFailed
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
    configured=ClockConfigured,
    failed=ClockFailed,
    timer=timer,
)
