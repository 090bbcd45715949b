"""Decisions that cannot be made anew in a second timeline: why, and what of them stands as recorded."""

from events.decoding import Recorded, Unreadable
from events.make_decision import DECIDER_RAISED, cause_of
from events.partition_fold import Delivery
from events.replay.verifying.sealed_words import SEALED
from events.replay.verifying.unread_causes import unreadable_reason
from events.replay.whatif.partition import Partition
from events.replay.whatif.record_index import RecordIndex


class HeldDecisions:
    """Tells which decisions are held, that is, taken from the record; ``past`` is the index of the recorded log."""

    def __init__(self, past: RecordIndex) -> None:
        self._past = past
        self._held: set[tuple[str, str]] = set()  # (actor, id of the message)

    def __contains__(self, decision: tuple[str, str]) -> bool:
        """Whether a decision is held: that of an actor, by name, on the message of an id."""
        return decision in self._held

    def why_held(self, partition: Partition, delivery: Delivery) -> str:
        """Return why a partition's decision on a message cannot be made anew, or nothing; call it once for each."""
        sealed = partition.needs_sealed(delivery)
        unread = self._why_unreadable(partition, delivery) if isinstance(delivery, Unreadable) else ""
        if reason := partition.undecidable(delivery.stored.seq):
            return reason
        if sealed:
            return SEALED
        if isinstance(delivery, Unreadable):
            return unread
        held = self._past.held.get((partition.actor.name, delivery.envelope.id), "")
        return held or partition.gaps.reason(delivery) or partition.why_untrusted(delivery.stored.seq)

    def hold(self, partition: Partition, delivery: Delivery) -> None:
        """Fold a message whose decision is held; the recorded events follow where the record has them."""
        self._held.add((partition.actor.name, cause_of(delivery).id))
        # A view skips a message about which another failure than a decider's was recorded.
        if isinstance(delivery, Recorded) and self._failure(partition, delivery) in ("", DECIDER_RAISED):
            partition.fold_message(delivery)

    def _why_unreadable(self, partition: Partition, unread: Unreadable) -> str:
        """Return why the decision on an unreadable message is held; empty if the recorded one was the same failure."""
        if self._failure(partition, unread) == unread.code:
            return ""
        reason = unreadable_reason(unread)
        partition.gaps.note(unread, reason)
        return reason

    def _failure(self, partition: Partition, delivery: Delivery) -> str:
        """Return the reason of the failure that a partition recorded for a message; empty if it recorded none."""
        return self._past.failures.get((partition.actor.name, partition.name, cause_of(delivery).id), "")
