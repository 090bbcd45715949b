"""The losses that a log has recorded (``ledger.loss_recorded``).

A record comes after the loss in the log. Decisions made before the record may depend on lost messages. Decisions made
after it depend only on the messages that are left, since every partition folds the log again when it reads the record.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from events.decoding import Recorded, decode
from events.log import Log, Stored
from schemas.event import topic_of
from schemas.subjects import EVERYTHING, topic_filter
from schemas.vocabulary.ledger import LossRecorded

LOSS_TOPIC = topic_of(LossRecorded)
LOSS_FILTER = topic_filter(LOSS_TOPIC)
"""The public subject of records of losses, and the filter over all of them."""

FindGaps = Callable[[int, int], Awaitable[list[tuple[int, int]]]]
"""Returns the gaps (first and last sequence) of the log after a sequence and up to another; raises LogError."""

_ENDING = LOSS_FILTER.removeprefix("log.*.*")


def is_loss(subject: str) -> bool:
    """Whether messages on a stored subject record losses."""
    return subject.endswith(_ENDING)


class Loss(msgspec.Struct, frozen=True):
    """A recorded loss: its event, and that event's sequence."""

    seq: int
    event: LossRecorded


class Losses:
    """The recorded losses of a log, in order.

    Attributes:
        found: The recorded losses.
    """

    def __init__(self) -> None:
        self.found: list[Loss] = []

    @classmethod
    async def of(cls, log: Log, upto: int) -> "Losses":
        """Read the losses that a log has recorded up to a sequence; raises LogError."""
        losses = cls()
        async for batch in log.history([LOSS_FILTER], 0, upto):
            for stored in batch:
                losses.note(stored)
        return losses

    @property
    def last_seq(self) -> int:
        """The sequence of the last record, 0 when there is none."""
        return self.found[-1].seq if self.found else 0

    def note(self, stored: Stored) -> bool:
        """Note a message of the log, in order; return whether it records a loss that was not known here."""
        if not is_loss(stored.subject) or stored.seq <= self.last_seq:
            return False
        recorded = decode(stored)
        if not isinstance(recorded, Recorded) or not isinstance(recorded.message.event, LossRecorded):
            return False
        self.found.append(Loss(stored.seq, recorded.message.event))
        return True

    @property
    def where_kept(self) -> str:
        """The ledgers that may hold what was lost, in words that follow "it was not found"; empty if none was kept."""
        kept = ", ".join(loss.event.kept_as for loss in self.found if loss.event.kept_as)
        said = "; the log has lost events, and may have lost it: look with --log, beside the ledger, in"
        return f"{said} {kept}" if kept else ""

    @property
    def gap_ends(self) -> tuple[int, ...]:
        """The last sequence of each recorded gap, in order; adjacent gaps count as one. See ``StreamReader``."""
        return tuple(last for _, last in self.lost_for_good)

    def ranges_with_gaps(self, after: int, upto: int, most: int) -> tuple[tuple[int, int], ...]:
        """Return ranges (after, up to) around gaps, to be read without filters: a filtered reader would restart at each
        gap.

        The whole range if it has at most ``most`` sequences. Otherwise ranges of at most that length, each from before
        a recorded gap to the end of the same or a later one.
        """
        gaps = [(max(first - 1, after), last) for first, last in self.lost_for_good if after < last <= upto]
        if gaps and upto - after <= most:
            return ((after, upto),)
        found: list[tuple[int, int]] = []
        for before, last in gaps:
            if found and last - found[-1][0] <= most:
                found[-1] = found[-1][0], last
            else:
                found.append((before, last))
        return tuple(found)

    @property
    def lost_for_good(self) -> tuple[tuple[int, int], ...]:
        """The first and last sequences of ranges lost for ever; adjacent ranges are merged.

        Sequences that the broker has given to other messages since are not among them.
        """
        return merged_ranges(
            (loss.event.first_seq, loss.event.through_seq) for loss in self.found if not loss.event.given_again
        )

    @property
    def first_lost(self) -> int | None:
        """The first sequence that is recorded as lost for ever; None if there is none."""
        return min((loss.event.first_seq for loss in self.found if not loss.event.given_again), default=None)

    def leaves_untouched(self, folded_upto: int, since: int) -> bool:
        """Whether a state has folded no lost message, so that it can still be used.

        The state has folded the log up to ``folded_upto``, and knew the losses recorded up to ``since``. Sequences that
        were given to other messages do not matter: their time shows that the message is another one.
        """
        later = (loss.event for loss in self.found if loss.seq > since)
        return all(event.given_again or event.first_seq > folded_upto for event in later)

    def has_gap(self, first: int, last: int) -> bool:
        """Whether these sequences, which the log lacks, are recorded as lost for ever."""
        lost = [loss.event for loss in self.found if not loss.event.given_again]
        return any(event.first_seq <= first and last <= event.through_seq for event in lost)

    def may_explain(self, seq: int, shown_at: int) -> bool:
        """Whether a decision on the message at ``seq`` may depend on messages that are lost for ever.

        That is so if it was made, or its events were stored, after the lost messages and before the loss was recorded.
        ``shown_at`` is the sequence at which a replay noticed the decision.
        """
        return any(
            loss.event.first_seq <= shown_at and seq < loss.seq and not loss.event.given_again for loss in self.found
        )

    def invalidates(self, through: int, seq: int) -> bool:
        """Whether a message at ``seq`` describes the log up to ``through`` as it was before a part of that was lost."""
        return any(
            loss.event.first_seq <= through and seq < loss.seq and not loss.event.given_again for loss in self.found
        )


def merged_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges (first and last sequence) in order; adjacent and overlapping ranges are merged."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def gaps(after: int, batch: Sequence[Stored]) -> list[tuple[int, int]]:
    """Return the gaps (first and last sequence) in a batch of an unfiltered reading that had reached ``after``."""
    found = []
    for stored in batch:
        if stored.seq > after + 1:
            found.append((after + 1, stored.seq - 1))
        after = stored.seq
    return found


async def gaps_between(log: Log, after: int, upto: int) -> list[tuple[int, int]]:
    """Read a range of the log whole; return its gaps (first and last sequence); raises LogError."""
    found, reached = [], after
    async for batch in log.history([EVERYTHING], after, upto):
        found += gaps(reached, batch)
        reached = batch[-1].seq
        await asyncio.sleep(0)
    if reached < upto:
        found.append((reached + 1, upto))
    return found
