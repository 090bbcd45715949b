"""Which deadlines are pending, and which is due first. Pure: only the shell that sleeps knows the time."""

from collections.abc import Iterable

import msgspec

from actors.clock.schedule import Schedule
from actors.clock.settings import ClockSettings
from schemas.actor import Emission, Message, Timer, settings_of
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.persistent import Map
from schemas.vocabulary.clock import ClockConfigured, ClockFired
from schemas.vocabulary.responder import ResponseEmitted

FIELD = "deadline_after_ms"
"""The field by which any event sets a deadline for its exchange."""

SETTERS: tuple[type[Event], ...] = tuple(
    entry.event for entry in CATALOGUE.values() if FIELD in entry.event.__struct_fields__
)
"""Every event type that can set a deadline."""

_NS_PER_MS = 1_000_000


class Deadline(msgspec.Struct, frozen=True, gc=False):
    """What is owed at ``due_ns`` (Unix nanoseconds), because of message ``cause`` on the subject ``set_by``."""

    due_ns: int
    cause: str
    set_by: str
    agent: str
    session: str


class ClockState(msgspec.Struct, frozen=True, gc=False):
    """The pending deadlines: by exchange, at most one of each subject; and in order."""

    settings: ClockSettings = ClockSettings()
    pending: Map[str, tuple[Deadline, ...]] = Map()
    schedule: Schedule = Schedule()


def decide(state: ClockState, message: Message) -> Iterable[Event]:
    """No message makes the clock speak: only time does."""
    return ()


def evolve(state: ClockState, message: Message) -> ClockState:
    """Fold a message: one with a deadline sets it, an end of an exchange settles all of its deadlines."""
    event = message.event
    if isinstance(event, ResponseEmitted):
        return _settle(state, message.exchange)
    if isinstance(event, ClockFired):
        return _settle(state, message.exchange, event.set_by)
    if isinstance(event, ClockConfigured):
        return ClockState(settings_of(event, ClockSettings), state.pending, state.schedule)
    after_ms = getattr(event, FIELD, None)
    # Without an exchange there is nothing that a deadline could end, nor anything that could settle it.
    if after_ms is None or not message.exchange:
        return state
    return _set(state, message, message.time_ns + after_ms * _NS_PER_MS)


def timer(state: ClockState) -> Timer | None:
    """Return the earliest deadline as the event to append when it is due; ties go by the id of their cause."""
    first = state.schedule.first()
    if first is None:
        return None
    due_ns, cause, exchange = first
    deadline = next(each for each in state.pending[exchange] if each.cause == cause)
    fired = ClockFired(set_by=deadline.set_by, due_ns=due_ns)
    return Timer(due_ns, cause, Emission(fired, deadline.agent, deadline.session, exchange))


def _set(state: ClockState, message: Message, due_ns: int) -> ClockState:
    set_by = topic_of(message.event)
    earlier = state.pending.get(message.exchange, ())
    for each in earlier:
        if each.set_by == set_by:
            # A duplicate of an input does not postpone the end that was promised with the first.
            return state
    deadline = Deadline(due_ns, message.id, set_by, message.agent, message.session)
    pending = state.pending.set(message.exchange, (*earlier, deadline))
    return ClockState(state.settings, pending, state.schedule.add((due_ns, message.id, message.exchange)))


def _settle(state: ClockState, exchange: str, set_by: str | None = None) -> ClockState:
    """Drop an exchange's deadlines, or the one that ``set_by`` names."""
    kept: tuple[Deadline, ...] = ()
    schedule = state.schedule
    for deadline in state.pending.get(exchange, ()):
        if set_by is None or deadline.set_by == set_by:
            schedule = schedule.remove((deadline.due_ns, deadline.cause, exchange))
        else:
            kept = (*kept, deadline)
    if schedule is state.schedule:
        return state
    pending = state.pending.set(exchange, kept) if kept else state.pending.delete(exchange)
    return ClockState(state.settings, pending, schedule)
