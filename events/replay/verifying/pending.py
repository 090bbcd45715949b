"""Decisions and timers still pending at a log's end, and whether they are overdue. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from events.codec import Recorded
from events.routes import WHOLE
from events.view import View
from schemas.event import topic_of
from schemas.subjects import split_stored

OVERDUE_S = 10
"""Seconds of a log after which what is owed is missed. Actors decide within milliseconds, under load within some
hundred; but a lease whose holder was killed lasts for 3 seconds, and the next holder reads up first."""

LIVELY_S = 5
"""Different seconds of which messages must be decided elsewhere meanwhile: however long a set is down, it adds none."""

_SECOND_NS = 1_000_000_000


class Pending(msgspec.Struct, frozen=True):
    """What an actor owed for longest where the log ended: the decision of a message that leads to an event, or a timer.

    Of a message, ``seq``, ``id``, ``topic``, ``exchange`` and ``time_ns`` (server time, Unix nanoseconds) are its own.
    Of a timer, they are the last folded message's sequence, the id of what set it, the owed event's topic and exchange,
    and when it was due. ``since_ns`` is when it became next: then, or with the last event of its partition.
    ``elsewhere_s`` counts the seconds since then of which messages were decided elsewhere, up to ``LIVELY_S``: by other
    partitions of the actor, or, where it has but one, by any actor.
    """

    actor: str
    partition: str
    seq: int
    id: str
    topic: str
    exchange: str
    time_ns: int
    since_ns: int
    is_timer: bool = False
    elsewhere_s: int = 0

    def is_overdue(self, end_ns: int) -> bool:
        """Whether a log that ends at ``end_ns`` went on for longer without it than a living actor takes.

        Nothing proves that it was recorded and lost, though: its partition alone may have stood still for as long.
        """
        return end_ns - self.since_ns > OVERDUE_S * _SECOND_NS and self.elsewhere_s >= LIVELY_S


class Activity:
    """When each actor decided: the latest ``LIVELY_S`` seconds with a decision, noted in any order."""

    def __init__(self) -> None:
        self._seconds: dict[str, set[int]] = {}

    def note(self, actor: str, time_ns: int) -> None:
        """Note that an actor decided a message stored at a time."""
        kept, second = self._seconds.setdefault(actor, set()), time_ns // _SECOND_NS
        if second not in kept:
            kept.add(second)
            if len(kept) > LIVELY_S:
                kept.remove(min(kept))

    @property
    def seconds(self) -> dict[str, tuple[int, ...]]:
        """By actor, those seconds (Unix time)."""
        return {actor: tuple(sorted(kept)) for actor, kept in sorted(self._seconds.items())}


def merged_seconds(parts: Iterable[Mapping[str, Sequence[int]]]) -> dict[str, tuple[int, ...]]:
    """Return the latest seconds in which each actor decided, told those of each share of the partitions."""
    activity = Activity()
    for part in parts:
        for actor, seconds in part.items():
            for second in seconds:
                activity.note(actor, second * _SECOND_NS)
    return activity.seconds


def oldest_of(waiting: Iterable[Pending], active: Mapping[str, Sequence[int]]) -> tuple[Pending, ...]:
    """Return each actor's oldest pending decision or timer, by name, with the decisions made elsewhere meanwhile.

    Args:
        waiting: Pending decisions and timers, at most one for each partition.
        active: By actor, the latest seconds in which it decided.
    """
    oldest: dict[str, Pending] = {}
    for each in sorted(waiting, key=lambda each: (each.since_ns, each.seq, each.partition)):
        oldest.setdefault(each.actor, each)
    return tuple(_with_activity(each, active) for _, each in sorted(oldest.items()))


def _with_activity(pending: Pending, active: Mapping[str, Sequence[int]]) -> Pending:
    others = active if pending.partition == WHOLE else (pending.actor,)
    seconds = {second for actor in others for second in active.get(actor, ())}
    later = sum(second > pending.since_ns // _SECOND_NS for second in seconds)
    return msgspec.structs.replace(pending, elsewhere_s=min(later, LIVELY_S))


def first_undecided(view: View, spoke_ns: int) -> Pending:
    """Return what a partition has not decided: the first message that waits.

    ``spoke_ns`` is when its last event was stored, 0 where it has none; in Unix nanoseconds.
    """
    delivery = view.waiting[0]
    stored, topic = delivery.stored, split_stored(delivery.stored.subject)[0]
    id, exchange = (delivery.message.id, delivery.message.exchange) if isinstance(delivery, Recorded) else ("", "")
    where = view.actor.name, view.partition, stored.seq
    return Pending(*where, id, topic, exchange, stored.time_ns, max(stored.time_ns, spoke_ns))


def overdue_timer(view: View, spoke_ns: int) -> Pending | None:
    """Return the timer that was due before the last message that a partition folded, or None; otherwise as above."""
    timer = view.actor.timer(view.state) if view.actor.timer is not None else None
    if timer is None or timer.due_ns >= view.time_ns:
        return None
    owed, where = timer.emission, (view.actor.name, view.partition, view.position)
    since_ns = max(timer.due_ns, spoke_ns)
    return Pending(
        *where, timer.cause, topic_of(owed.event), owed.exchange or "", timer.due_ns, since_ns, is_timer=True
    )
