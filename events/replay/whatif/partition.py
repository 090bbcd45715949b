"""The partitions of actors in the second timeline, and how each folds its messages.

The first timeline is the recorded log; in the second, the same inputs are decided anew under other settings.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from events.decoding import Recorded
from events.log import Stored
from events.make_decision import NewEvent, at_behaviour, fold
from events.partition_fold import Delivery, Processed
from events.replay.verifying.sealed_words import SealedWordsTracker
from events.replay.verifying.unread_causes import StateGaps
from events.replay.verifying.verification import ActorPartition
from events.replay.whatif.changes import Changes
from events.replay.whatif.record_index import RecordIndex
from events.routes import lineage, routes
from events.state_division import part_of
from schemas.actor import MISSING_BEHAVIOUR, Actor, Scope, Timer
from schemas.catalogue import CATALOGUE
from schemas.envelope import Envelope
from schemas.event import Configured
from schemas.subjects import Partitions


class Partition:
    """A partition's state.

    Attributes:
        position: Sequence of the last message it was given, and ``time_ns`` its time.
        spontaneous: Recorded events that no message led to, still to be folded.
        decided_upto: Sequence of the last message that the recorded log shows as decided; the log ends before the
            decisions on later ones.
        may_differ: Whether its decisions may differ from the recorded ones: its settings or behaviour are changed, or
            it has received other messages than in the record.
        behaviour: The behaviour in force at its position.
        agents: The agents whose messages it has received.
        gaps: What its state lacks, since this release cannot read it.
    """

    def __init__(
        self,
        actor: Actor[Any],
        name: str,
        spontaneous: Sequence[Recorded],
        decided_upto: int,
        changes: Changes,
        unread_settings: Sequence[tuple[int, str]] = (),
    ) -> None:
        self.actor = actor
        self.name = name
        self.state: Any = actor.initial()
        self.position = self.time_ns = 0
        self.spontaneous = deque(spontaneous)
        self.decided_upto = decided_upto
        self.may_differ = False
        self.behaviour = actor.behaviour
        self.agents: set[str] = set()
        self._latest = changes.latest  # whether the newest behaviour decides everything
        self._sealed_words = SealedWordsTracker(actor)
        self.gaps = StateGaps(actor.scope)
        readable = (
            (recorded.envelope.cause_seq, changes.undecidable(actor, recorded.message.event))
            for recorded in spontaneous
            if isinstance(recorded.message.event, Configured)
        )
        self._undecidable = tuple(sorted((*readable, *unread_settings), key=itemgetter(0)))

    def begin_as_part_of(self, origin: "Partition", partitions: Partitions) -> None:
        """Continue from the partition that this one was divided from, with its part of that one's state."""
        scope = self.actor.scope

        def is_mine(key: str) -> bool:
            return partitions.resolve(origin.name, key, scope is Scope.SESSION) == self.name

        self.state = part_of(origin.state, scope, origin.agents, is_mine)
        self.position, self.time_ns, self.behaviour = origin.position, origin.time_ns, origin.behaviour
        self.decided_upto = max(self.decided_upto, origin.decided_upto)
        self.may_differ = origin.may_differ
        self.spontaneous.extendleft(reversed(origin.spontaneous))
        self._sealed_words, self.gaps = origin._sealed_words.copy(), origin.gaps.copy()
        self._undecidable = (*origin._undecidable, *self._undecidable)

    def needs_sealed(self, delivery: Delivery) -> bool:
        """Whether a decision needs, or may depend on, words that cannot be opened; call it once, before the fold."""
        processed = Processed(at_behaviour(delivery, self.behaviour), self.state, ())
        if not self._sealed_words.may_matter(processed):
            return False
        needed = self._sealed_words.needed_for(processed)
        self._sealed_words.fold(processed)
        return needed or (isinstance(delivery, Recorded) and self._sealed_words.may_have_changed(delivery.message))

    def note_own(self, recorded: Recorded) -> None:
        """Note unreadable sealed words in an event of this actor, before it is folded from the record."""
        processed = Processed(recorded, self.state, ())
        if self._sealed_words.may_matter(processed):
            self._sealed_words.fold(processed)

    def fold_message(self, delivery: Recorded) -> None:
        """Fold a message without its events."""
        try:
            self.state = fold(self.actor, self.state, at_behaviour(delivery, self.behaviour), ())
        except Exception:
            # Skipped, as in a view. Live, a failure is recorded instead.
            return

    def fold_own(self, recorded: Recorded) -> None:
        """Fold an event of this actor."""
        try:
            message = msgspec.structs.replace(recorded.message, behaviour=self.behaviour)
            self.state = self.actor.fold(self.state, message)
        except Exception:
            # Skipped, as in a view: the event may have been recorded by another release of the decider.
            return

    def fold_at_position(self, recorded: Recorded) -> None:
        """Fold an event that no message led to, at the partition's present position."""
        message = msgspec.structs.replace(recorded.message, seq=self.position, time_ns=self.time_ns)
        self.fold_own(msgspec.structs.replace(recorded, message=message))

    def configure(self, recorded: Recorded, behaviour: int) -> bool:
        """Fold recorded settings and their behaviour; return whether another behaviour is in force here."""
        self.behaviour = self.actor.behaviour if self._latest else behaviour
        self.fold_at_position(recorded)
        return self.behaviour != behaviour

    def undecidable(self, seq: int) -> str:
        """Return why a message cannot be decided again (behaviour or settings are missing here); empty if it can."""
        return next((reason for position, reason in reversed(self._undecidable) if position < seq), "")

    def why_untrusted(self, seq: int) -> str:
        """Return why its state at a message may differ from the recorded one though nothing was changed; else empty.

        What was decided before under a behaviour that is missing here was folded under another. Where something was
        changed, the state may differ, and decisions are made on it nevertheless.
        """
        if self.may_differ:
            return ""
        before = (reason for position, reason in self._undecidable if position < seq)
        return next((reason for reason in before if reason.startswith(MISSING_BEHAVIOUR)), "")

    @property
    def timer(self) -> Timer | None:
        """The timer that is due next."""
        return self.actor.timer(self.state) if self.actor.timer is not None else None


class TimelinePartitions:
    """All partitions of the actors that took part, each made when it is first needed.

    Attributes:
        timed: Those of actors that have timers.
        partitions: The counts in force.
    """

    def __init__(
        self, actors: Iterable[Actor[Any]], partitions: Partitions, past: RecordIndex, changes: Changes
    ) -> None:
        self._actors = tuple(actors)
        self._generations = iter(partitions.generations)
        self._through, self.partitions = next(self._generations)
        self._past = past
        self._changes = changes
        self._by_key: dict[ActorPartition, Partition] = {}
        self._divided: dict[ActorPartition, Partition] = {}
        self._consuming: dict[str, tuple[Partition, ...]] = {}
        self.timed: list[Partition] = []

    def reach(self, seq: int) -> None:
        """Proceed to the message of a sequence, with the partitions that the log had there."""
        while seq > self._through:
            self._through, self.partitions = next(self._generations)
            self._consuming.clear()
            undivided = {key: each for key, each in self._by_key.items() if each.actor.scope is Scope.GLOBAL}
            self._divided, self._by_key = self._by_key, undivided

    def consuming(self, subject: str) -> tuple[Partition, ...]:
        """Return the partitions that consume messages of a stored subject."""
        found = self._consuming.get(subject)
        if found is None:
            routed = routes(self._actors, subject, self.partitions)
            found = tuple(self._partition(actor, name) for actor, name, own in routed if not own)
            self._consuming[subject] = found
        return found

    def writing(self, actor: Actor[Any], subject: str) -> list[Partition]:
        """Return the partitions of an actor that may have written messages of a stored subject."""
        routed = routes([actor], subject, self.partitions)
        return [self._partition(owner, name) for owner, name, own in routed if own]

    def _partition(self, actor: Actor[Any], name: str) -> Partition:
        key = actor.name, name
        partition = self._by_key.get(key)
        if partition is None:
            past = self._past
            recorded = past.spontaneous.get(key, ()), past.decided_upto.get(key, 0)
            unread_settings = past.unread_settings.get(key, ())
            partition = self._by_key[key] = Partition(actor, name, *recorded, self._changes, unread_settings)
            names = lineage(actor, name, self.partitions)[:-1]
            if names and (origin := self._divided.get((actor.name, names[-1]))) is not None:
                partition.begin_as_part_of(origin, self.partitions)
            if actor.timer is not None:
                self.timed.append(partition)
        return partition


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
        version=CATALOGUE[decided.topic].version,
    )
    return Recorded(Stored(seq, time_ns, decided.subject, {}, decided.data), envelope, message)


def moved_to(recorded: Recorded, target: Stored) -> Recorded:
    """Return an external event as if it had been stored at another message's sequence and time."""
    stored = msgspec.structs.replace(recorded.stored, seq=target.seq, time_ns=target.time_ns)
    message = msgspec.structs.replace(recorded.message, seq=target.seq, time_ns=target.time_ns)
    return Recorded(stored, recorded.envelope, message)
