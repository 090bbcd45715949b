"""Passed deadlines and timers, as events. Owner: ``clock``."""

from schemas.actor import Scope
from schemas.entry import Entry, own_entries, own_events
from schemas.event import Event


class ClockFired(Event, frozen=True, kw_only=True, tag="forged_id.clock.fired"):
    """A deadline passed before its exchange ended, or a timer that an actor had set for a session went off.

    ``set_by`` is the public subject of the event that set it, ``due_ns`` when it was due (Unix nanoseconds). A deadline
    carries its exchange; a session's timer carries none.
    """

    set_by: str
    due_ns: int


ClockConfigured, ClockFailed = own_events("clock")

ENTRIES = (
    Entry(
        owner="clock",
        scope=Scope.SESSION,
        meaning="A deadline passed and nothing had settled it.",
        sample=ClockFired(set_by="forged_id.input.received", due_ns=1_700_000_060_000_000_000),
        spontaneous=True,
    ),
    *own_entries(
        ClockConfigured,
        ClockFailed,
        owner="clock",
        scope=Scope.GLOBAL,
        failed_scope=Scope.SESSION,
        then="a deadline or timer that it asks for is not set",
    ),
)
