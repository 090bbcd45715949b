"""The report of a what-if: what other settings would have changed."""

from collections import Counter
from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Any

import msgspec

from schemas.settings.measured_settings import ReadBy

EFFECT_MISSING = "effect_missing"
"""A decision asked for an effect that was never made."""

OPEN = "open"
"""No end: the log stops before it."""

NOT_REDECIDED = "not_redecided"
"""No end: a decision on the new course cannot be made, such as one that needs sealed words."""

RECORDED, LATEST = "recorded", "latest"
"""Under which behaviours a log is decided anew."""

MOST_EXAMPLES = 20
"""Changed exchanges that are kept for a report, by default."""


MOST_CHANGES = 100
"""Changed events that are kept of a traced exchange, at most."""


class Tally(msgspec.Struct):
    """The counts of an actor's messages and events.

    ``decided`` counts the messages decided again. ``identical`` and ``different`` events are in both timelines,
    ``gone`` ones only in the record, ``new`` ones only in the second timeline. ``pending`` ones are due, and the record
    ends before them. ``held`` counts, by reason, decisions taken from the record. ``new_fields`` counts, by
    subject and path, bodies that were recorded without a field that today's have, ``behaviours`` the messages decided
    under each.
    """

    decided: int = 0
    identical: int = 0
    different: int = 0
    gone: int = 0
    new: int = 0
    pending: int = 0
    held: dict[str, int] = {}
    new_fields: dict[str, int] = {}
    behaviours: dict[int, int] = {}


def undecided_actors(affected: Set[str], tallies: Mapping[str, Tally], from_record: Set[str]) -> tuple[str, ...]:
    """Return the affected actors none of whose decisions with events could be made again.

    Decisions that lead to no event in either timeline show nothing.

    Args:
        affected: Actors that the changes concern.
        tallies: Actor -> its counts.
        from_record: Actors with recorded events that were used.
    """
    found = []
    for name in sorted(affected):
        tally = tallies[name]
        has_compared = tally.identical or tally.different or tally.gone or tally.new
        if tally.held and not has_compared and (name in from_record or not tally.decided):
            found.append(name)
    return tuple(found)


class End(msgspec.Struct, frozen=True):
    """How an exchange ended, in one timeline. If it has no end, ``how`` says why; else it is empty."""

    stage: str = ""
    action: str = ""
    reason: str = ""
    mode: str = ""
    response: str = ""
    how: str = ""

    @property
    def label(self) -> str:
        """Stage and action, or why there is no end."""
        return self.how or f"{self.stage}/{self.action}"

    @property
    def decision(self) -> tuple[str, str, str, str, str]:
        """Everything except the answer's text."""
        return self.stage, self.action, self.reason, self.mode, self.how


class Change(msgspec.Struct, frozen=True):
    """A changed event: its sequence, and its bodies; None: not in that timeline."""

    seq: int
    actor: str
    topic: str
    recorded: dict[str, Any] | None
    whatif: dict[str, Any] | None


class Fate(StrEnum):
    """How the end of an exchange under the changes compares with the recorded one.

    CHANGED: it ends otherwise. REWORDED: only the answer's text differs. SAME: it ends the same. OPEN: it has no end in
    the record. HELD: it ends the same, but some or all of its decisions were taken from the record, and might have
    changed. OPEN and HELD cannot be compared.
    """

    CHANGED = "changed"
    REWORDED = "reworded"
    SAME = "same"
    OPEN = "open"
    HELD = "held"


class Outcome(msgspec.Struct, frozen=True):
    """An exchange in both timelines; ``text`` is the beginning of its input."""

    exchange: str
    seq: int
    recorded: End
    whatif: End
    first: Change | None
    text: str = ""

    @property
    def changed(self) -> bool:
        """Whether it ends otherwise, words apart; one that the log leaves open has no end to compare."""
        return self.recorded.how != OPEN and self.recorded.decision != self.whatif.decision


class Example(msgspec.Struct, frozen=True):
    """A changed exchange, and the fields in which its first differing event differs: path -> (recorded, what-if)."""

    outcome: Outcome
    fields: dict[str, tuple[Any, Any]]


class Traced(msgspec.Struct, frozen=True):
    """A traced exchange (one that was asked about), and its changed events, in order."""

    outcome: Outcome
    changes: tuple[Change, ...]


class Report(msgspec.Struct, frozen=True):
    """What other settings would have changed.

    Attributes:
        events: Recorded events read.
        exchanges: Exchanges begun on record.
        open: Of them, those without an end in the log: there is nothing to compare.
        held: Those that ended, and of which it is unknown whether they would end otherwise; see :class:`Fate`.
        changed: Of the others, those that end otherwise; ``reworded``: those of which only the answer's text differs.
        without_end: How many of the changed have no end in the second timeline, by the reason.
        ends: Recorded stage and action -> those of the second timeline -> number of exchanges.
        modes: Recorded mode -> that of the second timeline -> number of exchanges.
        tallies: By actor.
        effects: How many requests for an effect were answered from the record (``reused``), and how many were not,
            since it lacks the request (``never_asked``), or has another one of that id (``asked_otherwise``).
        unreadable: Messages that this release cannot decode, by error code.
        unanswered: Actors that the changes concern, and none of whose decisions with events could be made again.
        examples: The first changed exchanges.
        fates: The fate of each exchange that was asked about and is in the log.
        traced: Those exchanges, with their changed events (:data:`MOST_CHANGES` at most).
        behaviour: ``RECORDED``: each stretch of the log was decided under the behaviour that was in force there;
            ``LATEST``: all of it under today's.
        measured: The changed settings by which running processes measure. What they measured is taken from the record.
            ``alone``: no decision reads the setting, so that its change shows nothing; ``too``: decisions read it, too.
        all_measured: Whether nothing else was changed than such settings as no decision reads.
        unread_inputs: How many of the held exchanges have an input that this release cannot read.
        without_actor: By public subject, events of actors that this release does not have, taken from the record.
    """

    events: int
    exchanges: int
    open: int
    held: int
    changed: int
    reworded: int
    without_end: dict[str, int]
    ends: dict[str, dict[str, int]]
    modes: dict[str, dict[str, int]]
    tallies: dict[str, Tally]
    effects: dict[str, int]
    unreadable: dict[str, int]
    unanswered: tuple[str, ...]
    examples: tuple[Example, ...]
    fates: dict[str, Fate]
    behaviour: str = RECORDED
    measured: dict[str, ReadBy] = {}
    all_measured: bool = False
    traced: dict[str, Traced] = {}
    unread_inputs: int = 0
    without_actor: dict[str, int] = {}

    @property
    def share(self) -> float:
        """The share of the compared exchanges that changed, in [0, 1]."""
        return self.changed / self.compared if self.compared else 0.0

    @property
    def max_share(self) -> float:
        """The largest share of exchanges that may have changed, in [0, 1]: all held ones are counted as changed."""
        ended = self.compared + self.held
        return (self.changed + self.held) / ended if ended else 0.0

    @property
    def compared(self) -> int:
        """How many exchanges ended in the record, and have an end in the second timeline that can be compared."""
        return self.exchanges - self.open - self.held

    @property
    def decided(self) -> int:
        """How many messages were decided anew."""
        return sum(tally.decided for tally in self.tallies.values())

    @property
    def held_by_reason(self) -> dict[str, int]:
        """How many decisions were taken from the record, by reason."""
        found: Counter[str] = Counter()
        for tally in self.tallies.values():
            found.update(tally.held)
        return dict(sorted(found.items()))
