"""Verification of decisions: each is made again from the state before it, and compared with the record.

A decision made under an older behaviour is made again under that one. A decision that cannot be made again is counted
with the reason: a behaviour or settings that this release does not have, sealed words, missing weights of a trained
model, a message that only another release can read, an append that the broker refused, a backlog that is too long.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import msgspec

from events.decoding import Recorded, Unreadable, exchange_of
from events.log import Seal
from events.losses import Losses
from events.make_decision import (
    APPEND_REFUSED,
    Cause,
    NewEvent,
    address_events,
    decide,
    decide_only,
    fold_decided,
    with_models,
)
from events.partition_fold import Delivery, Processed, View
from events.replay.body_comparison import BodyComparer
from events.replay.verifying.report import (
    SAME,
    Compared,
    Coverage,
    Difference,
    Differences,
    body_text,
    compare,
    topics_text,
)
from events.replay.verifying.sealed_words import SEALED, SealedWordsTracker
from events.replay.verifying.unread_causes import Kind, UnreadCauses, is_of_newer_version, kind_of, unreadable_reason
from schemas.actor import Actor
from schemas.catalogue import entry_of
from schemas.event import Configured, Failed, topic_of
from schemas.identity import content_hash
from schemas.subjects import Partitions, split_stored

BEYOND_BACKLOG = "beyond_backlog"
"""The reason for unverified settings and timers: their partition was too far behind when it recorded them."""

LOG_LOSS = "log_loss"
"""The reason for a decision that comes out different, and may depend on messages recorded as lost."""

ActorPartition = tuple[str, str]
"""An actor's name, and one of its partitions."""


class _PartitionNotes:
    """What is noted of one partition: so the result does not depend on which partitions are folded in this process.

    Attributes:
        folded_early_upto: The sequence up to which messages were folded before the log showed what they led to.
        untrusted: Why the state may be wrong: it had settings or a behaviour that this release lacks. Else empty.
    """

    def __init__(self, actor: Actor[Any]) -> None:
        self.folded_early_upto = 0
        self.untrusted = ""
        self.bodies = BodyComparer()
        self.sealed_words = SealedWordsTracker(actor)
        self.unread_causes = UnreadCauses(actor)

    def copy(self) -> "_PartitionNotes":
        other = copy(self)
        other.bodies = self.bodies.copy()
        other.sealed_words = self.sealed_words.copy()
        other.unread_causes = self.unread_causes.copy()
        return other


class Verification:
    """Compares what views fold with what their actors decide, and counts how it comes out.

    Attributes:
        coverage: The counts so far, by actor.
        differences: The first differences found.
        losses: What the log has recorded as lost.
        partitions: The partition counts in force where the log is read.
        readers: Releases that the log shows to have read messages which this one cannot.
        on_verdict: Called with each message that led to events and was compared, whether it came out the same, and 1;
            with -1 in place of 1 if that is taken back.
    """

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        partitions: Partitions,
        *,
        keep: int,
        chosen: AbstractSet[str],
        reached: Callable[[], int],
    ) -> None:
        """Begin with nothing compared.

        Args:
            actors: Whose decisions are made again.
            partitions: The partition counts of the log.
            keep: How many differences are kept; all are counted.
            chosen: The exchanges whose differences are kept; empty: all.
            reached: Returns the sequence that the log is read up to.
        """
        self.coverage = {actor.name: Coverage(unverified={}, new_fields={}) for actor in actors}
        self.differences = Differences(keep)
        self.losses = Losses()
        # Actor, sequence of the message, and sequence at which the replay noticed the difference.
        self._differing_messages: list[tuple[str, int, int]] = []
        self.on_verdict: Callable[[Delivery, bool, int], None] | None = None
        self.partitions = partitions
        self._chosen = chosen
        self._reached = reached
        self._notes: dict[ActorPartition, _PartitionNotes] = {}
        # The last decision that came out as recorded, in case folding it raises.
        self._matched: tuple[tuple[NewEvent, ...], Compared] | None = None
        self._doubts: list[_Doubt] = []
        self.readers: frozenset[Kind] = frozenset()

    def watch(self, view: View) -> None:
        """Compare every decision that a view folds from here on and that its own recorded events show."""
        view.on_processed = partial(self._check, view)
        view.on_spontaneous = partial(self._check_spontaneous, view)
        view.on_unfolded = partial(self._check_unfolded, view)
        view.on_orphan = partial(self._check_orphan, view)

    def divide(self, partition: ActorPartition, name: str) -> None:
        """Copy what is known of a partition to one of those that it was divided into."""
        if (notes := self._notes.get(partition)) is not None:
            self._notes[partition[0], name] = notes.copy()

    def count_silent(self, view: View, processed: Processed) -> None:
        """Count a message that was decided here and led to no event."""
        reason = self.why_not_verifiable(view, processed)
        if reason:
            self._leave_unverified(view, reason, processed.delivery)
        else:
            self._count_identical(view, processed, 1)

    def note_folded_early(self, view: View) -> None:
        """Note that a view has folded waiting messages as if they had led to no event, before the log showed it."""
        self._notes_of(view).folded_early_upto = view.position

    def unreadable(self, view: View, own: Unreadable) -> None:
        """Count an own event of a view that cannot be read."""
        self._differ(view, own, ("body", body_text(own.stored.data), f"it cannot be read: {own.detail}"))

    def why_not_verifiable(self, view: View, processed: Processed) -> str:
        """Return why a decision cannot be made again, or nothing; called once for each, in order."""
        notes = self._notes_of(view)
        tracker, sealed = notes.sealed_words, False
        if tracker.may_matter(processed):
            sealed = tracker.needed_for(processed)
            tracker.fold(processed)
        unread = notes.unread_causes.reason(processed, view.shown_by)
        return (
            self._undecidable(view)
            or (APPEND_REFUSED if processed.recorded and any(map(_is_refusal, processed.recorded)) else "")
            or unread
            or (SEALED if sealed else "")
            or _missing_model(view, processed)
        )

    @property
    def doubtful(self) -> frozenset[Kind]:
        """Messages that this release cannot read, and would have failed on, and that led to nothing on record."""
        return frozenset(kind_of(doubt.message, doubt.shown_by) for doubt in self._doubts)

    def settle_doubts(self) -> None:
        """Count what is in doubt as different, unless whoever decided could read it; call it once, at the end."""
        readers = self.readers.union(*(notes.unread_causes.readers for notes in self._notes.values()))
        for view, message, shown_by, shown_at in self._doubts:
            if kind_of(message, shown_by) in readers:
                self._leave_unverified(view, unreadable_reason(message), message)
                continue
            failure = topics_text([topic_of(view.actor.failed)])
            found = "count", topics_text([]), f"{failure}, since {message.detail}"
            self._differ(view, message, found, shown_at)

    def excuse_losses(self) -> None:
        """Count differences that may come from lost messages as unverified instead; call it once, at the end."""
        for name, seq, shown_at in self._differing_messages:
            if self.losses.may_explain(seq, shown_at):
                self.coverage[name].different -= 1
                self.coverage[name].leave_unverified(LOG_LOSS, seq)
        self.differences.drop_if(lambda found: self.losses.may_explain(found.seq, found.shown_at))

    def _check_orphan(self, view: View, group: Sequence[Recorded]) -> None:
        """Count as a difference events of a message that was folded before, with other events or none."""
        if group[0].envelope.cause_seq <= self._notes_of(view).folded_early_upto:
            self.coverage[view.actor.name].identical -= 1
            self.coverage[view.actor.name].silent -= 1
        self._differ(view, group[0], ("count", topics_text([own.envelope.topic for own in group]), topics_text([])))

    def _check(self, view: View, processed: Processed) -> None:
        self._matched = None
        reason = self.why_not_verifiable(view, processed)
        if reason:
            self._leave_unverified(view, reason, processed.delivery)
            return
        message = processed.delivery
        if isinstance(message, Unreadable) and is_of_newer_version(message) and not processed.recorded:
            self._doubts.append(_Doubt(view, message, view.shown_by, self._reached()))
            return
        processed = _with_models(view, processed)
        where = self.partitions, view.partition
        try:
            decided = decide_only(view.actor, processed.before, processed.delivery, *where)
        except Exception:
            decided, _ = decide(view.actor, processed.before, processed.delivery, *where)
        if not decided and not processed.recorded:  # most messages
            self._matched = decided, SAME
            self._count_identical(view, processed, 1)
            return
        compared = compare(processed.recorded, decided, self._notes_of(view).bodies)
        if compared.difference is None:
            # Nothing is folded here: the view folds what is recorded. A decision that could not be folded was recorded
            # as a failure.
            self._matched = decided, compared
            self._count_identical(view, processed, 1)
            self._count_new(view, compared, 1)
        else:
            self._check_folded(view, processed, decided)

    def _check_unfolded(self, view: View, processed: Processed) -> None:
        """Compare again a decision whose fold raised: a live actor would have recorded a failure."""
        if self._matched is not None:
            decided, compared = self._matched
            self._count_identical(view, processed, -1)
            self._count_new(view, compared, -1)
            self._check_folded(view, processed, decided)

    def _check_folded(self, view: View, processed: Processed, decided: tuple[NewEvent, ...]) -> None:
        """Compare a decision after folding it, since a live actor folds a decision before it records anything."""
        delivery = processed.delivery
        folded, _ = fold_decided(view.actor, processed.before, delivery, decided, self.partitions, view.partition)
        compared = compare(processed.recorded, folded, self._notes_of(view).bodies)
        if compared.difference is None:
            self._count_identical(view, processed, 1)
        elif isinstance(delivery, Recorded) and self._notes_of(view).sealed_words.may_have_changed(delivery.message):
            self._leave_unverified(view, SEALED, delivery)
            return
        elif reason := self.why_untrusted(view, delivery):
            self._leave_unverified(view, reason, delivery)
            return
        else:
            self._differ(view, delivery, compared.difference)
        self._count_new(view, compared, 1)

    def why_untrusted(self, view: View, delivery: Delivery | None = None) -> str:
        """Return why a view's state may not be the one that a message, or an event of its own, was decided on.

        Without a message: why any part of the state may not.
        """
        notes = self._notes_of(view)
        return notes.untrusted or notes.unread_causes.state_reason(delivery)

    def _undecidable(self, view: View) -> str:
        """Return why nothing can be decided at a view's position; if so, note that its state is untrusted.

        Messages consumed under unreadable settings are folded under the previous settings, and those under a behaviour
        that this release does not have by another. So a later decision on that state may differ for this reason alone,
        whatever it was made under.
        """
        reason = view.undecidable
        if reason:
            notes = self._notes_of(view)
            notes.untrusted = notes.untrusted or reason
        return reason

    def _count_identical(self, view: View, processed: Processed, count: int) -> None:
        coverage = self.coverage[view.actor.name]
        coverage.identical += count
        if not processed.recorded:
            coverage.silent += count
        elif self.on_verdict is not None:
            self.on_verdict(processed.delivery, True, count)

    def _count_new(self, view: View, compared: Compared, count: int) -> None:
        counts = self.coverage[view.actor.name].new_fields
        for path in compared.new:
            counts[path] = counts.get(path, 0) + count

    def _notes_of(self, view: View) -> _PartitionNotes:
        key = view.actor.name, view.partition
        if key not in self._notes:
            self._notes[key] = _PartitionNotes(view.actor)
        return self._notes[key]

    def _check_spontaneous(self, view: View, own: Recorded, state: Any) -> None:
        coverage = self.coverage[view.actor.name]
        # A fact is what only the running process knew, such as its settings: nothing here can make it again.
        is_fact = own.envelope.topic == topic_of(view.actor.configured) or view.actor.timer is None
        event = own.message.event
        if isinstance(event, Configured) and (hashes := _settings_hashes(own, event)).recorded != hashes.actual:
            self._differ(view, own, ("settings_hash", hashes.recorded, hashes.actual))
        elif own.envelope.cause_seq < self._notes_of(view).folded_early_upto:
            self._leave_unverified(view, BEYOND_BACKLOG, own)
        elif is_fact:
            coverage.facts += 1
        elif own.stored.seal is Seal.CLOSED:
            self._leave_unverified(view, SEALED, own)
        elif reason := self._undecidable(view):
            self._leave_unverified(view, reason, own)
        else:
            compared = compare((own,), self._due_timer_events(view, own, state), self._notes_of(view).bodies)
            self._count_new(view, compared, 1)
            if compared.difference is None:
                coverage.timers += 1
            elif reason := self.why_untrusted(view, own):
                self._leave_unverified(view, reason, own)
            else:
                self._differ(view, own, compared.difference)

    def _due_timer_events(self, view: View, own: Recorded, state: Any) -> tuple[NewEvent, ...]:
        """Return the event of the timer that is due next, addressed as a live shell would."""
        timer = view.actor.timer(state) if view.actor.timer is not None else None
        if timer is None:
            return ()
        _, agent_token, session_token = split_stored(own.stored.subject)
        cause = Cause(timer.cause, view.position, view.time_ns, "", "", "", agent_token, session_token)
        return address_events(view.actor.name, cause, (timer.emission,), self.partitions)

    def _leave_unverified(self, view: View, reason: str, delivery: Delivery) -> None:
        self.coverage[view.actor.name].leave_unverified(reason, delivery.stored.seq)

    def _differ(self, view: View, delivery: Delivery, found: tuple[str, str, str], shown_at: int | None = None) -> None:
        shown_at = self._reached() if shown_at is None else shown_at
        self.coverage[view.actor.name].different += 1
        self._differing_messages.append((view.actor.name, delivery.stored.seq, shown_at))
        exchange = exchange_of(delivery)
        topic = split_stored(delivery.stored.subject)[0]
        where = view.actor.name, view.partition, delivery.stored.seq, topic, exchange
        if not self._chosen or exchange in self._chosen:
            self.differences.add(Difference(*where, *found, shown_at=shown_at))
        if self.on_verdict is not None:
            self.on_verdict(delivery, False, 1)


class _Doubt(NamedTuple):
    """A message that led to nothing, although this release cannot read it; ``shown_by`` is the event that shows it."""

    view: View
    message: Unreadable
    shown_by: Recorded | None
    shown_at: int


class _SettingsHashes(NamedTuple):
    recorded: str
    actual: str


def _settings_hashes(own: Recorded, event: Configured) -> _SettingsHashes:
    """Return the hash that was recorded with settings, and that of these settings as they were recorded.

    An upcaster changes the settings of an older version, but not their hash.
    """
    if own.envelope.version != entry_of(event).version:
        body = msgspec.json.decode(own.stored.data)
        if isinstance(body, dict) and "settings" in body and "settings_hash" in body:
            return _SettingsHashes(str(body["settings_hash"]), content_hash(body["settings"]))
    return _SettingsHashes(event.settings_hash, content_hash(event.settings))


def _is_refusal(recorded: Recorded) -> bool:
    event = recorded.message.event
    return isinstance(event, Failed) and event.reason == APPEND_REFUSED


def _with_models(view: View, processed: Processed) -> Processed:
    """Return a processed message with the models that its recorded decision names."""
    if view.actor.models is None or not processed.recorded:
        return processed
    names = tuple(name for own in processed.recorded for name in view.actor.models(own.message.event))
    return Processed(with_models(processed.delivery, names), processed.before, processed.recorded)


def _missing_model(view: View, processed: Processed) -> str:
    if view.actor.missing_model is None or not processed.recorded:
        return ""
    names = (view.actor.missing_model(own.message.event) for own in processed.recorded)
    return next((f"model_{name}" for name in names if name), "")
