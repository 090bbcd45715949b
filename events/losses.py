"""The losses that a log has recorded (``ledger.loss_recorded``).

A record comes after the loss in the log. Decisions made before the record may rest on lost messages. Decisions made
after it rest only on the messages that are left, since every partition folds the log again when it reads the record.
"""

from collections.abc import Iterable, Sequence

import msgspec

from events.codec import Recorded, decode
from events.log import Log, Stored
from schemas.event import topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.ledger import LossRecorded

LOSS_TOPIC = topic_of(LossRecorded)
LOSS_FILTER = topic_filter(LOSS_TOPIC)
"""All records of losses."""

_ENDING = LOSS_FILTER.removeprefix("log.*.*")


def is_loss(subject: str) -> bool:
    """Whether messages on a stored subject record losses."""
    return subject.endswith(_ENDING)


class Loss(msgspec.Struct, frozen=True):
    """A recorded loss: its event, and the sequence of that."""

    seq: int
    event: LossRecorded


class Losses:
    """The recorded losses of a log, in order.

    Attributes:
        found: They.
    """

    def __init__(self) -> None:
        self.found: list[Loss] = []

    @classmethod
    async def of(cls, log: Log, upto: int) -> "Losses":
        """Read those that a log has recorded up to a sequence; raises LogError."""
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
    def gap_ends(self) -> tuple[int, ...]:
        """The last sequences of the gaps that are recorded, in order, of adjoining ones the last; see ``Reading``."""
        return tuple(last for _, last in self.lost_for_good)

    def stretches_with_gaps(self, after: int, upto: int, most: int) -> tuple[tuple[int, int], ...]:
        """Return after and up to which sequences all is to be read, since readings of filters would begin anew there.

        All of it where that is at most ``most`` sequences long; else the parts of up to that length from before a
        recorded gap to the end of another, or of the same, which then holds nothing.
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
        """Whether a state is free of lost messages, so that it can still be used.

        The state has folded the log up to ``folded_upto``, as it was when its last known loss was recorded at
        ``since``. Sequences that were given to other messages do not matter: their time shows that the message is
        another one.
        """
        later = (loss.event for loss in self.found if loss.seq > since)
        return all(event.given_again or event.first_seq > folded_upto for event in later)

    def has_gap(self, first: int, last: int) -> bool:
        """Whether these sequences, which the log lacks, are recorded as lost for ever."""
        lost = [loss.event for loss in self.found if not loss.event.given_again]
        return any(event.first_seq <= first and last <= event.through_seq for event in lost)

    def excuse(self, seq: int, shown_at: int) -> bool:
        """Whether a decision on the message at ``seq`` may rest on messages that are lost for ever.

        That holds if it was made, or its events were stored, after the lost messages (shown by a reading up to
        ``shown_at``) and before the loss was recorded.
        """
        return any(
            loss.event.first_seq <= shown_at and seq < loss.seq and not loss.event.given_again for loss in self.found
        )

    def invalidates(self, through: int, seq: int) -> bool:
        """Whether a message at ``seq`` spoke of the log up to ``through`` before it lost a part of that."""
        return any(
            loss.event.first_seq <= through and seq < loss.seq and not loss.event.given_again for loss in self.found
        )


def merged_ranges(stretches: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return stretches of sequences (first and last) in order, those that meet or overlap as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def gaps(after: int, batch: Sequence[Stored]) -> list[tuple[int, int]]:
    """Return the first and last sequence of each gap in a reading of everything that has come to ``after``."""
    found = []
    for stored in batch:
        if stored.seq > after + 1:
            found.append((after + 1, stored.seq - 1))
        after = stored.seq
    return found
