"""What a replay reports: coverage, differences, and what a recorded decision is compared with. Pure."""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from events.body_comparison import BodyComparer, text_of
from events.codec import Recorded
from events.decision import NewEvent
from events.replay.verifying.pending import Pending, merged_seconds, oldest_of
from schemas.catalogue import upcast_body
from schemas.envelope import Envelope


class Difference(msgspec.Struct, frozen=True):
    """A decision that came out otherwise than recorded.

    ``seq`` and ``topic`` are the decided message's, or the event's own where no message led to it; ``field`` names
    what differs first (``count``, ``subject``, ``id``, ``cause``, ``address``, ``place``, ``body``; of recorded
    settings, ``settings_hash``); ``recorded`` and ``redecided`` are its two values as text. ``shown_at`` is the
    sequence of the message that brought it to light.
    """

    actor: str
    partition: str
    seq: int
    topic: str
    exchange: str
    field: str
    recorded: str
    redecided: str
    shown_at: int


class Coverage(msgspec.Struct):
    """What became of an actor's decisions in a verification.

    ``identical`` and ``different`` were re-decided. ``silent`` of the identical ones led to no event. ``pending`` were
    not decided yet when the log ended. ``unverified`` counts, by reason, those that could not be re-decided; ``sealed``
    is the reason where words are needed that were forgotten, or whose keys are out of reach.
    These add up to the messages consumed; forged events, which no message led to, are ``different`` besides.
    ``facts`` are own events that no decision yields (settings); ``timers`` those that time yielded, checked against
    the pending deadlines. ``new_fields`` counts, by subject and path, the bodies that were recorded without a field
    that today's have: what it says today is compared with nothing.
    """

    identical: int = 0
    silent: int = 0
    different: int = 0
    pending: int = 0
    timers: int = 0
    facts: int = 0
    unverified: dict[str, int] = {}
    new_fields: dict[str, int] = {}


class Report(msgspec.Struct, frozen=True):
    """The outcome of a replay.

    ``state_hashes`` maps ``actor/partition`` to the hash of its final state. ``differences`` holds the first that the
    log brings to light; ``coverage`` counts all. ``unreadable`` are messages no one could decode, by error code.
    ``waiting`` names what each actor that owed anything owed for longest. ``active`` holds, of a verification, the
    latest seconds (Unix time) of which each actor decided messages: what tells whether it stood still.
    """

    events: int
    first_seq: int
    last_seq: int
    state_hashes: dict[str, str]
    coverage: dict[str, Coverage]
    differences: tuple[Difference, ...]
    unreadable: dict[str, int]
    fold_errors: int
    waiting: tuple[Pending, ...] = ()
    active: dict[str, tuple[int, ...]] = {}

    @property
    def clean(self) -> bool:
        """Whether every decision that could be made again came out as recorded."""
        return not self.fold_errors and not any(c.different for c in self.coverage.values())

    @property
    def identical(self) -> int:
        """How many decisions were made again and came out as recorded."""
        return sum(counts.identical for counts in self.coverage.values())

    @property
    def unverified(self) -> dict[str, int]:
        """How many decisions could not be made again, by reason."""
        found: Counter[str] = Counter()
        for counts in self.coverage.values():
            found.update(counts.unverified)
        return dict(found)

    @property
    def pending(self) -> int:
        """How many messages have no recorded decision yet."""
        return sum(counts.pending for counts in self.coverage.values())


class Differences:
    """The first differences found in a log. The result does not depend on how many there are, or their order."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._first: list[Difference] = []

    def add(self, found: Difference) -> None:
        """Take a difference."""
        insort(self._first, found, key=_rank)
        del self._first[self._keep :]

    def drop_if(self, excused: Callable[[Difference], bool]) -> None:
        """Take back those that are excused."""
        self._first = [found for found in self._first if not excused(found)]

    @property
    def first(self) -> tuple[Difference, ...]:
        """The differences that are kept; those of one message are ordered by actor and partition."""
        return tuple(self._first)


def _rank(found: Difference) -> tuple[int, str, str]:
    return found.shown_at, found.actor, found.partition


def merged_reports(reports: Sequence[Report], keep: int) -> Report:
    """Return what one replay would have reported of the partitions that several have folded, each its own.

    Args:
        reports: One at least. Each counts the messages of the whole log; each unreadable one is counted in one of them.
        keep: How many differences are kept.
    """
    differences = Differences(keep)
    coverage: dict[str, Coverage] = {}
    unreadable: dict[str, int] = {}
    for report in reports:
        for found in report.differences:
            differences.add(found)
        for name, counts in report.coverage.items():
            coverage[name] = _sum(coverage[name], counts) if name in coverage else counts
        unreadable = _sum_of_counts(unreadable, report.unreadable)
    active = merged_seconds(report.active for report in reports)
    hashes = [entry for report in reports for entry in report.state_hashes.items()]
    return msgspec.structs.replace(
        reports[0],
        state_hashes=dict(sorted(hashes, key=lambda entry: tuple(entry[0].split("/")))),
        coverage=coverage,
        differences=differences.first,
        unreadable=unreadable,
        fold_errors=sum(report.fold_errors for report in reports),
        waiting=oldest_of((each for report in reports for each in report.waiting), active),
        active=active,
    )


def in_order(counts: Coverage) -> Coverage:
    """Return counts with reasons and fields in alphabetical order, in whatever order they were met."""
    return msgspec.structs.replace(
        counts,
        unverified=dict(sorted(counts.unverified.items())),
        new_fields={place: count for place, count in sorted(counts.new_fields.items()) if count},
    )


def _sum(left: Coverage, right: Coverage) -> Coverage:
    return Coverage(
        identical=left.identical + right.identical,
        silent=left.silent + right.silent,
        different=left.different + right.different,
        pending=left.pending + right.pending,
        timers=left.timers + right.timers,
        facts=left.facts + right.facts,
        unverified=_sum_of_counts(left.unverified, right.unverified),
        new_fields=_sum_of_counts(left.new_fields, right.new_fields),
    )


def _sum_of_counts(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted({*left, *right})}


class Compared(msgspec.Struct, frozen=True):
    """How recorded and re-decided events compare.

    ``difference`` is what differs first, as (field, recorded, re-decided), or None; ``new`` are the subjects and paths
    of fields that the recorded bodies could not have had.
    """

    difference: tuple[str, str, str] | None = None
    new: tuple[str, ...] = ()


_SAME = Compared()


def compare(recorded: Sequence[Recorded], decided: Sequence[NewEvent], bodies: BodyComparer) -> Compared:
    """Compare a message's recorded events with those decided today; ``bodies`` compares the bodies of their writer."""
    if len(recorded) != len(decided):
        topics = topics_text([r.envelope.topic for r in recorded]), topics_text([d.topic for d in decided])
        return Compared(("count", *topics))
    new: tuple[str, ...] = ()
    for was, now in zip(recorded, decided, strict=True):
        if found := _difference_around(was, now):
            return Compared(found, new)
        if was.stored.data == now.data:
            bodies.note_identical(was)
            continue
        said = bodies.compare(was, now)
        new += tuple(f"{now.topic}.{path}" for path in said.new)
        if not said.is_same:
            as_it_is = upcast_body(was.envelope.topic, was.stored.data, was.envelope.version) is was.stored.data
            shown = body_text(was.stored.data) if as_it_is else text_of(said.recorded)
            return Compared(("body", shown, text_of(said.redecided)), new)
    return Compared(None, new) if new else _SAME


def _difference_around(was: Recorded, now: NewEvent) -> tuple[str, str, str] | None:
    """Return what differs first around two bodies, or None."""
    if _is_same_around(was, now):
        return None
    pairs = (
        ("subject", was.stored.subject, now.subject),
        ("id", was.envelope.id, now.message.id),
        ("cause", was.envelope.cause, now.cause),
        ("address", _address(was.message), _address(now.message)),
        ("place", _place(was.envelope), _place(now)),
    )
    return next((pair for pair in pairs if pair[1] != pair[2]), None)


def _is_same_around(was: Recorded, now: NewEvent) -> bool:
    """Whether nothing but the body may differ: the same subject, id, cause, address and place."""
    stored, envelope, message = was.stored, was.envelope, now.message
    return (
        stored.subject == now.subject
        and envelope.id == message.id
        and envelope.cause == now.cause
        and envelope.cause_seq == now.cause_seq
        and envelope.index == now.index
        and envelope.count == now.count
        and was.message.exchange == message.exchange
        and was.message.session == message.session
        and was.message.agent == message.agent
    )


def topics_text(topics: Sequence[str]) -> str:
    """Return how many events of which topics there are, for a difference."""
    return f"{len(topics)} events: {', '.join(topics)}"


def _address(message: Any) -> str:
    return f"agent {message.agent!r}, session {message.session!r}, exchange {message.exchange!r}"


def _place(event: Envelope | NewEvent) -> str:
    return f"{event.index}/{event.count} behind {event.cause_seq}"


def body_text(data: bytes) -> str:
    """Return a body for a difference, whatever it holds."""
    return data.decode(errors="replace")
