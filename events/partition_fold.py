"""An actor partition's view, and its fold: what it consumed, in stream order, each followed by what it emitted.

Live work, recovery, standby, replay and verification all fold through this class, so they cannot disagree on the order.
The order can be reconstructed later, because every own event carries the sequence of its cause.

A partition's *fence* is the condition of its appends: the last event under its actor's main subjects is the one that
the writer knows. So only the worker that leads the partition, and has read what earlier leaders wrote, can append. An
actor's main subjects are those with the prefix of its ``configured`` event.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from events.decoding import Recorded, Unreadable, is_spontaneous
from events.errors import Misconfigured
from events.make_decision import (
    Cause,
    NewEvent,
    address_events,
    at_behaviour,
    decide,
    fail_append,
    fold,
    with_models,
)
from events.replay.body_comparison import BodyComparer
from events.routes import main_prefix
from events.state_division import part_of
from schemas.actor import Actor, Message, Scope
from schemas.errors import UndecodableEvent, UnknownTopic, UnknownVersion
from schemas.event import Configured
from schemas.subjects import NO_PARTITION, Partitions

Delivery = Recorded | Unreadable
"""A message of the log, decoded if it can be."""

MOST_LOST_CAUSES = 10_000
"""How many ids of lost messages a view keeps, the latest: only a writer's last event can be written again."""


class Checkpoint(msgspec.Struct, frozen=True):
    """A view's position: ``state`` after the message of sequence ``position`` and own events up to ``own_last``.

    ``time_ns`` is that message's timestamp; ``configured`` the last recorded settings. ``fenced`` is the sequence of
    the last own event that the partition's fence counts; None: ``own_last`` itself. ``own_id`` is the id of the event
    at ``own_last``: a log that lost its tail gives that sequence to another. ``lost_causes`` are the ids of messages
    that the log has lost after they were decided.
    """

    state: Any
    position: int = 0
    own_last: int = 0
    time_ns: int = 0
    configured: Configured | None = None
    fenced: int | None = None
    own_id: str = ""
    lost_causes: tuple[str, ...] = ()


class Processed(msgspec.Struct, frozen=True, gc=False):
    """A message that is known to be decided: the state before it, and the events that were recorded for it."""

    delivery: Delivery
    before: Any
    recorded: tuple[Recorded, ...]


_OTHER_CAUSES = {
    UndecodableEvent.code: "it is damaged (`neuraxis log verify` tells), or ",
    UnknownTopic.code: "this release has dropped the event's type (keep the vocabulary of what is removed), or ",
}
"""Error code -> why an own event may be unreadable, other than that a newer release wrote it."""


class View:
    """Folds one partition of an actor, from recorded events and from decisions of its own.

    Feed it consumed messages (``receive``) and own events (``apply_own``) in stream order. A message is processed once
    an own event with its cause sequence or a later one is seen. The others wait; the partition's leader decides them
    (``decide_next``).

    Attributes:
        waiting: Consumed messages not yet processed, in stream order.
        own_last: Sequence of the last own event, under any prefix.
        own_id: That event's id.
        lost_causes: Ids of messages that the log has lost, but whose decisions it still has: the latest
            :data:`MOST_LOST_CAUSES`, in order.
        fenced: Sequence of the last own event under the actor's main prefix, the only one that the fence counts.
        behaviour: The version of the actor's decisions in force at the view's position: the last recorded one; before
            any, the actor's own.
        on_processed: Called for each message that recorded events show as processed, before it is folded.
        on_spontaneous: Called for each event that no message led to, with the state before it.
        on_unfolded: Called for each processed message whose fold then raised.
        on_orphan: Called for own events whose cause is not waiting: processed before, or never received.
        agents: The agents whose messages it has received since it was made.
        passed_over: Number of messages of a newer release that others decided, and of own events that only a newer
            release can read or fold: no decision may use this state then.
        why_passed_over: What is wrong with the first of those own events, and what to do; empty: there is none.
        newer_behaviour: Sequence of the first settings under which a newer release decides otherwise; 0: none came. It
            also folds otherwise, so such settings count in ``passed_over``, too.
        misplaced: Whether an own event came too late, so that the state is not that of the log: it belongs before the
            checkpoint with which the view began, before what was folded ahead of such events, or before what a former
            leader had decided. Another leader wrote it.
        fold_errors: Number of recorded messages whose fold raised, and that were skipped.
        shown_by: The recorded event which shows that the messages that are being folded were decided; None otherwise.
    """

    def __init__(
        self, actor: Actor[Any], partition: str, partitions: Partitions, checkpoint: Checkpoint | None = None
    ) -> None:
        self.actor = actor
        self.partition = partition
        self._partitions = partitions
        self._main_prefix = main_prefix(actor)
        start = checkpoint or Checkpoint(actor.initial())
        self.state: Any = start.state
        self.position = start.position
        self.own_last = start.own_last
        self.own_id = start.own_id
        self.lost_causes = dict.fromkeys(start.lost_causes)
        self.fenced = start.own_last if start.fenced is None else start.fenced
        self.time_ns = start.time_ns
        self.configured = start.configured
        self.behaviour = actor.behaviour if start.configured is None else start.configured.behaviour
        self._undecidable: str | None = None
        self.waiting: deque[Delivery] = deque()
        self.on_processed: Callable[[Processed], None] | None = None
        self.on_spontaneous: Callable[[Recorded, Any], None] | None = None
        self.on_unfolded: Callable[[Processed], None] | None = None
        self.on_orphan: Callable[[tuple[Recorded, ...]], None] | None = None
        self.fold_errors = 0
        self.passed_over = 0
        self.why_passed_over = ""
        self.newer_behaviour = 0
        self.misplaced = False
        self.shown_by: Recorded | None = None
        self._assumed_to = start.position  # no own event is to come for what is folded up to there
        self.agents: set[str] = set()
        self._group: list[Recorded] = []  # the events, so far, of the decision that is being received

    @property
    def undecidable(self) -> str:
        """Why recorded decisions cannot be made again here: behaviour or settings are missing. Empty if they can."""
        if self._undecidable is None:
            self._undecidable = self.actor.undecidable(self.configured)
        return self._undecidable

    def checkpoint(self) -> Checkpoint:
        """Return the view's checkpoint; it can be used for a snapshot only if every own event is acknowledged."""
        where = self.state, self.position, self.own_last, self.time_ns, self.configured, self.fenced, self.own_id
        return Checkpoint(*where, tuple(self.lost_causes))

    def receive(self, delivery: Delivery) -> None:
        """Receive a consumed message; it is ignored if it was folded already or waits.

        It is also ignored if it was decided before the log lost it: its writer may have written it again. And it is
        ignored if it was stored in a former partition, and its key belongs to another partition now.
        """
        if self._partitions.former and not self._is_mine(delivery):
            return
        if isinstance(delivery, Recorded):
            self.agents.add(delivery.envelope.agent)
            if self.lost_causes and delivery.envelope.id in self.lost_causes:
                return
        waiting = self.waiting
        if delivery.stored.seq > (waiting[-1].stored.seq if waiting else self.position):
            waiting.append(delivery)

    def apply_own(self, own: Delivery) -> None:
        """Receive an own event from the log; a decision's events are folded together, once the last one has come.

        Raises:
            Misconfigured: this release cannot read an event that its own actor wrote.
        """
        if own.stored.seq <= self.own_last or (self._partitions.former and not self._is_written_here(own)):
            return
        if isinstance(own, Unreadable):
            raise Misconfigured(self._unreadable_own(own))
        if self._group and own.envelope.cause != self._group[0].envelope.cause:
            self.close_decision()
        self._group.append(own)
        if own.envelope.index + 1 >= own.envelope.count:
            self.close_decision()

    def pass_over(self, own: Unreadable) -> None:
        """Pass over an own event that this release cannot read: see ``passed_over``."""
        self.passed_over += 1
        self.why_passed_over = self.why_passed_over or self._unreadable_own(own)

    def _note_behaviour(self, own: Recorded) -> None:
        """Note settings under which a newer release decides and folds otherwise, if an own event is such."""
        event, known = own.message.event, self.actor.behaviour
        if not isinstance(event, Configured) or event.behaviour <= known:
            return
        self.passed_over += 1
        self.newer_behaviour = self.newer_behaviour or own.stored.seq
        self.why_passed_over = self.why_passed_over or (
            f"{self.actor.name} partition {self.partition}: from sequence {own.stored.seq} on it was decided under "
            f"behaviour {event.behaviour}, and this release has none above {known}: run the newer release or a later "
            "one"
        )

    def _unreadable_own(self, own: Unreadable) -> str:
        return (
            f"{self.actor.name} partition {self.partition}: its own event at sequence {own.stored.seq} cannot be "
            f"read ({own.detail}): {_OTHER_CAUSES.get(own.code, '')}it was written by a newer release; run "
            "that release or a later one"
        )

    def _token(self, delivery: Delivery) -> str:
        _, agent, session, _ = delivery.stored.subject.split(".", 3)
        return session if self.actor.scope is Scope.SESSION else agent

    def _is_mine(self, delivery: Delivery) -> bool:
        """Whether a message belongs to this partition; after a repartitioning it may be of a former one."""
        if self.actor.scope is Scope.GLOBAL or (token := self._token(delivery)) in (self.partition, NO_PARTITION):
            return True
        of_sessions = self.actor.scope is Scope.SESSION
        key = ""
        if isinstance(delivery, Recorded):
            key = delivery.envelope.session if of_sessions else delivery.envelope.agent
        return self._partitions.resolve(token, key, of_sessions) == self.partition

    def _is_written_here(self, own: Delivery) -> bool:
        """Whether this partition wrote an event, and not the one that it was divided from."""
        return self.actor.scope is Scope.GLOBAL or self._token(own) == self.partition

    def divided(self, partition: str, partitions: Partitions) -> "View":
        """Return the view of one of the partitions that this one was divided into when the log was repartitioned.

        It begins with its part of this one's state. The messages that wait here led to no event, or the log would not
        have been repartitioned.
        """
        if self.actor.scope is Scope.GLOBAL:
            whole = View(self.actor, partition, partitions, self.checkpoint())
            whole.waiting, whole._group = self.waiting, self._group
            return self._noted_in(whole)
        self.close_decision()
        self.fold_before(None)
        of_sessions, state = self.actor.scope is Scope.SESSION, self.state

        def is_mine(key: str) -> bool:
            return partitions.resolve(self.partition, key, of_sessions) == partition

        state = part_of(state, self.actor.scope, self.agents, is_mine)
        # Its events are stored under a name of its own, so its fence counts none yet.
        begin = msgspec.structs.replace(self.checkpoint(), state=state, fenced=0)
        return self._noted_in(View(self.actor, partition, partitions, begin))

    def _noted_in(self, divided: "View") -> "View":
        """Return a view that goes on from this one's state, after noting in it what this one has passed over."""
        divided.passed_over, divided.why_passed_over = self.passed_over, self.why_passed_over
        divided.newer_behaviour = self.newer_behaviour
        return divided

    @property
    def open_decision(self) -> int:
        """The sequence of the last event of a decision of which more events are to come, 0 when there is none."""
        return self._group[-1].stored.seq if self._group else 0

    @property
    def open_cause_seq(self) -> int | None:
        """The sequence of the message that led to the open decision, None when there is none."""
        return self._group[0].envelope.cause_seq if self._group else None

    @property
    def open_cause(self) -> str:
        """The id of the message that led to the open decision, empty when there is none."""
        return self._group[0].envelope.cause if self._group else ""

    def close_decision(self) -> None:
        """Fold the decision whose events came last; events that have not come are missing from a damaged log."""
        group, self._group = tuple(self._group), []
        if group:
            self.shown_by = group[0]
            self._settle(group)
            self.shown_by = None
            self._note_own(group)

    def _note_own(self, group: Sequence[Recorded]) -> None:
        self.own_last, self.own_id = group[-1].stored.seq, group[-1].envelope.id
        for own in group:
            if self.is_fenced(own.envelope.topic):
                self.fenced = own.stored.seq

    def complete_decision(self) -> tuple[NewEvent, ...]:
        """Decide again a message of whose events only the first were stored; return the others, for the caller to
        append.

        A log that was cut may end within a decision. Made again from the same state, under the same behaviour and by
        the same trained models, it has the same events: with the others appended it is complete. If the stored events
        are not the first of those decided now, they stay alone.
        """
        group = tuple(self._group)
        seq = group[0].envelope.cause_seq if group else 0
        self.fold_before(seq)
        if not group or not self.waiting or self.waiting[0].stored.seq != seq:
            self.close_decision()
            return ()
        models = self.actor.models
        names = () if models is None else tuple(name for own in group for name in models(own.message.event))
        delivery = with_models(at_behaviour(self.waiting[0], self.behaviour), names)
        decided, state = decide(self.actor, self.state, delivery, self._partitions, self.partition)
        if len(decided) < len(group) or not all(map(_says_the_same, group, decided)):
            self.close_decision()
            return ()
        self.waiting.popleft()
        self._group = []
        self.state, self.position, self.time_ns = state, delivery.stored.seq, delivery.stored.time_ns
        self._note_own(group)
        return decided[len(group) :]

    def _settle(self, group: tuple[Recorded, ...]) -> None:
        """Fold the messages that the events of one decision show as processed, then those events."""
        seq = group[0].envelope.cause_seq
        # No event is to come about messages up to `_assumed_to`: one about them is misplaced.
        # A spontaneous event has the view's position instead of a cause: for it, that sequence itself is right.
        self.misplaced |= seq < self._assumed_to + (not is_spontaneous(group[0].envelope.topic))
        self.fold_before(seq)
        if is_spontaneous(group[0].envelope.topic):
            if self.waiting and self.waiting[0].stored.seq == seq:
                self._fold(self.waiting.popleft(), ())
            for own in group:
                self._fold_spontaneous(own)
        elif self.waiting and self.waiting[0].stored.seq == seq:
            self._fold(self.waiting.popleft(), group)
        else:
            # The message was not received (the log lost it, or is read from its middle): only its events are known.
            if seq > self.position:
                self.lost_causes[group[0].envelope.cause] = None
                if len(self.lost_causes) > MOST_LOST_CAUSES:
                    del self.lost_causes[next(iter(self.lost_causes))]
            if self.on_orphan is not None:
                self.on_orphan(group)
            for own in group:
                self._evolve_own(self._at_position(own.message))

    def _fold(self, delivery: Delivery, group: tuple[Recorded, ...]) -> None:
        """Fold a message that is known to be decided, with the events that were recorded for it."""
        delivery = at_behaviour(delivery, self.behaviour)
        before, stored = self.state, delivery.stored
        if isinstance(delivery, Unreadable) and delivery.code == UnknownVersion.code:
            self.passed_over += not any(isinstance(own.message.event, self.actor.failed) for own in group)
        if self.on_processed is not None:
            self.on_processed(Processed(delivery, before, group))
        try:
            if group:
                seq, time_ns = stored.seq, stored.time_ns
                own = [self._at(each.message, seq, time_ns) for each in group]
                self.state = fold(self.actor, before, delivery, own)
            elif isinstance(delivery, Recorded):
                # Not ``actor.fold``: what it consumes is never its own ``configured``.
                self.state = self.actor.evolve(before, delivery.message)
        except Exception:
            # Live, a failure is recorded when a fold raises. Here another release of the decider folded the recorded
            # events. They are skipped, so that the rest can be folded; a verification reports the count.
            self.fold_errors += 1
            if self.on_unfolded is not None:
                self.on_unfolded(Processed(delivery, before, group))
        self.position, self.time_ns = stored.seq, stored.time_ns

    def _at(self, own: Message, seq: int, time_ns: int) -> Message:
        """Return an own event's message at a position of the view."""
        address = own.agent, own.session, own.exchange
        return Message(own.event, seq, own.id, time_ns, *address, self.behaviour, own.models)

    def _at_position(self, message: Message) -> Message:
        return self._at(message, self.position, self.time_ns)

    def _fold_spontaneous(self, own: Recorded) -> None:
        if self.on_spontaneous is not None:
            self.on_spontaneous(own, self.state)
        self._note_behaviour(own)
        self._evolve_own(self._at_position(own.message))

    def _evolve_own(self, message: Message) -> None:
        if isinstance(message.event, Configured):
            self.configured = message.event
            self.behaviour = message.event.behaviour
            self._undecidable = None
            message = msgspec.structs.replace(message, behaviour=self.behaviour)
        try:
            self.state = self.actor.fold(self.state, message)
        except Exception:
            self.fold_errors += 1

    def decide_next(self, refused: bool = False) -> tuple[NewEvent, ...]:
        """Decide the next waiting message and fold it with its events; the caller appends them behind the fence.

        ``refused``: the broker refuses the events that this message leads to; a failure is recorded instead.
        """
        delivery = at_behaviour(self.waiting.popleft(), self.behaviour)
        decide_or_fail = fail_append if refused else decide
        decided, self.state = decide_or_fail(self.actor, self.state, delivery, self._partitions, self.partition)
        self.position, self.time_ns = delivery.stored.seq, delivery.stored.time_ns
        return decided

    def fold_silent(self) -> bool:
        """Fold the next waiting message if it leads to no event; otherwise change nothing and return False."""
        delivery, actor = at_behaviour(self.waiting[0], self.behaviour), self.actor
        if not isinstance(delivery, Recorded):
            return False
        try:
            for _ in actor.decide(self.state, delivery.message):
                return False
            self.state = actor.fold(self.state, delivery.message)
        except Exception:
            # A message that cannot be decided or folded leads to a failure event.
            return False
        self.waiting.popleft()
        self.position, self.time_ns = delivery.stored.seq, delivery.stored.time_ns
        return True

    def fold_ahead(self) -> bool:
        """Fold the next waiting message if it leads to no event, without waiting for an own event that shows this.

        False: it leads to one, and nothing is changed. See ``misplaced``.
        """
        if not self.fold_silent():
            return False
        self._assumed_to = self.position
        return True

    def stand_by(self) -> None:
        """Expect no own event any more that belongs before the view's position: see ``misplaced``.

        For a leader that leads no longer: it has decided the messages up to there, and its events are all stored.
        """
        self._assumed_to = self.position

    def fold_before(self, seq: int | None) -> None:
        """Fold waiting messages as ones that led to nothing: those before a sequence, or (None) all."""
        waiting = self.waiting
        while waiting and (seq is None or waiting[0].stored.seq < seq):
            self._fold(waiting.popleft(), ())

    def state_before(self, seq: int | None) -> Any:
        """Return the state that :meth:`fold_before` would lead to; nothing is changed."""
        state = self.state
        for delivery in self.waiting:
            if seq is not None and delivery.stored.seq >= seq:
                break
            if isinstance(delivery, Recorded):
                with suppress(Exception):  # _fold skips such a message, too
                    state = self.actor.fold(state, msgspec.structs.replace(delivery.message, behaviour=self.behaviour))
        return state

    def spontaneous_event(self, cause: Cause, emission: Any) -> tuple[NewEvent, ...]:
        """Fold an event that no message led to, at the view's position; the caller appends it behind the fence."""
        cause = msgspec.structs.replace(cause, behaviour=self.behaviour)
        decided = address_events(self.actor.name, cause, (emission,), self._partitions)
        self._evolve_own(decided[0].message)
        return decided

    def acknowledge(self, topics: Sequence[str], last: int, last_id: str = "") -> None:
        """Note that own events on these subjects are stored, the last at sequence ``last`` with id ``last_id``."""
        self.own_last, self.own_id = last, last_id
        for seq, topic in enumerate(topics, last - len(topics) + 1):
            if self.is_fenced(topic):
                self.fenced = seq

    def is_fenced(self, topic: str) -> bool:
        """Whether the partition's fence counts events of a public subject."""
        return topic.split(".", 2)[1] == self._main_prefix


def _says_the_same(recorded: Recorded, decided: NewEvent) -> bool:
    """Whether a recorded event is one that is decided now, but for fields that its release did not have."""
    if (recorded.envelope.id, recorded.stored.subject) != (decided.message.id, decided.subject):
        return False
    return recorded.stored.data == decided.data or BodyComparer().compare(recorded, decided).is_same
