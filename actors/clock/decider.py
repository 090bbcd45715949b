"""Which deadlines and timers are pending, and which is due first. Pure: only the shell knows the time."""

from collections.abc import Iterable, Mapping

import msgspec

from actors.clock.schedule import Schedule
from actors.clock.settings import ClockSettings
from schemas.actor import Emission, Message, Timer
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.persistent import Map
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.responder import ResponseEmitted

DEADLINE = "deadline_after_ms"
"""The field by which any event sets a deadline for its exchange."""

WAKE = "wake_after_ms"
"""The field by which any event sets its owner's timer for its agent and session; 0 cancels it."""

SETTERS: tuple[type[Event], ...] = tuple(
    entry.event for entry in CATALOGUE.values() if {DEADLINE, WAKE} & {*entry.event.__struct_fields__}
)
"""Every event type that can set a deadline or a timer."""

_OWNERS: Mapping[str, str] = {
    topic: entry.owner for topic, entry in CATALOGUE.items() if WAKE in entry.event.__struct_fields__
}
"""Public subject of an event that sets timers -> whose timer."""

_NS_PER_MS = 1_000_000


class Deadline(msgspec.Struct, frozen=True, gc=False):
    """A deadline or timer, due at ``due_ns`` (Unix nanoseconds).

    ``cause`` is the id of the message that set it, ``set_by`` that message's public subject.
    """

    due_ns: int
    cause: str
    set_by: str
    agent: str
    session: str


class ClockState(msgspec.Struct, frozen=True, gc=False):
    """All pending deadlines and timers, and the order in which they are due.

    ``pending`` holds the deadlines by exchange, at most one of each ``set_by``; ``schedule`` orders them. ``wakes``
    holds the timers by owner, agent and session; ``wake_schedule`` orders them.
    """

    settings: ClockSettings = ClockSettings()
    pending: Map[str, tuple[Deadline, ...]] = Map()
    schedule: Schedule = Schedule()
    wakes: Map[str, Deadline] = Map()
    wake_schedule: Schedule = Schedule()


def decide(state: ClockState, message: Message) -> Iterable[Event]:
    """Return nothing: the clock emits events when time passes (see ``timer``), never because of a message."""
    return ()


def evolve(state: ClockState, message: Message) -> ClockState:
    """Fold a message: set a deadline, or drop those of an exchange that ended; set, replace or cancel a timer."""
    event = message.event
    if isinstance(event, ResponseEmitted):
        return _without_deadlines(state, message.exchange)
    if isinstance(event, ClockFired):
        return (
            _without_deadlines(state, message.exchange, event.set_by)
            if message.exchange
            else _without_fired_timer(state, message, event)
        )
    wake_after_ms = getattr(event, WAKE, None)
    if wake_after_ms is not None:
        return _with_timer(state, message, wake_after_ms)
    after_ms = getattr(event, DEADLINE, None)
    # Without an exchange there is nothing that a deadline could end, and no end that would remove it.
    if after_ms is None or not message.exchange:
        return state
    return _with_deadline(state, message, message.time_ns + after_ms * _NS_PER_MS)


def timer(state: ClockState) -> Timer | None:
    """Return the earliest time and the event to append then. Of equal times, the lowest id of a cause comes first."""
    deadline, pending_timer = state.schedule.first(), state.wake_schedule.first()
    if pending_timer is not None and (deadline is None or pending_timer[:2] < deadline[:2]):
        return _timer_of(state.wakes[pending_timer[2]], "")
    if deadline is None:
        return None
    _, cause, exchange = deadline
    return _timer_of(next(each for each in state.pending[exchange] if each.cause == cause), exchange)


def _timer_of(deadline: Deadline, exchange: str) -> Timer:
    fired = ClockFired(set_by=deadline.set_by, due_ns=deadline.due_ns)
    return Timer(deadline.due_ns, deadline.cause, Emission(fired, deadline.agent, deadline.session, exchange))


def _with_deadline(state: ClockState, message: Message, due_ns: int) -> ClockState:
    set_by = topic_of(message.event)
    earlier = state.pending.get(message.exchange, ())
    for each in earlier:
        if each.set_by == set_by:
            # A duplicate of an input does not postpone the deadline that the first one set.
            return state
    deadline = Deadline(due_ns, message.id, set_by, message.agent, message.session)
    pending = state.pending.set(message.exchange, (*earlier, deadline))
    schedule = state.schedule.add((due_ns, message.id, message.exchange))
    return ClockState(state.settings, pending, schedule, state.wakes, state.wake_schedule)


def _without_deadlines(state: ClockState, exchange: str, set_by: str | None = None) -> ClockState:
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
    return ClockState(state.settings, pending, schedule, state.wakes, state.wake_schedule)


def _with_timer(state: ClockState, message: Message, after_ms: int) -> ClockState:
    """Set a timer in place of the earlier one of the same owner, agent and session."""
    set_by = topic_of(message.event)
    key = _timer_key(set_by, message)
    state = _without_timer(state, key)
    if after_ms == 0:
        return state
    due_ns = message.time_ns + after_ms * _NS_PER_MS
    wakes = state.wakes.set(key, Deadline(due_ns, message.id, set_by, message.agent, message.session))
    wake_schedule = state.wake_schedule.add((due_ns, message.id, key))
    return ClockState(state.settings, state.pending, state.schedule, wakes, wake_schedule)


def _without_fired_timer(state: ClockState, message: Message, event: ClockFired) -> ClockState:
    if event.set_by not in _OWNERS:
        return state
    key = _timer_key(event.set_by, message)
    pending_timer = state.wakes.get(key)
    return state if pending_timer is None or pending_timer.due_ns != event.due_ns else _without_timer(state, key)


def _without_timer(state: ClockState, key: str) -> ClockState:
    pending_timer = state.wakes.get(key)
    if pending_timer is None:
        return state
    wake_schedule = state.wake_schedule.remove((pending_timer.due_ns, pending_timer.cause, key))
    return ClockState(state.settings, state.pending, state.schedule, state.wakes.delete(key), wake_schedule)


def _timer_key(set_by: str, message: Message) -> str:
    return f"{_OWNERS[set_by]}\n{message.session_key}"
