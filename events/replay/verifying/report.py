"""The report of a replay (coverage, differences), and the comparison of recorded and re-decided events. Pure."""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from events.decoding import Recorded
from events.make_decision import NewEvent
from events.replay.body_comparison import BodyComparer, text_of
from events.replay.verifying.pending import Pending, merged_seconds, oldest_of
from schemas.catalogue import upcast_body
from schemas.envelope import Envelope


class Difference(msgspec.Struct, frozen=True):
    """A decision that came out otherwise than recorded.

    ``seq`` and ``topic`` are the decided message's, or the event's own where no message led to it. ``field`` names
    what differs first: ``count``, ``subject``, ``id``, ``cause``, ``address``, ``place`` (index and count, and the
    cause's sequence) or ``body``; of recorded settings, ``settings_hash``. ``recorded`` and ``redecided`` are its two
    values as text. ``shown_at`` is the sequence of the message at which the replay noticed it.
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
    """The counts of an actor's decisions in a verification.

    ``identical`` and ``different`` were re-decided. ``silent`` of the identical ones led to no event. ``pending`` were
    not decided yet when the log ended. ``unverified`` counts, by reason, those that could not be re-decided; ``sealed``
    is the reason where words are needed that were forgotten, or whose keys are out of reach. These add up to the
    messages consumed. Events that no consumed message can have led to are counted as ``different``, too. ``facts`` are
    own events that no decision yields (settings, and what a shell measured); ``timers`` are events of timers, checked
    against the pending deadlines. ``new_fields`` counts, by subject and path, bodies recorded without a field that
    today's bodies have: there is no recorded value to compare it with. ``first_unverified`` has, by reason, the
    sequence of the first message (or event that no message led to) that was left unverified for it.
    """

    identical: int = 0
    silent: int = 0
    different: int = 0
    pending: int = 0
    timers: int = 0
    facts: int = 0
    unverified: dict[str, int] = {}
    new_fields: dict[str, int] = {}
    first_unverified: dict[str, int] = {}

    def leave_unverified(self, reason: str, seq: int) -> None:
        """Count a decision about the message of a sequence that could not be made again."""
        self.unverified[reason] = self.unverified.get(reason, 0) + 1
        self.first_unverified[reason] = min(seq, self.first_unverified.get(reason, seq))


class Report(msgspec.Struct, frozen=True):
    """The outcome of a replay.

    ``state_hashes`` maps ``actor/partition`` to the hash of its final state. ``differences`` holds the first
    ones of the log; ``coverage`` counts all. ``unreadable`` counts messages that could not be decoded, by error code,
    ``fold_errors`` those whose fold raised, so that they were skipped.
    ``waiting`` names what each actor had pending for longest. ``active``, in a verification, holds the latest seconds
    (Unix time) in which each actor decided messages: they show whether it had stopped. ``newer_behaviours``: actor ->
    the sequence from which on a newer release decided under a behaviour that this one does not have.
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
    newer_behaviours: dict[str, int] = {}

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
    def first_unverified(self) -> dict[str, int]:
        """By reason, the sequence of the first message whose decision could not be made again."""
        found: dict[str, int] = {}
        for counts in self.coverage.values():
            found = _least(found, counts.first_unverified)
        return found

    @property
    def pending(self) -> int:
        """How many messages have no recorded decision yet."""
        return sum(counts.pending for counts in self.coverage.values())


class Differences:
    """The first differences found in a log. The result does not depend on how many there are, or their order."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._first: list[Difference] = []

    def add(self, difference: Difference) -> None:
        """Add a difference; only the first ones are kept."""
        insort(self._first, difference, key=_rank)
        del self._first[self._keep :]

    def drop_if(self, excused: Callable[[Difference], bool]) -> None:
        """Remove those that are excused."""
        self._first = [found for found in self._first if not excused(found)]

    @property
    def first(self) -> tuple[Difference, ...]:
        """The differences that are kept; those of one message are ordered by actor and partition."""
        return tuple(self._first)


def _rank(difference: Difference) -> tuple[int, str, str]:
    return difference.shown_at, difference.actor, difference.partition


def merged_reports(reports: Sequence[Report], keep: int) -> Report:
    """Merge the reports of several replays, each of its own partitions, into that of one replay of all.

    Args:
        reports: One at least. Each counts the messages of the whole log; each unreadable one is counted in one of them.
        keep: How many differences are kept.
    """
    differences = Differences(keep)
    coverage: dict[str, Coverage] = {}
    unreadable: dict[str, int] = {}
    newer_behaviours: dict[str, int] = {}
    for report in reports:
        newer_behaviours = _least(newer_behaviours, report.newer_behaviours)
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
        newer_behaviours=newer_behaviours,
    )


def in_order(counts: Coverage) -> Coverage:
    """Return counts with reasons and fields in alphabetical order, in whatever order they were met."""
    return msgspec.structs.replace(
        counts,
        unverified=dict(sorted(counts.unverified.items())),
        new_fields={path: count for path, count in sorted(counts.new_fields.items()) if count},
        first_unverified=dict(sorted(counts.first_unverified.items())),
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
        first_unverified=_least(left.first_unverified, right.first_unverified),
    )


def _sum_of_counts(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted({*left, *right})}


def _least(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: min(each[name] for each in (left, right) if name in each) for name in sorted({*left, *right})}


class Compared(msgspec.Struct, frozen=True):
    """How recorded and re-decided events compare.

    ``difference`` is what differs first, as (field, recorded, re-decided), or None; ``new`` are the subjects and paths
    of fields that the recorded bodies could not have had.
    """

    difference: tuple[str, str, str] | None = None
    new: tuple[str, ...] = ()


SAME = Compared()
"""Nothing differs, and nothing is new."""


def compare(recorded: Sequence[Recorded], decided: Sequence[NewEvent], bodies: BodyComparer) -> Compared:
    """Compare a message's recorded events with those decided today; ``bodies`` compares the bodies of their writer."""
    if len(recorded) != len(decided):
        topics = topics_text([r.envelope.topic for r in recorded]), topics_text([d.topic for d in decided])
        return Compared(("count", *topics))
    new: tuple[str, ...] = ()
    for recorded_event, decided_event in zip(recorded, decided, strict=True):
        if found := _envelope_difference(recorded_event, decided_event):
            return Compared(found, new)
        if recorded_event.stored.data == decided_event.data:
            bodies.note_identical(recorded_event)
            continue
        comparison = bodies.compare(recorded_event, decided_event)
        new += tuple(f"{decided_event.topic}.{path}" for path in comparison.new)
        if not comparison.is_same:
            is_current_version = (
                upcast_body(recorded_event.envelope.topic, recorded_event.stored.data, recorded_event.envelope.version)
                is recorded_event.stored.data
            )
            shown = body_text(recorded_event.stored.data) if is_current_version else text_of(comparison.recorded)
            return Compared(("body", shown, text_of(comparison.redecided)), new)
    return Compared(None, new) if new else SAME


def _envelope_difference(recorded_event: Recorded, decided_event: NewEvent) -> tuple[str, str, str] | None:
    """Return what differs first between two events except their bodies, or None."""
    if _is_same_envelope(recorded_event, decided_event):
        return None
    pairs = (
        ("subject", recorded_event.stored.subject, decided_event.subject),
        ("id", recorded_event.envelope.id, decided_event.message.id),
        ("cause", recorded_event.envelope.cause, decided_event.cause),
        ("address", _address(recorded_event.message), _address(decided_event.message)),
        ("place", _index_text(recorded_event.envelope), _index_text(decided_event)),
    )
    return next((pair for pair in pairs if pair[1] != pair[2]), None)


def _is_same_envelope(recorded_event: Recorded, decided_event: NewEvent) -> bool:
    """Whether nothing but the body may differ: the same subject, id, cause, address, index and count."""
    stored, envelope, message = recorded_event.stored, recorded_event.envelope, decided_event.message
    return (
        stored.subject == decided_event.subject
        and envelope.id == message.id
        and envelope.cause == decided_event.cause
        and envelope.cause_seq == decided_event.cause_seq
        and envelope.index == decided_event.index
        and envelope.count == decided_event.count
        and recorded_event.message.exchange == message.exchange
        and recorded_event.message.session == message.session
        and recorded_event.message.agent == message.agent
    )


def topics_text(topics: Sequence[str]) -> str:
    """Return how many events of which topics there are, for a difference."""
    return f"{len(topics)} events: {', '.join(topics)}"


def _address(message: Any) -> str:
    return f"agent {message.agent!r}, session {message.session!r}, exchange {message.exchange!r}"


def _index_text(event: Envelope | NewEvent) -> str:
    return f"{event.index}/{event.count} behind {event.cause_seq}"


def body_text(data: bytes) -> str:
    """Return a body as the text that a difference shows, even if it is not UTF-8."""
    return data.decode(errors="replace")
