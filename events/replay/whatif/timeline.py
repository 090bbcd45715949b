"""The second timeline of a what-if: decides every message again under the changes, and compares the events.

``events.replay.whatif`` states its rules. *Held* decisions are those that cannot be made again: their events are taken
from the record.
"""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import msgspec

from events.decoding import Recorded, Unreadable, decode, exchange_of, is_spontaneous
from events.log import Stored
from events.make_decision import (
    Cause,
    NewEvent,
    address_events,
    at_behaviour,
    decide,
    fold_decided,
    with_models,
)
from events.partition_fold import Delivery
from events.replay.body_comparison import BodyComparison
from events.replay.verifying.unread_causes import unreadable_reason
from events.replay.verifying.without_actor import has_decider
from events.replay.whatif.alignment import DecisionComparer, asks_alike, with_recorded_ids
from events.replay.whatif.changes import Changes, UnfitChanges, changed_settings
from events.replay.whatif.comparison import Comparison, change_of
from events.replay.whatif.held_decisions import HeldDecisions
from events.replay.whatif.partition import Partition, TimelinePartitions, moved_to, recorded_of
from events.replay.whatif.record_index import RecordIndex
from events.replay.whatif.report import LATEST, MOST_EXAMPLES, RECORDED, Change, Report, Tally, undecided_actors
from schemas.actor import Actor, Timer
from schemas.catalogue import CATALOGUE, requests_to
from schemas.envelope import exchange_in
from schemas.event import Configured, Event, topic_of
from schemas.identity import event_id
from schemas.subjects import NO_PARTITION, Partitions, split_stored
from schemas.vocabulary.arbiter import ArbiterPassed
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

_INPUT = topic_of(InputReceived)


class Timeline:
    """Decides a recorded log again; feed it every message that ``RecordIndexer`` was fed, in order.

    Raises UnfitChanges if the log holds nothing of a changed actor, or changed settings are not valid with the
    recorded ones.

    Args:
        actors: All actors; those that recorded anything decide.
        partitions: The log's partition counts.
        past: The index of the recorded log.
        changes: What is changed.
        requests: The events that ask for an effect.
        examples: How many changed exchanges are kept for the report.
        chosen: Exchanges that are traced: their fates are reported, and only they are kept as examples. Default: all
            may be examples, and none is traced.
    """

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        partitions: Partitions,
        past: RecordIndex,
        changes: Changes,
        requests: frozenset[type[Event]],
        examples: int = MOST_EXAMPLES,
        chosen: frozenset[str] = frozenset(),
    ) -> None:
        self._actors = {actor.name: actor for actor in actors if actor.name in past.actors}
        self._past = past
        self._changes = changes
        self._requests = requests
        self._all_partitions = TimelinePartitions(self._actors.values(), partitions, past, changes)
        # Decided events whose ids the record holds further on, by id: they are delivered at their recorded position.
        self._expected: dict[str, NewEvent] = {}
        # Ids of recorded timer events that were fired here, too, and are still to be read.
        self._fired_timers: set[str] = set()
        # Ids of requests that are equal in both timelines: their recorded answers are used.
        self._recorded_requests: set[str] = set()
        # Ids of events that the record does not hold, or holds with another content.
        self._changed_ids = {each.message.id for each in changes.added}
        self._held = HeldDecisions(past)
        # Exchanges that cannot go on here, because an effect is missing.
        self._cut_exchanges: set[str] = set()
        # Open exchanges whose inputs their sender answers, by a model of its own.
        self._forwarded: set[str] = set()
        # Actors whose own decisions the changes concern: other settings, another behaviour, or other messages.
        changed_topics = changes.dropped | {topic_of(type(each.message.event)) for each in changes.added}
        self._affected_actors = {
            name for name, actor in self._actors.items() if not changed_topics.isdisjoint(map(topic_of, actor.consumes))
        }
        # Settings that cannot be read cannot be changed either.
        self._affected_actors |= {name for name, _ in past.unread_settings if name in changes.settings}
        # Actors of which recorded events were used, since the decisions were held.
        self._actors_from_record: set[str] = set()
        # Events that the record does not hold, to be delivered directly after the message that led to them.
        self._queue: deque[Recorded] = deque()
        # Events of decisions that lie behind the record's end.
        self._behind_end: list[NewEvent] = []
        self._comparison = Comparison(examples, chosen)
        self._tallies = {name: Tally(held={}, new_fields={}, behaviours={}) for name in self._actors}
        self._comparer = DecisionComparer(self._tallies)
        self._effects: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()
        self._without_actor: Counter[str] = Counter()
        self._events = self._seq = self._unread_inputs = 0
        self._added = deque(changes.added)
        if absent := sorted(set(changes.settings) - set(self._actors)):
            raise UnfitChanges(f"the log holds nothing of {', '.join(absent)}: settings of it cannot be changed")

    def feed(self, stored: Stored) -> None:
        """Take the next message of the record."""
        self._all_partitions.reach(stored.seq)
        self._events += 1
        self._seq = stored.seq
        self._fire_due_timers(stored)
        try:
            topic = split_stored(stored.subject)[0]
        except ValueError:
            return
        delivery = decode(stored)
        if isinstance(delivery, Unreadable):
            self._note_unreadable(topic, delivery)
        entry = CATALOGUE.get(topic)
        if topic in self._changes.dropped:
            self._note_missing(stored.subject)
            return
        if entry is not None and entry.owner in self._actors:
            if isinstance(delivery, Recorded):
                self._take_own(self._actors[entry.owner], delivery)
            else:
                self._take_unread_own(self._actors[entry.owner], delivery, entry.event)
        elif isinstance(delivery, Unreadable) or not delivery.envelope.cause:
            self._take_external(delivery)
        elif delivery.envelope.cause in self._recorded_requests:
            self._reuse(delivery)
        elif requests_to(CATALOGUE[topic].owner):
            self._note_missing(stored.subject)
        else:
            self._take_undecided(delivery)
        self._deliver_queued()

    def finish(self) -> Report:
        """Return the report; call it once."""
        self._continue_behind_end()
        self._comparison.close_all()
        unanswered = undecided_actors(self._affected_actors, self._tallies, self._actors_from_record)
        report = self._comparison.report(self._events, self._tallies, self._effects, self._unreadable, unanswered)
        measured, all_measured = self._changes.measured(self._actors)
        behaviour = LATEST if self._changes.latest else RECORDED
        return msgspec.structs.replace(
            report,
            behaviour=behaviour,
            measured=measured,
            all_measured=all_measured,
            unread_inputs=self._unread_inputs,
            without_actor=dict(sorted(self._without_actor.items())),
        )

    def _continue_behind_end(self) -> None:
        """Deliver events of decisions behind the record's end, in exchanges that have diverged."""
        for decided in self._behind_end:
            if self._comparison.has_diverged(decided.message.exchange):
                self._changed_ids.add(decided.message.id)
                self._queue.append(recorded_of(decided, self._seq, decided.message.time_ns))
                if type(decided.message.event) in self._requests:
                    self._note_missing_effect(decided.message.exchange, "never_asked")
                self._deliver_queued()

    def _note_unreadable(self, topic: str, unread: Unreadable) -> None:
        self._unreadable[unread.code] += 1
        exchange = exchange_in(unread.stored.headers)
        if topic == _INPUT and not self._comparison.is_open(exchange):
            self._unread_inputs += 1
            self._comparison.begin(exchange, unread.stored.seq)
        self._comparison.unreadable(exchange)

    def _take_external(self, delivery: Delivery) -> None:
        while self._added:
            self._deliver(moved_to(self._added.popleft(), delivery.stored))
            self._deliver_queued()
        event = delivery.message.event if isinstance(delivery, Recorded) else None
        if isinstance(event, InputReceived):
            self._comparison.begin(exchange_of(delivery), delivery.stored.seq, event.text)
            if event.purpose == "forward":
                self._forwarded.add(exchange_of(delivery))
        self._deliver(delivery)

    def _reuse(self, effect: Recorded) -> None:
        if effect.envelope.index + 1 >= effect.envelope.count:
            self._recorded_requests.discard(effect.envelope.cause)
        self._note_request(effect)  # an effect may be a request itself, such as a queued delivery
        self._effects["reused"] += 1
        self._deliver(effect)

    # --- recorded events of actors

    def _take_undecided(self, recorded: Recorded) -> None:
        """Take from the record an event that nobody decides here, such as one of an actor that was removed since."""
        message = recorded.message
        self._comparison.ended(message.exchange, message.event, on_record=True)
        if self._comparison.has_diverged(message.exchange):
            self._note_missing(recorded.stored.subject)
            return
        entry = CATALOGUE[recorded.envelope.topic]
        if has_decider(entry.owner):
            self._without_actor[entry.topic] += 1
        self._note_request(recorded)
        self._deliver_noting_end(recorded)

    def _take_unread_own(self, actor: Actor[Any], unread: Unreadable, event: type[Event]) -> None:
        """Note that this release cannot read an actor's event, so that its state lacks what the event changed."""
        self._expected.pop(unread.stored.headers.get("ce-id", ""), None)
        if issubclass(event, Configured):
            return  # ``RecordIndex`` has such settings
        if event in self._requests:
            self._recorded_requests.add(unread.stored.headers.get("ce-id", ""))
        for partition in self._all_partitions.writing(actor, unread.stored.subject):
            partition.gaps.note(unread, unreadable_reason(unread))
        self._deliver(unread)

    def _take_own(self, actor: Actor[Any], recorded: Recorded) -> None:
        """Process an actor's recorded event: deliver the second timeline's event of its id instead, if there is one."""
        message, envelope = recorded.message, recorded.envelope
        self._comparison.ended(message.exchange, message.event, on_record=True)
        if is_spontaneous(envelope.topic):
            self._take_spontaneous(actor, recorded)
        elif self._is_from_record(actor, recorded):
            self._note_request(recorded)
            self._actors_from_record.add(actor.name)
            self._comparison.from_record(message.exchange, actor.name)
            self._fold_held(actor, recorded)
            self._deliver_noting_end(recorded)
        elif (decided := self._expected.pop(envelope.id, None)) is None:
            self._note_gone(actor, recorded)
        elif (comparison := self._comparer.differing(actor.name, recorded, decided)) is None:
            # Delivered as recorded: its consumers did not see the new fields.
            self._tallies[actor.name].identical += 1
            self._note_request(recorded)
            self._deliver_noting_end(recorded)
        else:
            self._tallies[actor.name].different += 1
            self._note_different(recorded, decided, comparison)
            self._note_missing(recorded.stored.subject)
            self._deliver_noting_end(recorded_of(decided, recorded.stored.seq, recorded.stored.time_ns))
            if asks_alike(message.event, decided.message.event):
                self._note_request(recorded)
            elif type(decided.message.event) in self._requests:
                # An id depends on the cause, not on the topic: the recorded event of this id may be of another topic.
                why = "asked_otherwise" if envelope.topic == decided.topic else "never_asked"
                self._note_missing_effect(decided.message.exchange, why)

    def _note_request(self, recorded: Recorded) -> None:
        """If an event is a request, note that its recorded answers are to be used."""
        if type(recorded.message.event) in self._requests:
            self._recorded_requests.add(recorded.message.id)

    def _is_from_record(self, actor: Actor[Any], recorded: Recorded) -> bool:
        """Whether an event is taken from the record: its decision is held, and its exchange has not diverged."""
        writing = self._all_partitions.writing(actor, recorded.stored.subject)
        if any(partition.undecidable(recorded.envelope.cause_seq) for partition in writing):
            return not self._comparison.has_diverged(recorded.message.exchange)
        return (actor.name, recorded.envelope.cause) in self._held

    def _take_spontaneous(self, actor: Actor[Any], recorded: Recorded) -> None:
        if isinstance(recorded.message.event, Configured):
            return  # settings: folded at their position, and consumed by nobody else
        if not isinstance(recorded.message.event, ClockFired):
            self._deliver(recorded)  # measured facts stay as recorded
        elif recorded.message.id in self._fired_timers:
            self._fired_timers.discard(recorded.message.id)
            self._tallies[actor.name].identical += 1
            self._deliver(recorded)
        elif any(
            each.gaps.first_reason or each.why_untrusted(recorded.envelope.cause_seq)
            for each in self._all_partitions.writing(actor, recorded.stored.subject)
        ):
            self._deliver(recorded)  # what set the timer cannot be read, or not be folded as it was
        else:
            self._note_gone(actor, recorded)

    def _note_gone(self, actor: Actor[Any], recorded: Recorded) -> None:
        self._tallies[actor.name].gone += 1
        message = recorded.message
        change = change_of(recorded.stored.seq, actor.name, message.event, None)
        if self._makes_diverge(message.event, recorded.stored.subject):
            self._comparison.differs(message.exchange, change)
        self._note_missing(recorded.stored.subject)

    def _note_missing(self, subject: str) -> None:
        """Note that a recorded event does not exist in the second timeline."""
        for partition in self._all_partitions.consuming(subject):
            partition.may_differ = True

    def _note_different(self, recorded: Recorded, decided: NewEvent, comparison: BodyComparison) -> None:
        self._changed_ids.add(decided.message.id)
        owner = CATALOGUE[decided.topic].owner
        change = Change(recorded.stored.seq, owner, recorded.envelope.topic, comparison.recorded, comparison.redecided)
        before_and_now = ((recorded.message.event, recorded.stored.subject), (decided.message.event, decided.subject))
        if any(self._makes_diverge(event, subject) for event, subject in before_and_now):
            self._comparison.differs(decided.message.exchange, change)

    def _makes_diverge(self, event: Event, subject: str) -> bool:
        """Whether an actor or effector consumes an event, or it ends an exchange.

        Any other event (a changed library, say) does not make an exchange diverge.
        """
        is_end_or_request = isinstance(event, ResponseEmitted) or type(event) in self._requests
        return is_end_or_request or bool(self._all_partitions.consuming(subject))

    def _deliver_noting_end(self, recorded: Recorded) -> None:
        """Deliver an event of the second timeline, and note the end that it may be."""
        message = recorded.message
        self._comparison.ended(message.exchange, message.event, on_record=False)
        self._deliver(recorded)
        if isinstance(message.event, ResponseEmitted):
            self._forwarded.discard(message.exchange)
        elif isinstance(message.event, ArbiterPassed) and message.exchange in self._forwarded:
            # Its sender asks its own model, and reports the answer in an event.
            if self._past.topic_of(message.id) == recorded.envelope.topic:
                self._recorded_requests.add(message.id)
            else:
                self._note_missing_effect(message.exchange, "never_asked")

    # --- decisions

    def _deliver(self, delivery: Delivery) -> None:
        is_changed = isinstance(delivery, Recorded) and delivery.message.id in self._changed_ids
        for partition in self._all_partitions.consuming(delivery.stored.subject):
            partition.may_differ = partition.may_differ or is_changed
            self._decide(partition, delivery)

    def _deliver_queued(self) -> None:
        while self._queue:
            self._deliver_noting_end(self._queue.popleft())

    def _decide(self, partition: Partition, delivery: Delivery) -> None:
        self._fold_spontaneous(partition, delivery.stored.seq)
        if isinstance(delivery, Recorded):
            partition.agents.add(delivery.envelope.agent)
        partition.position, partition.time_ns = delivery.stored.seq, delivery.stored.time_ns
        tally = self._tallies[partition.actor.name]
        reason = self._held.why_held(partition, delivery)
        if reason:
            tally.held[reason] = tally.held.get(reason, 0) + 1
            self._hold(partition, delivery)
            return
        tally.decided += 1
        tally.behaviours[partition.behaviour] = tally.behaviours.get(partition.behaviour, 0) + 1
        if isinstance(delivery, Recorded):
            self._comparison.decided(delivery.message.exchange)
        decided, partition.state = self._decide_like_record(partition, delivery)
        is_open = delivery.stored.seq > partition.decided_upto and not partition.may_differ
        for event in decided:
            self._emit(event, is_open)

    def _decide_like_record(self, partition: Partition, delivery: Delivery) -> tuple[tuple[NewEvent, ...], Any]:
        actor, before, delivery = partition.actor, partition.state, at_behaviour(delivery, partition.behaviour)
        if isinstance(delivery, Recorded) and self._past.models:
            delivery = with_models(delivery, self._past.models.get((actor.name, delivery.envelope.id), ()))
        partitions = self._all_partitions.partitions
        decided, after = decide(actor, before, delivery, partitions, partition.name)
        aligned = with_recorded_ids(decided, (actor.name, f"{actor.name}/{partition.name}"), self._past)
        if aligned is decided:
            return decided, after
        return fold_decided(actor, before, delivery, aligned, partitions, partition.name)

    def _emit(self, decided: NewEvent, is_open: bool) -> None:
        """Deliver the events of a decision; ``is_open``: if they are not in the record, they may lie behind its end."""
        message, owner = decided.message, CATALOGUE[decided.topic].owner
        if self._past.sequence_of(message.id) > self._seq:
            self._expected[message.id] = decided
        elif is_open and not self._comparison.has_diverged(message.exchange):
            self._tallies[owner].pending += 1
            if self._comparison.is_open(message.exchange):
                self._behind_end.append(decided)
        else:
            self._tallies[owner].new += 1
            self._changed_ids.add(message.id)
            if self._makes_diverge(message.event, decided.subject):
                self._comparison.differs(message.exchange, change_of(decided.cause_seq, owner, None, message.event))
            self._queue.append(recorded_of(decided, decided.cause_seq, message.time_ns))
            if type(message.event) in self._requests:
                self._note_missing_effect(decided.message.exchange, "never_asked")

    def _note_missing_effect(self, exchange: str, why: str) -> None:
        """Note that the record holds no answer to a request, so that the request's exchange cannot go on."""
        self._effects[why] += 1
        if exchange:
            self._cut_exchanges.add(exchange)
            self._comparison.cut(exchange)

    # --- what cannot be decided anew

    def _hold(self, partition: Partition, delivery: Delivery) -> None:
        self._held.hold(partition, delivery)
        name, exchange = partition.actor.name, exchange_of(delivery)
        if name in self._affected_actors:
            self._comparison.held(exchange)
        if isinstance(delivery, Recorded) and delivery.message.id in self._changed_ids:
            self._comparison.unknown(exchange, name)

    def _fold_held(self, actor: Actor[Any], recorded: Recorded) -> None:
        for partition in self._all_partitions.writing(actor, recorded.stored.subject):
            partition.note_own(recorded)
            partition.fold_own(recorded)

    # --- settings and timers

    def _fold_spontaneous(self, partition: Partition, before: int) -> None:
        """Fold the recorded events without a message that come before the message of sequence ``before``."""
        while partition.spontaneous and partition.spontaneous[0].envelope.cause_seq < before:
            recorded = partition.spontaneous.popleft()
            event = recorded.message.event
            if isinstance(event, Configured):
                self._configure(partition, recorded, event)
            elif isinstance(event, ClockFired):
                self._fire_recorded(partition, recorded, event)
            else:
                partition.fold_at_position(recorded)

    def _configure(self, partition: Partition, recorded: Recorded, event: Configured) -> None:
        changed = self._changes.settings.get(partition.actor.name)
        if changed:
            event, is_changed = changed_settings(partition.actor, event, changed)
            if is_changed:
                partition.may_differ = True
                self._affected_actors.add(partition.actor.name)
            recorded = msgspec.structs.replace(recorded, message=msgspec.structs.replace(recorded.message, event=event))
        if partition.configure(recorded, event.behaviour):
            partition.may_differ = True
            self._affected_actors.add(partition.actor.name)

    def _fire_recorded(self, partition: Partition, recorded: Recorded, event: ClockFired) -> None:
        """Fire a timer that fired in the record, if it is still pending."""
        while (timer := partition.timer) is not None and timer.due_ns <= event.due_ns:
            id = event_id(timer.cause, partition.actor.name, 0)
            if id == recorded.message.id:
                partition.fold_at_position(recorded)
                self._fired_timers.add(id)
                return
            if not self._fire_unrecorded(partition, timer):
                return

    def _fire_due_timers(self, stored: Stored) -> None:
        """Fire timers that are due by now and did not fire in the record."""
        for partition in self._all_partitions.timed:
            self._fold_spontaneous(partition, stored.seq)
            while (timer := partition.timer) is not None and timer.due_ns <= stored.time_ns:
                if self._past.sequence_of(event_id(timer.cause, partition.actor.name, 0)) >= stored.seq:
                    break  # its recorded position is still to come
                if not self._fire_unrecorded(partition, timer):
                    break
        self._deliver_queued()

    def _fire_unrecorded(self, partition: Partition, timer: Timer) -> bool:
        """Fold a timer that did not fire in the record; its event is delivered only if its exchange has diverged.

        Otherwise the record cancelled it, a little late, and will do so here. Returns whether the state has dropped it.
        """
        emission = timer.emission
        cause = Cause(timer.cause, self._seq, timer.due_ns, "", "", "", NO_PARTITION, NO_PARTITION)
        (decided,) = address_events(partition.actor.name, cause, (emission,), self._all_partitions.partitions)
        recorded = recorded_of(decided, self._seq, timer.due_ns)
        partition.fold_own(recorded)
        if emission.exchange:
            is_cut = emission.exchange in self._cut_exchanges
            is_delivered = not is_cut and self._comparison.has_diverged(emission.exchange)
        else:
            is_delivered = timer.cause in self._changed_ids
        if is_delivered:
            self._tallies[partition.actor.name].new += 1
            self._changed_ids.add(recorded.message.id)
            self._queue.append(recorded)
        next_timer = partition.timer
        return next_timer is None or next_timer != timer
