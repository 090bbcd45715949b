"""The partitions of actors in the second timeline, and how each folds its messages."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from events.codec import Recorded
from events.decision import NewEvent, at_behaviour, fold
from events.division import part_of
from events.log import Stored
from events.replay.verifying.sealed_words import SealedWordsTracker
from events.replay.whatif.changes import Changes
from events.replay.whatif.record_index import Key, RecordIndex
from events.routes import lineage, routes
from events.view import Delivery, Processed
from schemas.actor import Actor, Scope, Timer
from schemas.envelope import Envelope
from schemas.event import Configured
from schemas.subjects import Partitions


class Partition:
    """A partition's state.

    Attributes:
        place: Sequence of the last message it was given, and ``time_ns`` its time.
        spontaneous: Recorded events that no message led to, still to be folded.
        edge: Sequence up to which its messages were decided when the record ended.
        other: Whether it may decide a recorded message otherwise than it did, or would have behind the record's end: it
            has other settings or another behaviour, or was given what the record does not hold, or not what it holds.
        behaviour: The behaviour in force where it stands.
        agents: The agents that it had messages of.
    """

    def __init__(
        self, actor: Actor[Any], partition: str, spontaneous: Sequence[Recorded], edge: int, changes: Changes
    ) -> None:
        self.actor = actor
        self.partition = partition
        self.state: Any = actor.initial()
        self.place = self.time_ns = 0
        self.spontaneous = deque(spontaneous)
        self.edge = edge
        self.other = False
        self.behaviour = actor.behaviour
        self.agents: set[str] = set()
        self._latest = changes.latest
        self._forgotten = SealedWordsTracker(actor)
        self._undecidable = tuple(
            (recorded.envelope.cause_seq, changes.undecidable(actor, recorded.message.event))
            for recorded in spontaneous
            if isinstance(recorded.message.event, Configured)
        )

    def begin_as_part_of(self, origin: "Partition", partitions: Partitions) -> None:
        """Go on from the partition that this one was divided from, with its part of that one's state."""
        scope = self.actor.scope

        def is_mine(key: str) -> bool:
            return partitions.resolve(origin.partition, key, scope is Scope.SESSION) == self.partition

        self.state = part_of(origin.state, scope, origin.agents, is_mine)
        self.place, self.time_ns, self.behaviour = origin.place, origin.time_ns, origin.behaviour
        self.edge, self.other = max(self.edge, origin.edge), origin.other
        self.spontaneous.extendleft(reversed(origin.spontaneous))
        self._forgotten = origin._forgotten.copy()
        self._undecidable = (*origin._undecidable, *self._undecidable)

    def needs_sealed(self, delivery: Delivery) -> bool:
        """Whether a decision needs, or may rest on, words that cannot be opened; to be asked once, before the fold."""
        settled = Processed(at_behaviour(delivery, self.behaviour), self.state, ())
        if not self._forgotten.may_matter(settled):
            return False
        needed = self._forgotten.needed_for(settled)
        self._forgotten.fold(settled)
        return needed or (isinstance(delivery, Recorded) and self._forgotten.may_have_changed(delivery.message))

    def note_own(self, recorded: Recorded) -> None:
        """Note unreadable sealed words in an event of this actor, before it is folded from the record."""
        settled = Processed(recorded, self.state, ())
        if self._forgotten.may_matter(settled):
            self._forgotten.fold(settled)

    def fold_given(self, delivery: Recorded) -> None:
        """Fold a message alone, without what it leads to."""
        try:
            self.state = fold(self.actor, self.state, at_behaviour(delivery, self.behaviour), ())
        except Exception:
            # As live, where the failure is recorded, and as a view does.
            return

    def fold_own(self, recorded: Recorded) -> None:
        """Fold an event of this actor."""
        try:
            message = msgspec.structs.replace(recorded.message, behaviour=self.behaviour)
            self.state = self.actor.fold(self.state, message)
        except Exception:
            # Recorded by another release of the decider; views pass such an event over, and so does this.
            return

    def fold_here(self, recorded: Recorded) -> None:
        """Fold an event that no message led to, at the partition's present position."""
        message = msgspec.structs.replace(recorded.message, seq=self.place, time_ns=self.time_ns)
        self.fold_own(msgspec.structs.replace(recorded, message=message))

    def configure(self, recorded: Recorded, behaviour: int) -> bool:
        """Fold settings, behind which a behaviour was in force on record; return whether it is another one here."""
        self.behaviour = self.actor.behaviour if self._latest else behaviour
        self.fold_here(recorded)
        return self.behaviour != behaviour

    def undecidable(self, seq: int) -> str:
        """Return why a message cannot be decided again (behaviour or settings are missing here); empty if it can."""
        return next((reason for place, reason in reversed(self._undecidable) if place < seq), "")

    @property
    def timer(self) -> Timer | None:
        """The earliest event that it owes to the passing of time."""
        return self.actor.timer(self.state) if self.actor.timer is not None else None


class TimelinePartitions:
    """All partitions of the actors that took part, each made when it is first needed.

    Attributes:
        timed: Those of actors that act by time.
        partitions: The counts in force.
    """

    def __init__(
        self, actors: Iterable[Actor[Any]], partitions: Partitions, past: RecordIndex, changes: Changes
    ) -> None:
        self._actors = tuple(actors)
        self._stages = iter(partitions.stages)
        self._through, self.partitions = next(self._stages)
        self._past = past
        self._changes = changes
        self._strands: dict[Key, Partition] = {}
        self._divided: dict[Key, Partition] = {}
        self._consuming: dict[str, tuple[Partition, ...]] = {}
        self.timed: list[Partition] = []

    def reach(self, seq: int) -> None:
        """Go on to the message of a sequence, with the partitions that the log had there."""
        while seq > self._through:
            self._through, self.partitions = next(self._stages)
            self._consuming.clear()
            whole = {key: strand for key, strand in self._strands.items() if strand.actor.scope is Scope.GLOBAL}
            self._divided, self._strands = self._strands, whole

    def consuming(self, subject: str) -> tuple[Partition, ...]:
        """Return the partitions that consume messages of a stored subject."""
        found = self._consuming.get(subject)
        if found is None:
            routed = routes(self._actors, subject, self.partitions)
            found = tuple(self._of(actor, partition) for actor, partition, own in routed if not own)
            self._consuming[subject] = found
        return found

    def writing(self, actor: Actor[Any], subject: str) -> list[Partition]:
        """Return the partitions of an actor that may have written messages of a stored subject."""
        routed = routes([actor], subject, self.partitions)
        return [self._of(owner, partition) for owner, partition, own in routed if own]

    def _of(self, actor: Actor[Any], partition: str) -> Partition:
        key = actor.name, partition
        strand = self._strands.get(key)
        if strand is None:
            spontaneous, edge = self._past.spontaneous.get(key, ()), self._past.edges.get(key, 0)
            strand = self._strands[key] = Partition(actor, partition, spontaneous, edge, self._changes)
            names = lineage(actor, partition, self.partitions)[:-1]
            if names and (origin := self._divided.get((actor.name, names[-1]))) is not None:
                strand.begin_as_part_of(origin, self.partitions)
            if actor.timer is not None:
                self.timed.append(strand)
        return strand


def recorded_of(decided: NewEvent, seq: int, time_ns: int) -> Recorded:
    """Return an event of the second timeline as if it had been stored at a sequence and time."""
    message = msgspec.structs.replace(decided.message, seq=seq, time_ns=time_ns)
    envelope = Envelope(
        id=message.id,
        topic=decided.topic,
        source="",
        time="",
        agent=message.agent,
        session=message.session,
        exchange=message.exchange,
        cause=decided.cause,
        cause_seq=decided.cause_seq,
        index=decided.index,
        count=decided.count,
    )
    return Recorded(Stored(seq, time_ns, decided.subject, {}, decided.data), envelope, message)


def moved_to(recorded: Recorded, place: Stored) -> Recorded:
    """Return an external event as if it had been stored at another message's place."""
    stored = msgspec.structs.replace(recorded.stored, seq=place.seq, time_ns=place.time_ns)
    message = msgspec.structs.replace(recorded.message, seq=place.seq, time_ns=place.time_ns)
    return Recorded(stored, recorded.envelope, message)
