"""The second timeline: every partition's state under other settings, message by message."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from events.codec import Recorded, Unreadable, decode, is_spontaneous
from events.decision import Cause, Decided, address, decide, fold
from events.errors import Misconfigured
from events.forgotten import SEALED
from events.log import Seal, Stored
from events.routes import routes
from events.whatif.comparison import Comparison, Report, Tally, change_of
from events.whatif.past import Key, Past
from schemas.actor import Actor, Timer
from schemas.catalogue import CATALOGUE
from schemas.envelope import Envelope
from schemas.event import Configured, Event
from schemas.identity import event_id
from schemas.subjects import NO_PARTITION, Partitions, split_stored
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived

Offered = Recorded | Unreadable


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What is otherwise in the second timeline.

    Attributes:
        settings: Actor -> the values that replace recorded ones, nested as its settings are.
        dropped: Public subjects whose recorded events do not count, and ``added`` events from outside that stand in
            front of the first recorded one instead: another pattern library, other precedents.
    """

    settings: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    added: Sequence[Recorded] = ()


class _Strand:
    """One partition of an actor in the second timeline."""

    def __init__(self, actor: Actor[Any], partition: str, spontaneous: Sequence[Recorded]) -> None:
        self.actor = actor
        self.partition = partition
        self.state: Any = actor.initial()
        self.place = self.time_ns = 0
        self.spontaneous = deque(spontaneous)


class Timeline:
    """Decides a record anew; feed it every message that :class:`PastReader` was fed, in order.

    Raises Misconfigured where a changed actor took no part, or changed settings are not valid over the recorded ones.

    Args:
        actors: All actors there are; of them, those that took part decide.
        partitions: The log's partition counts.
        past: The record in outline.
        changes: What is otherwise.
        requests: The events that ask for an effect.
        examples: Changed exchanges that are kept for the report.
    """

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        partitions: Partitions,
        past: Past,
        changes: Changes,
        requests: frozenset[type[Event]],
        examples: int = 20,
    ) -> None:
        self._actors = {actor.name: actor for actor in actors if actor.name in past.actors}
        self._partitions = partitions
        self._past = past
        self._changes = changes
        self._requests = requests
        self._strands: dict[Key, _Strand] = {}
        self._timed: list[_Strand] = []
        self._routes: dict[str, tuple[_Strand, ...]] = {}
        self._due: dict[str, Decided] = {}
        self._fired: set[str] = set()
        self._asked: set[str] = set()
        self._otherwise: set[str] = set()
        self._held: set[tuple[str, str]] = set()
        self._sealed: set[tuple[str, str]] = set()
        self._cut: set[str] = set()
        self._queue: deque[Recorded] = deque()
        self._comparison = Comparison(examples)
        self._tallies = {name: Tally(held={}) for name in self._actors}
        self._effects: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()
        self._events = self._seq = 0
        self._added = deque(changes.added)
        if absent := sorted(set(changes.settings) - set(self._actors)):
            raise Misconfigured(f"the log holds nothing of {', '.join(absent)}: settings of it cannot be changed")

    def feed(self, stored: Stored) -> None:
        """Take the next message of the record."""
        self._events += 1
        self._seq = stored.seq
        self._pass_time(stored)
        try:
            topic = split_stored(stored.subject)[0]
        except ValueError:
            return
        offered = decode(stored)
        if isinstance(offered, Unreadable):
            self._unreadable[offered.code] += 1
        entry = CATALOGUE.get(topic)
        if topic in self._changes.dropped:
            return
        if entry is not None and entry.owner in self._actors:
            if isinstance(offered, Recorded):
                self._take_own(self._actors[entry.owner], offered)
        elif isinstance(offered, Unreadable) or not offered.envelope.cause:
            self._take_given(offered)
        elif offered.envelope.cause in self._asked:
            self._reuse(offered)
        self._drain()

    def finish(self) -> Report:
        """Return what came of it; call once."""
        self._comparison.close_all()
        return self._comparison.report(self._events, self._tallies, self._effects, self._unreadable)

    def _take_given(self, offered: Offered) -> None:
        while self._added:
            self._deliver(_at(self._added.popleft(), offered.stored))
            self._drain()
        if isinstance(offered, Recorded) and isinstance(offered.message.event, InputReceived):
            self._comparison.begin(offered.message.exchange, offered.stored.seq)
        self._deliver(offered)

    def _reuse(self, effect: Recorded) -> None:
        if effect.envelope.index + 1 >= effect.envelope.count:
            self._asked.discard(effect.envelope.cause)
        if type(effect.message.event) in self._requests:
            self._asked.add(effect.message.id)  # an effect that is itself a request: a delivery that is put off
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
            self._fold_held(actor, recorded)
            self._place(recorded)
        elif (decided := self._due.pop(envelope.id, None)) is None:
            self._note_gone(actor, recorded)
        elif decided.data == recorded.stored.data and decided.subject == recorded.stored.subject:
            self._tallies[actor.name].identical += 1
            if type(message.event) in self._requests:
                self._asked.add(message.id)
            self._place(recorded)
        else:
            self._tallies[actor.name].different += 1
            self._note(recorded, decided)
            self._place(_recorded_of(decided, recorded.stored.seq, recorded.stored.time_ns))
            if type(decided.message.event) in self._requests:
                # Ids tell causes, not kinds: another event may have been recorded in this one's stead.
                self._cut_branch(decided, "asked_otherwise" if envelope.topic == decided.topic else "never_asked")

    def _stands(self, actor: Actor[Any], recorded: Recorded) -> bool:
        """Whether an event is taken from the record: its decision is held, its exchange on its recorded course."""
        if actor.name in self._past.behaviours:
            return not self._comparison.has_diverged(recorded.message.exchange)
        return (actor.name, recorded.envelope.cause) in self._held

    def _take_spontaneous(self, actor: Actor[Any], recorded: Recorded) -> None:
        if not isinstance(recorded.message.event, ClockFired):
            return  # settings: folded at their place, and nobody else's concern
        if recorded.message.id in self._fired:
            self._fired.discard(recorded.message.id)
            self._tallies[actor.name].identical += 1
            self._deliver(recorded)
        else:
            self._note_gone(actor, recorded)

    def _note_gone(self, actor: Actor[Any], recorded: Recorded) -> None:
        self._tallies[actor.name].gone += 1
        message = recorded.message
        change = change_of(recorded.stored.seq, actor.name, message.event, None)
        self._comparison.differs(message.exchange, change)

    def _note(self, recorded: Recorded, decided: Decided) -> None:
        self._otherwise.add(decided.message.id)
        owner = CATALOGUE[decided.topic].owner
        change = change_of(recorded.stored.seq, owner, recorded.message.event, decided.message.event)
        self._comparison.differs(decided.message.exchange, change)

    def _place(self, recorded: Recorded) -> None:
        """Have an event of the second timeline take effect."""
        self._comparison.ended(recorded.message.exchange, recorded.message.event, on_record=False)
        self._deliver(recorded)

    # --- decisions

    def _deliver(self, offered: Offered) -> None:
        for strand in self._strands_for(offered.stored.subject):
            self._decide(strand, offered)

    def _drain(self) -> None:
        while self._queue:
            self._place(self._queue.popleft())

    def _decide(self, strand: _Strand, offered: Offered) -> None:
        self._fold_spontaneous(strand, offered.stored.seq)
        strand.place, strand.time_ns = offered.stored.seq, offered.stored.time_ns
        tally = self._tallies[strand.actor.name]
        reason = self._why_held(strand.actor, offered)
        if reason:
            tally.held[reason] = tally.held.get(reason, 0) + 1
            self._hold(strand, offered)
            return
        tally.decided += 1
        decided, strand.state = decide(strand.actor, strand.state, offered, self._partitions, strand.partition)
        for event in decided:
            self._emit(event)

    def _emit(self, decided: Decided) -> None:
        if self._past.place_of(decided.message.id) > self._seq:
            self._due[decided.message.id] = decided
            return
        message, owner = decided.message, CATALOGUE[decided.topic].owner
        self._tallies[owner].new += 1
        self._otherwise.add(message.id)
        self._comparison.differs(message.exchange, change_of(decided.cause_seq, owner, None, message.event))
        self._queue.append(_recorded_of(decided, decided.cause_seq, message.time_ns))
        if type(message.event) in self._requests:
            self._cut_branch(decided, "never_asked")

    def _cut_branch(self, decided: Decided, why: str) -> None:
        self._effects[why] += 1
        exchange = decided.message.exchange
        if exchange:
            self._cut.add(exchange)
            self._comparison.cut(exchange)

    # --- what cannot be decided anew

    def _why_held(self, actor: Actor[Any], offered: Offered) -> str:
        if reason := self._past.behaviours.get(actor.name):
            return reason
        if isinstance(offered, Unreadable):
            return ""
        session = offered.message.agent, offered.message.session
        if offered.stored.seal is Seal.CLOSED:
            self._sealed.add(session)
        if session in self._sealed:
            return SEALED
        return self._past.held.get((actor.name, offered.envelope.id), "")

    def _hold(self, strand: _Strand, offered: Offered) -> None:
        if isinstance(offered, Recorded):
            self._held.add((strand.actor.name, offered.envelope.id))
            strand.state = _folded(strand.actor, strand.state, offered)

    def _fold_held(self, actor: Actor[Any], recorded: Recorded) -> None:
        for owner, partition, own in routes([actor], recorded.stored.subject, self._partitions):
            if own:
                strand = self._strand(owner, partition)
                strand.state = _evolved(owner, strand.state, recorded)

    # --- settings and timers

    def _fold_spontaneous(self, strand: _Strand, before: int) -> None:
        """Fold what no message led to and what stands, on record, in front of the message of sequence ``before``."""
        while strand.spontaneous and strand.spontaneous[0].envelope.cause_seq < before:
            recorded = strand.spontaneous.popleft()
            event = recorded.message.event
            if isinstance(event, Configured):
                self._configure(strand, recorded, event)
            elif isinstance(event, ClockFired):
                self._fire_recorded(strand, recorded, event)

    def _configure(self, strand: _Strand, recorded: Recorded, event: Configured) -> None:
        changed = self._changes.settings.get(strand.actor.name)
        if changed:
            event = msgspec.structs.replace(event, settings=_laid_over(event.settings, changed))
            _check(strand.actor, event)
            recorded = msgspec.structs.replace(recorded, message=msgspec.structs.replace(recorded.message, event=event))
        strand.state = _evolved(strand.actor, strand.state, _folded_at(recorded, strand.place, strand.time_ns))

    def _fire_recorded(self, strand: _Strand, recorded: Recorded, event: ClockFired) -> None:
        """Have a timer go off that did so on record, if it is still pending."""
        while (timer := _timer(strand)) is not None and timer.due_ns <= event.due_ns:
            id = event_id(timer.cause, strand.actor.name, 0)
            if id == recorded.message.id:
                strand.state = _evolved(strand.actor, strand.state, _folded_at(recorded, strand.place, strand.time_ns))
                self._fired.add(id)
                return
            if not self._fire(strand, timer):
                return

    def _pass_time(self, stored: Stored) -> None:
        """Have timers go off that are due by now and did not on record."""
        for strand in self._timed:
            self._fold_spontaneous(strand, stored.seq)
            while (timer := _timer(strand)) is not None and timer.due_ns <= stored.time_ns:
                if self._past.place_of(event_id(timer.cause, strand.actor.name, 0)) >= stored.seq:
                    break  # its place on record is still to come
                if not self._fire(strand, timer):
                    break
        self._drain()

    def _fire(self, strand: _Strand, timer: Timer) -> bool:
        """Fold a timer that did not go off on record; it takes effect only where the course is another.

        Elsewhere something settled it on record, a little late, and will here. Returns whether it is off the state.
        """
        emission = timer.emission
        cause = Cause(timer.cause, self._seq, timer.due_ns, "", "", "", NO_PARTITION, NO_PARTITION)
        (decided,) = address(strand.actor.name, cause, (emission,), self._partitions)
        recorded = _recorded_of(decided, self._seq, timer.due_ns)
        strand.state = _evolved(strand.actor, strand.state, recorded)
        if emission.exchange:
            counts = emission.exchange not in self._cut and self._comparison.has_diverged(emission.exchange)
        else:
            counts = timer.cause in self._otherwise
        if counts:
            self._tallies[strand.actor.name].new += 1
            self._queue.append(recorded)
        again = _timer(strand)
        return again is None or again != timer

    # --- strands

    def _strands_for(self, subject: str) -> tuple[_Strand, ...]:
        found = self._routes.get(subject)
        if found is None:
            consuming = (
                self._strand(actor, partition)
                for actor, partition, own in routes(self._actors.values(), subject, self._partitions)
                if not own
            )
            found = self._routes[subject] = tuple(consuming)
        return found

    def _strand(self, actor: Actor[Any], partition: str) -> _Strand:
        key = actor.name, partition
        strand = self._strands.get(key)
        if strand is None:
            strand = self._strands[key] = _Strand(actor, partition, self._past.spontaneous.get(key, ()))
            if actor.timer is not None:
                self._timed.append(strand)
        return strand


def _timer(strand: _Strand) -> Timer | None:
    return strand.actor.timer(strand.state) if strand.actor.timer is not None else None


def _recorded_of(decided: Decided, seq: int, time_ns: int) -> Recorded:
    """Return an event of the second timeline as if it had been stored at a place."""
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


def _check(actor: Actor[Any], configured: Configured) -> None:
    try:
        msgspec.convert(configured.settings, actor.settings_type)
    except msgspec.ValidationError as wrong:
        raise Misconfigured(f"the changed settings of {actor.name} are not valid: {wrong}") from wrong


def _at(recorded: Recorded, place: Stored) -> Recorded:
    """Return an event from outside as if it had been stored where another was."""
    stored = msgspec.structs.replace(recorded.stored, seq=place.seq, time_ns=place.time_ns)
    message = msgspec.structs.replace(recorded.message, seq=place.seq, time_ns=place.time_ns)
    return Recorded(stored, recorded.envelope, message)


def _folded_at(recorded: Recorded, seq: int, time_ns: int) -> Recorded:
    return msgspec.structs.replace(
        recorded, message=msgspec.structs.replace(recorded.message, seq=seq, time_ns=time_ns)
    )


def _evolved(actor: Actor[Any], state: Any, recorded: Recorded) -> Any:
    try:
        return actor.evolve(state, recorded.message)
    except Exception:
        # Recorded by another behaviour of the decider; views pass such an event over, and so does this.
        return state


def _folded(actor: Actor[Any], state: Any, offered: Recorded) -> Any:
    try:
        return fold(actor, state, offered, ())
    except Exception:
        return state


def _laid_over(below: Any, above: Any) -> Any:
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}
