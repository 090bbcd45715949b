"""The second timeline: every partition's state under other settings, message by message."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import msgspec

from events.body_comparison import BodyComparison
from events.codec import Recorded, Unreadable, decode, is_spontaneous
from events.decision import Cause, NewEvent, address_events, at_behaviour, decide, fold_decided, with_models
from events.errors import Misconfigured
from events.log import Stored
from events.replay.verifying.sealed_words import SEALED
from events.replay.whatif.alignment import with_recorded_ids
from events.replay.whatif.changes import Changes, changed_settings
from events.replay.whatif.comparison import Comparison, change_of
from events.replay.whatif.decision_comparer import DecisionComparer, asks_alike
from events.replay.whatif.partition import Partition, TimelinePartitions, moved_to, recorded_of
from events.replay.whatif.record_index import RecordIndex
from events.replay.whatif.report import LATEST, MOST_EXAMPLES, RECORDED, Change, Report, Tally, undecided_actors
from events.view import Delivery
from schemas.actor import Actor, Timer
from schemas.catalogue import CATALOGUE
from schemas.event import Configured, Event, topic_of
from schemas.identity import event_id
from schemas.subjects import NO_PARTITION, Partitions, split_stored
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted


class Timeline:
    """Decides a record anew; feed it every message that ``RecordIndexer`` was fed, in order.

    Raises Misconfigured where a changed actor took no part, or changed settings are not valid over the recorded ones.

    Args:
        actors: All actors there are; of them, those that took part decide.
        partitions: The log's partition counts.
        past: The record in outline.
        changes: What is otherwise.
        requests: The events that ask for an effect.
        examples: Changed exchanges that are kept for the report.
        of: The exchanges of which they are kept, and whose fates are told; default: of all, and of none.
    """

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        partitions: Partitions,
        past: RecordIndex,
        changes: Changes,
        requests: frozenset[type[Event]],
        examples: int = MOST_EXAMPLES,
        of: frozenset[str] = frozenset(),
    ) -> None:
        self._actors = {actor.name: actor for actor in actors if actor.name in past.actors}
        self._past = past
        self._changes = changes
        self._requests = requests
        self._strands = TimelinePartitions(self._actors.values(), partitions, past, changes)
        self._due: dict[str, NewEvent] = {}
        self._fired: set[str] = set()
        self._asked: set[str] = set()
        self._otherwise = {each.message.id for each in changes.added}
        self._held: set[tuple[str, str]] = set()
        self._cut: set[str] = set()
        others = changes.dropped | {topic_of(type(each.message.event)) for each in changes.added}
        self._in_question = {
            name for name, actor in self._actors.items() if not others.isdisjoint(map(topic_of, actor.consumes))
        }
        self._from_record: set[str] = set()
        self._queue: deque[Recorded] = deque()
        self._pending: list[NewEvent] = []
        self._comparison = Comparison(examples, of)
        self._tallies = {name: Tally(held={}, new_fields={}, behaviours={}) for name in self._actors}
        self._sayings = DecisionComparer(self._tallies)
        self._effects: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()
        self._events = self._seq = 0
        self._added = deque(changes.added)
        if absent := sorted(set(changes.settings) - set(self._actors)):
            raise Misconfigured(f"the log holds nothing of {', '.join(absent)}: settings of it cannot be changed")

    def feed(self, stored: Stored) -> None:
        """Take the next message of the record."""
        self._strands.reach(stored.seq)
        self._events += 1
        self._seq = stored.seq
        self._pass_time(stored)
        try:
            topic = split_stored(stored.subject)[0]
        except ValueError:
            return
        delivery = decode(stored)
        if isinstance(delivery, Unreadable):
            self._unreadable[delivery.code] += 1
        entry = CATALOGUE.get(topic)
        if topic in self._changes.dropped:
            self._withhold(stored.subject)
            return
        if entry is not None and entry.owner in self._actors:
            if isinstance(delivery, Recorded):
                self._take_own(self._actors[entry.owner], delivery)
        elif isinstance(delivery, Unreadable) or not delivery.envelope.cause:
            self._take_given(delivery)
        elif delivery.envelope.cause in self._asked:
            self._reuse(delivery)
        else:
            self._withhold(stored.subject)
        self._drain()

    def finish(self) -> Report:
        """Return the report; call it once."""
        self._go_on_behind_the_end()
        self._comparison.close_all()
        unanswered = undecided_actors(self._in_question, self._tallies, self._from_record)
        report = self._comparison.report(self._events, self._tallies, self._effects, self._unreadable, unanswered)
        measured, all_measured = self._changes.measured(self._actors)
        behaviour = LATEST if self._changes.latest else RECORDED
        return msgspec.structs.replace(report, behaviour=behaviour, measured=measured, all_measured=all_measured)

    def _go_on_behind_the_end(self) -> None:
        """Have decisions that the record ends before take effect in exchanges that have taken another course."""
        for decided in self._pending:
            if self._comparison.has_diverged(decided.message.exchange):
                self._otherwise.add(decided.message.id)
                self._queue.append(recorded_of(decided, self._seq, decided.message.time_ns))
                if type(decided.message.event) in self._requests:
                    self._cut_branch(decided, "never_asked")
                self._drain()

    def _take_given(self, delivery: Delivery) -> None:
        while self._added:
            self._deliver(moved_to(self._added.popleft(), delivery.stored))
            self._drain()
        if isinstance(delivery, Recorded) and isinstance(delivery.message.event, InputReceived):
            self._comparison.begin(delivery.message.exchange, delivery.stored.seq, delivery.message.event.text)
        self._deliver(delivery)

    def _reuse(self, effect: Recorded) -> None:
        if effect.envelope.index + 1 >= effect.envelope.count:
            self._asked.discard(effect.envelope.cause)
        self._note_asked(effect)  # an effect may be a request itself: a delivery that is put off
        self._effects["reused"] += 1
        self._deliver(effect)

    # --- recorded events of actors

    def _take_own(self, actor: Actor[Any], recorded: Recorded) -> None:
        """Put what the second timeline has of a recorded event in its place."""
        message, envelope = recorded.message, recorded.envelope
        self._comparison.ended(message.exchange, message.event, on_record=True)
        if is_spontaneous(envelope.topic):
            self._take_spontaneous(actor, recorded)
        elif self._stands(actor, recorded):
            self._note_asked(recorded)
            self._from_record.add(actor.name)
            self._comparison.from_record(message.exchange, actor.name)
            self._fold_held(actor, recorded)
            self._place(recorded)
        elif (decided := self._due.pop(envelope.id, None)) is None:
            self._note_gone(actor, recorded)
        elif (said := self._sayings.differing(actor.name, recorded, decided)) is None:
            # As it was recorded: whoever hears of it heard nothing of fields that are new.
            self._tallies[actor.name].identical += 1
            self._note_asked(recorded)
            self._place(recorded)
        else:
            self._tallies[actor.name].different += 1
            self._note(recorded, decided, said)
            self._withhold(recorded.stored.subject)
            self._place(recorded_of(decided, recorded.stored.seq, recorded.stored.time_ns))
            if asks_alike(message.event, decided.message.event):
                self._note_asked(recorded)
            elif type(decided.message.event) in self._requests:
                # Ids tell causes, not kinds: another event may have been recorded in this one's stead.
                self._cut_branch(decided, "asked_otherwise" if envelope.topic == decided.topic else "never_asked")

    def _note_asked(self, recorded: Recorded) -> None:
        """Have the answers to an event be taken from the record, if it is a request."""
        if type(recorded.message.event) in self._requests:
            self._asked.add(recorded.message.id)

    def _stands(self, actor: Actor[Any], recorded: Recorded) -> bool:
        """Whether an event is taken from the record: its decision is held, its exchange on its recorded course."""
        writing = self._strands.writing(actor, recorded.stored.subject)
        if any(strand.undecidable(recorded.envelope.cause_seq) for strand in writing):
            return not self._comparison.has_diverged(recorded.message.exchange)
        return (actor.name, recorded.envelope.cause) in self._held

    def _take_spontaneous(self, actor: Actor[Any], recorded: Recorded) -> None:
        if isinstance(recorded.message.event, Configured):
            return  # settings: folded at their place, and nobody else's concern
        if not isinstance(recorded.message.event, ClockFired):
            self._deliver(recorded)  # what was measured, whoever decides otherwise
        elif recorded.message.id in self._fired:
            self._fired.discard(recorded.message.id)
            self._tallies[actor.name].identical += 1
            self._deliver(recorded)
        else:
            self._note_gone(actor, recorded)

    def _note_gone(self, actor: Actor[Any], recorded: Recorded) -> None:
        self._tallies[actor.name].gone += 1
        message = recorded.message
        change = change_of(recorded.stored.seq, actor.name, message.event, None)
        if self._is_heard(message.event, recorded.stored.subject):
            self._comparison.differs(message.exchange, change)
        self._withhold(recorded.stored.subject)

    def _withhold(self, subject: str) -> None:
        """Note that a recorded event does not exist in the second timeline."""
        for strand in self._strands.consuming(subject):
            strand.other = True

    def _note(self, recorded: Recorded, decided: NewEvent, said: BodyComparison) -> None:
        self._otherwise.add(decided.message.id)
        owner = CATALOGUE[decided.topic].owner
        change = Change(recorded.stored.seq, owner, recorded.envelope.topic, said.recorded, said.redecided)
        heard = ((recorded.message.event, recorded.stored.subject), (decided.message.event, decided.subject))
        if any(self._is_heard(event, subject) for event, subject in heard):
            self._comparison.differs(decided.message.exchange, change)

    def _is_heard(self, event: Event, subject: str) -> bool:
        """Whether an actor or effector consumes an event, or it ends an exchange.

        Any other event (a notice of a changed library, say) does not change an exchange's course.
        """
        is_asked_for = isinstance(event, ResponseEmitted) or type(event) in self._requests
        return is_asked_for or bool(self._strands.consuming(subject))

    def _place(self, recorded: Recorded) -> None:
        """Have an event of the second timeline take effect."""
        self._comparison.ended(recorded.message.exchange, recorded.message.event, on_record=False)
        self._deliver(recorded)

    # --- decisions

    def _deliver(self, delivery: Delivery) -> None:
        is_other = isinstance(delivery, Recorded) and delivery.message.id in self._otherwise
        for strand in self._strands.consuming(delivery.stored.subject):
            strand.other = strand.other or is_other
            self._decide(strand, delivery)

    def _drain(self) -> None:
        while self._queue:
            self._place(self._queue.popleft())

    def _decide(self, strand: Partition, delivery: Delivery) -> None:
        self._fold_spontaneous(strand, delivery.stored.seq)
        if isinstance(delivery, Recorded):
            strand.agents.add(delivery.envelope.agent)
        strand.place, strand.time_ns = delivery.stored.seq, delivery.stored.time_ns
        tally = self._tallies[strand.actor.name]
        reason = self._why_held(strand, delivery)
        if reason:
            tally.held[reason] = tally.held.get(reason, 0) + 1
            self._hold(strand, delivery)
            return
        tally.decided += 1
        tally.behaviours[strand.behaviour] = tally.behaviours.get(strand.behaviour, 0) + 1
        if isinstance(delivery, Recorded):
            self._comparison.decided(delivery.message.exchange)
        decided, strand.state = self._decide_like_record(strand, delivery)
        is_open = delivery.stored.seq > strand.edge and not strand.other
        for event in decided:
            self._emit(event, is_open)

    def _decide_like_record(self, strand: Partition, delivery: Delivery) -> tuple[tuple[NewEvent, ...], Any]:
        actor, before, delivery = strand.actor, strand.state, at_behaviour(delivery, strand.behaviour)
        if isinstance(delivery, Recorded) and self._past.models:
            delivery = with_models(delivery, self._past.models.get((actor.name, delivery.envelope.id), ()))
        decided, after = decide(actor, before, delivery, self._strands.partitions, strand.partition)
        like = with_recorded_ids(decided, (actor.name, f"{actor.name}/{strand.partition}"), self._past)
        if like is decided:
            return decided, after
        return fold_decided(actor, before, delivery, like, self._strands.partitions, strand.partition)

    def _emit(self, decided: NewEvent, is_open: bool) -> None:
        """Deliver the events of a decision; ``is_open``: if they are not in the record, they may still come there."""
        message, owner = decided.message, CATALOGUE[decided.topic].owner
        if self._past.place_of(message.id) > self._seq:
            self._due[message.id] = decided
        elif is_open and not self._comparison.has_diverged(message.exchange):
            self._tallies[owner].pending += 1
            if self._comparison.is_open(message.exchange):
                self._pending.append(decided)
        else:
            self._tallies[owner].new += 1
            self._otherwise.add(message.id)
            if self._is_heard(message.event, decided.subject):
                self._comparison.differs(message.exchange, change_of(decided.cause_seq, owner, None, message.event))
            self._queue.append(recorded_of(decided, decided.cause_seq, message.time_ns))
            if type(message.event) in self._requests:
                self._cut_branch(decided, "never_asked")

    def _cut_branch(self, decided: NewEvent, why: str) -> None:
        self._effects[why] += 1
        exchange = decided.message.exchange
        if exchange:
            self._cut.add(exchange)
            self._comparison.cut(exchange)

    # --- what cannot be decided anew

    def _why_held(self, strand: Partition, delivery: Delivery) -> str:
        sealed = strand.needs_sealed(delivery)
        if reason := strand.undecidable(delivery.stored.seq):
            return reason
        if sealed:
            return SEALED
        if isinstance(delivery, Unreadable):
            return ""
        return self._past.held.get((strand.actor.name, delivery.envelope.id), "")

    def _hold(self, strand: Partition, delivery: Delivery) -> None:
        if not isinstance(delivery, Recorded):
            return
        self._held.add((strand.actor.name, delivery.envelope.id))
        strand.fold_given(delivery)
        if strand.actor.name in self._in_question:
            self._comparison.held(delivery.message.exchange)
        if delivery.message.id in self._otherwise:
            self._comparison.unknown(delivery.message.exchange, strand.actor.name)

    def _fold_held(self, actor: Actor[Any], recorded: Recorded) -> None:
        for strand in self._strands.writing(actor, recorded.stored.subject):
            strand.note_own(recorded)
            strand.fold_own(recorded)

    # --- settings and timers

    def _fold_spontaneous(self, strand: Partition, before: int) -> None:
        """Fold the recorded events without a message that come before the message of sequence ``before``."""
        while strand.spontaneous and strand.spontaneous[0].envelope.cause_seq < before:
            recorded = strand.spontaneous.popleft()
            event = recorded.message.event
            if isinstance(event, Configured):
                self._configure(strand, recorded, event)
            elif isinstance(event, ClockFired):
                self._fire_recorded(strand, recorded, event)
            else:
                strand.fold_here(recorded)

    def _configure(self, strand: Partition, recorded: Recorded, event: Configured) -> None:
        changed = self._changes.settings.get(strand.actor.name)
        if changed:
            event, is_other = changed_settings(strand.actor, event, changed)
            if is_other:
                strand.other = True
                self._in_question.add(strand.actor.name)
            recorded = msgspec.structs.replace(recorded, message=msgspec.structs.replace(recorded.message, event=event))
        if strand.configure(recorded, event.behaviour):
            strand.other = True
            self._in_question.add(strand.actor.name)

    def _fire_recorded(self, strand: Partition, recorded: Recorded, event: ClockFired) -> None:
        """Have a timer go off that did so on record, if it is still pending."""
        while (timer := strand.timer) is not None and timer.due_ns <= event.due_ns:
            id = event_id(timer.cause, strand.actor.name, 0)
            if id == recorded.message.id:
                strand.fold_here(recorded)
                self._fired.add(id)
                return
            if not self._fire(strand, timer):
                return

    def _pass_time(self, stored: Stored) -> None:
        """Have timers go off that are due by now and did not on record."""
        for strand in self._strands.timed:
            self._fold_spontaneous(strand, stored.seq)
            while (timer := strand.timer) is not None and timer.due_ns <= stored.time_ns:
                if self._past.place_of(event_id(timer.cause, strand.actor.name, 0)) >= stored.seq:
                    break  # its place on record is still to come
                if not self._fire(strand, timer):
                    break
        self._drain()

    def _fire(self, strand: Partition, timer: Timer) -> bool:
        """Fold a timer that did not go off on record; it takes effect only where the course is another.

        Elsewhere something settled it on record, a little late, and will here. Returns whether it is off the state.
        """
        emission = timer.emission
        cause = Cause(timer.cause, self._seq, timer.due_ns, "", "", "", NO_PARTITION, NO_PARTITION)
        (decided,) = address_events(strand.actor.name, cause, (emission,), self._strands.partitions)
        recorded = recorded_of(decided, self._seq, timer.due_ns)
        strand.fold_own(recorded)
        if emission.exchange:
            counts = emission.exchange not in self._cut and self._comparison.has_diverged(emission.exchange)
        else:
            counts = timer.cause in self._otherwise
        if counts:
            self._tallies[strand.actor.name].new += 1
            self._otherwise.add(recorded.message.id)
            self._queue.append(recorded)
        again = strand.timer
        return again is None or again != timer
