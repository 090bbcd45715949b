"""Decisions and timers that are pending at a log's end, and whether they are overdue. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from events.decoding import Recorded, exchange_of
from events.partition_fold import View
from events.routes import WHOLE
from schemas.event import topic_of
from schemas.subjects import split_stored

OVERDUE_S = 10
"""Seconds of a log after which something pending is overdue. Actors decide within milliseconds, under load within some
hundred; but a killed worker counts as alive for 3 seconds, and its successor first reads the log up to its end."""

LIVELY_S = 5
"""Something pending is overdue only after this many seconds with other decisions: a set that is down makes none."""

_SECOND_NS = 1_000_000_000


class Pending(msgspec.Struct, frozen=True):
    """What an actor had pending for longest at the log's end: a message whose decision leads to an event, or a timer.

    Of a message, ``seq``, ``id``, ``topic``, ``exchange`` and ``time_ns`` (server time, Unix nanoseconds) are its own.
    Of a timer, they are the last folded message's sequence, the id of what set it, its event's topic and exchange, and
    when it was due. ``since_ns`` is the later of that time and the time of its partition's last event. ``elsewhere_s``
    counts the seconds since then in which messages were decided elsewhere, up to ``LIVELY_S``: by other partitions of
    the actor, or by any actor if it has only one. ``has_recorded`` is false if the partition has no event in the log,
    not even the settings that it starts with: nobody ran the actor, such as one that a later release added. Then what
    other actors decided shows nothing.
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
    has_recorded: bool = True

    def is_overdue(self, end_ns: int) -> bool:
        """Whether a log that ends at ``end_ns`` went on for longer without it than a living actor takes.

        That does not prove that its decision was recorded and lost: its partition alone may have stopped for that long.
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
        """Actor -> the latest seconds in which it decided (Unix time)."""
        return {actor: tuple(sorted(kept)) for actor, kept in sorted(self._seconds.items())}


def merged_seconds(parts: Iterable[Mapping[str, Sequence[int]]]) -> dict[str, tuple[int, ...]]:
    """Return the latest seconds in which each actor decided, merged from those of several shares of the partitions."""
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
    others = active if pending.partition == WHOLE and pending.has_recorded else (pending.actor,)
    seconds = {second for actor in others for second in active.get(actor, ())}
    later = sum(second > pending.since_ns // _SECOND_NS for second in seconds)
    return msgspec.structs.replace(pending, elsewhere_s=min(later, LIVELY_S))


def first_undecided(view: View, last_own_ns: int) -> Pending:
    """Return what a partition has not decided: the first message that waits.

    ``last_own_ns`` is when its last event was stored (Unix nanoseconds), 0 if it has none.
    """
    delivery = view.waiting[0]
    stored, topic = delivery.stored, split_stored(delivery.stored.subject)[0]
    id = delivery.message.id if isinstance(delivery, Recorded) else ""
    where = view.actor.name, view.partition, stored.seq
    since_ns = max(stored.time_ns, last_own_ns)
    return Pending(*where, id, topic, exchange_of(delivery), stored.time_ns, since_ns, has_recorded=view.own_last > 0)


def overdue_timer(view: View, last_own_ns: int) -> Pending | None:
    """Return the timer that was due before the last message that a partition folded, or None.

    ``last_own_ns`` is as in :func:`first_undecided`.
    """
    timer = view.actor.timer(view.state) if view.actor.timer is not None else None
    if timer is None or timer.due_ns >= view.time_ns:
        return None
    emission, where = timer.emission, (view.actor.name, view.partition, view.position)
    since_ns = max(timer.due_ns, last_own_ns)
    return Pending(
        *where,
        timer.cause,
        topic_of(emission.event),
        emission.exchange or "",
        timer.due_ns,
        since_ns,
        is_timer=True,
        has_recorded=view.own_last > 0,
    )
