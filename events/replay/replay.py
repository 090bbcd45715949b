"""Replay: fold recorded events through the same views as live, run no effect, and re-decide on demand.

Feed a :class:`Replay` every stored message from sequence 1 on, in order, from whatever source. Without ``verify``, no
decider is called. That a message led to no event is known only when its partition has recorded an event about a later
message. If a partition has recorded none for long, or its next event lies behind the point that is read up to, that
event is looked up further on in the log (:attr:`Replay.waiting_for_next_event`, :meth:`Replay.note_next_event`). After
a partition's last recorded event nothing tells what it decided; messages consumed there are folded as if they had led
to no event.

With ``verify`` every decision is made again from the state before it, and compared with the recorded events. Where
nobody looks events up for it (:attr:`Replay.looks_ahead`), a message that has waited for long and leads to nothing is
taken as decided.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from events.decoding import Recorded, Unreadable, decode, is_spontaneous
from events.log import Stored
from events.losses import LOSS_FILTER, is_loss
from events.partition_fold import Checkpoint, Processed, View
from events.replay.unread_events import UnreadEvents
from events.replay.verifying.pending import Activity, Pending, first_undecided, oldest_of, overdue_timer
from events.replay.verifying.report import Coverage, Difference, Report, in_order
from events.replay.verifying.unread_causes import is_of_newer_version
from events.replay.verifying.verification import BEYOND_BACKLOG, ActorPartition, Verification
from events.replay.waiting_messages import decided_before, without_bytes
from events.routes import consumed_filters, lineage, own_filters, partition_names, routes, without_overlap
from schemas.actor import Actor, Scope
from schemas.errors import UndecodableEvent
from schemas.persistent import state_hash
from schemas.subjects import Partitions

BACKLOG = 50_000
"""A consumed message waits for this many sequences of the log at most, until it is known whether it led to events.

It bounds the memory for waiting messages. Settings and timers that a leader recorded while it was further behind than
this are folded at the replay's position instead of the leader's, and counted as unverified, by a verification that
looks up no event.
"""

__all__ = ["BACKLOG", "BEYOND_BACKLOG", "ActorPartition", "Coverage", "Difference", "Replay", "Report"]


class _Route(msgspec.Struct, frozen=True):
    """The views that receive a subject's messages: as its owners, or as consumers.

    ``counts``: unreadable messages of the subject are counted here. Where several replays share the partitions, the one
    that folds the first of the subject's partitions counts.
    """

    owning: tuple[View, ...]
    consuming: tuple[View, ...]
    counts: bool


class Replay:
    """Folds stored messages into the views of every partition of the given actors.

    Attributes:
        views: (actor name, partition) -> view, for the partitions that had any message, or were asked for. Where the
            log was repartitioned: those in force at the position of the replay.
        verification: What is compared, and how it came out.
        on_view: Called with each view that is made, before anything is folded into it.
        looks_ahead: Whether its caller looks up the events that it waits for, also for a verification.
        unread: The messages that a view received, and this release cannot read; an own one raises.
        decides_tail: Whether messages after a partition's last recorded event are decided, to see which of them wait
            for a decision, instead of being folded as if they had led to nothing.
    """

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        partitions: Partitions,
        *,
        verify: bool = False,
        keep: int = 20,
        backlog: int = BACKLOG,
        only: Mapping[str, str] | None = None,
        share: AbstractSet[ActorPartition] | None = None,
        chosen: AbstractSet[str] = frozenset(),
    ) -> None:
        """Begin before the first message.

        Args:
            actors: Whose views are folded.
            partitions: The partition counts of the log.
            verify: Make every decision again.
            keep: How many differences are kept; all are counted.
            backlog: See ``BACKLOG``.
            only: Actor name -> the one partition of it that is folded; an actor not named is folded whole.
            share: The partitions that are folded here, where other replays fold the rest; default: all.
            chosen: The exchanges whose differences are kept; default: all.
        """
        named = {actor.name: actor for actor in actors}
        self._only = {name: frozenset(lineage(named[name], part, partitions)) for name, part in (only or {}).items()}
        self._share = share and {
            (name, part) for name, last in share for part in lineage(named[name], last, partitions)
        }
        self.views: dict[ActorPartition, View] = {}
        self._generations = iter(partitions.generations)
        self._log_partitions = partitions
        # The partition counts in force here, and the sequence through which they are; see ``reach``.
        self._through, self._partitions = next(self._generations)
        self.verification = Verification(actors, self._partitions, keep=keep, chosen=chosen, reached=lambda: self._last)
        self._actors = tuple(actors)
        self._verify = verify
        self._settle_every = max(1, backlog // 2)
        self._next_settle = self._settle_every
        self._routes: dict[str, _Route | None] = {}
        self._unreadable: Counter[str] = Counter()
        self.unread = UnreadEvents()
        self._with_unread: set[ActorPartition] = set()
        self._activity = Activity()
        self.on_view: Callable[[View], None] | None = None
        self.decides_tail = False
        self.looks_ahead = False
        # When each partition's last event was stored, Unix nanoseconds.
        self._last_own_ns: dict[ActorPartition, int] = {}
        # Partitions whose next event was looked up -> the sequence of that event's cause: the messages before it led to
        # nothing. None: there is no further event, so all waiting messages are taken to have led to nothing.
        self._next_cause_seqs: dict[ActorPartition, int | None] = {}
        # Partitions whose waiting messages were folded because there was no further event.
        self._unsettled: set[ActorPartition] = set()
        self._settled_upto = 0  # messages up to there have waited for long; see ``_settle_silent``
        # How many messages the log had so far, the first and last sequence of those fed, and the last of all.
        self._events = self._first = self._last = self._end = 0

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters over all that the replayed actors consumed and published."""
        filters = (each for actor in self._actors for each in (*consumed_filters(actor), *own_filters(actor)))
        return without_overlap((*filters, LOSS_FILTER))

    @property
    def partitions(self) -> Partitions:
        """The partition counts of the whole log."""
        return self._log_partitions

    @property
    def reached(self) -> int:
        """The sequence of the last message that was fed."""
        return self._last

    @property
    def verifies(self) -> bool:
        """Whether decisions are made again; otherwise none is made at all."""
        return self._verify

    @property
    def coverage(self) -> Mapping[str, Coverage]:
        """The counts so far, by actor."""
        return self.verification.coverage

    def feed(self, stored: Stored) -> None:
        """Take the next message of the log."""
        if stored.seq > self._through:
            self.reach(stored.seq - 1)
        self._events += 1
        self._first = self._first or stored.seq
        self._last = stored.seq
        if stored.seq >= self._next_settle:
            self._settle_silent(stored.seq // self._settle_every * self._settle_every)
        self.verification.losses.note(stored)
        route = self._route_of(stored.subject)
        if route is None:
            return
        delivery = decode(stored)
        if isinstance(delivery, Unreadable):
            self._note_unreadable(route, delivery)
            return
        for view in route.owning:
            view.apply_own(delivery)
            self._note_activity(view, delivery)
        if route.consuming:
            delivery = without_bytes(delivery)
            for view in route.consuming:
                view.receive(delivery)

    def reach(self, seq: int) -> None:
        """Note that the log was read up to a sequence, with or without filters: partitions are divided where it was."""
        while seq >= self._through:
            self._through, self._partitions = next(self._generations)
            self._divide()

    def _divide(self) -> None:
        """Continue with the partitions that the log was then divided into, each from the state of its origin."""
        before, self.views = self.views, {}
        self._routes.clear()
        self._next_cause_seqs.clear()
        self.verification.partitions = self._partitions
        for (name, partition), view in before.items():
            while self._verify and view.actor.scope is not Scope.GLOBAL and view.waiting:
                if not self._decide_silent(view):
                    break
            first = True
            for part in partition_names(view.actor, self._partitions):
                if partition not in lineage(view.actor, part, self._partitions) or not self._is_folded(name, part):
                    continue
                self.views[name, part] = divided = view.divided(part, self._partitions)
                self._last_own_ns[name, part] = self._last_own_ns.get((name, partition), 0)
                if first:  # counted once, however many partitions it was divided into
                    divided.fold_errors, first = view.fold_errors, False
                if self._verify:
                    self.verification.divide((name, partition), part)
                self._watch(divided)

    def _is_folded(self, name: str, partition: str) -> bool:
        if name in self._only and partition not in self._only[name]:
            return False
        return self._share is None or (name, partition) in self._share

    def takes(self, subject: str) -> bool:
        """Whether messages of a stored subject belong to a partition that is folded here, or record a loss."""
        return self._route_of(subject) is not None or is_loss(subject)

    @property
    def waiting_for_next_event(self) -> tuple[ActorPartition, ...]:
        """The partitions whose messages have waited so long that their next event should be looked up."""
        return self._waiting_since(self._settled_upto)

    @property
    def undecided(self) -> tuple[ActorPartition, ...]:
        """The partitions with waiting messages whose next event was not looked up."""
        return self._waiting_since(self._last)

    def _waiting_since(self, reached: int) -> tuple[ActorPartition, ...]:
        return tuple(
            partition
            for partition, view in self.views.items()
            if partition not in self._next_cause_seqs and view.waiting and view.waiting[0].stored.seq <= reached
        )

    def note_next_event(self, ahead: Stored) -> None:
        """Note an event from further on in the log: it is the next event of its partition, if it is the first noted."""
        route = self._route_of(ahead.subject)
        for view in route.owning if route is not None else ():
            partition = view.actor.name, view.partition
            if partition not in self._next_cause_seqs:
                self._next_cause_seqs[partition] = decided_before(ahead)

    def knows_next_events(self, partitions: Sequence[ActorPartition]) -> bool:
        """Whether the next event of each of some partitions is known."""
        return all(partition in self._next_cause_seqs for partition in partitions)

    def note_no_next_event(self, partitions: Sequence[ActorPartition]) -> None:
        """Note that these partitions recorded no further event, unless one was noted, and fold accordingly."""
        for partition in partitions:
            next_cause_seq = self._next_cause_seqs.setdefault(partition, None)
            if next_cause_seq is None:
                self._unsettled.add(partition)
            self._fold_before(self.views[partition], next_cause_seq)

    def _fold_before(self, view: View, next_cause_seq: int | None) -> None:
        if self._verify:
            if not (view.open_decision or view.undecidable):
                while view.waiting and (next_cause_seq is None or view.waiting[0].stored.seq < next_cause_seq):
                    if not self._decide_silent(view):
                        break
            return
        if next_cause_seq is not None or not self.decides_tail:
            view.fold_before(next_cause_seq)
            return
        while view.waiting and view.fold_silent():
            continue

    def skip(self, events: int, first_seq: int, last_seq: int) -> None:
        """Count messages that were not fed, since no partition here receives them."""
        self._events += events
        self._first = min(self._first or first_seq, first_seq)
        self._end = max(self._end, last_seq)

    def _note_activity(self, view: View, own: Recorded) -> None:
        self._next_cause_seqs.pop((view.actor.name, view.partition), None)
        self._last_own_ns[view.actor.name, view.partition] = own.stored.time_ns
        if self._verify and not view.open_decision and not is_spontaneous(own.envelope.topic):
            self._activity.note(view.actor.name, view.time_ns)

    def _route_of(self, subject: str) -> _Route | None:
        try:
            return self._routes[subject]
        except KeyError:
            found = self._routes[subject] = self._make_route(subject)
            return found

    def _note_unreadable(self, route: _Route, delivery: Unreadable) -> None:
        if route.counts:
            self._unreadable[delivery.code] += 1
        for view in route.owning:
            if self._verify and delivery.code == UndecodableEvent.code:
                # A verification must report damage. An event of a newer release raises, as in any replay.
                self.verification.unreadable(view, delivery)
            else:
                view.apply_own(delivery)
        for view in route.consuming:
            view.receive(delivery)
        reached = (*route.owning, *route.consuming)
        if reached:
            self.unread.note(delivery)
            self._with_unread.update((view.actor.name, view.partition) for view in reached)

    def has_unread(self, key: ActorPartition) -> bool:
        """Whether a partition received a message that this release cannot read."""
        return key in self._with_unread

    def finish(self) -> Report:
        """Fold what still waits at the log's end, and report.

        Messages behind the last event that a partition recorded are folded; where its next event was looked up, only
        those before its cause. A verification also decides them: one that leads to an event is pending, and so is a
        timer that was due by then. The state hashes are the same with and without ``verify``.
        """
        self._last = max(self._last, self._end)
        self.reach(self._last)
        waiting: list[Pending] = []
        states: dict[ActorPartition, Any] = {}
        for key, view in self.views.items():
            next_cause_seq = self._next_seq_at_end(key, view)
            if not self._verify:
                view.fold_before(next_cause_seq)
                states[key] = view.state
                continue
            pending = self._first_pending(view, self._last_own_ns.get(key, 0), next_cause_seq)
            if pending is not None:
                waiting.append(pending)
            states[key] = view.state_before(next_cause_seq)
        active = self._activity.seconds
        self._note_newer_behaviours()
        self.verification.settle_doubts()
        self.verification.excuse_losses()
        return Report(
            self._events,
            self._first,
            self._last,
            {f"{name}/{part}": state_hash(state) for (name, part), state in sorted(states.items())},
            {name: in_order(counts) for name, counts in self.coverage.items()},
            self.verification.differences.first,
            dict(sorted(self._unreadable.items())),
            sum(view.fold_errors for view in self.views.values()),
            oldest_of(waiting, active),
            active,
            dict(self.unread.newer_behaviours),
        )

    def fold_waiting(self) -> None:
        """Fold what still waits at the end, as :meth:`finish` does without ``verify``, but report nothing."""
        self.reach(self._last)
        for key, view in self.views.items():
            view.fold_before(self._next_seq_at_end(key, view))
        self._note_newer_behaviours()

    def _note_newer_behaviours(self) -> None:
        for (name, _), view in self.views.items():
            if view.newer_behaviour:
                self.unread.note_behaviour(name, view.newer_behaviour)

    def _next_seq_at_end(self, key: ActorPartition, view: View) -> int | None:
        """Return the sequence before which a view's messages led to nothing, at the end of what was read."""
        if 0 < view.open_decision < self._last:
            # Nothing lies between the events of one decision, so the rest of this one will never come.
            view.close_decision()
        return self._next_cause_seqs.get(key, view.open_cause_seq)

    def _first_pending(self, view: View, last_own_ns: int, next_cause_seq: int | None) -> Pending | None:
        """Fold waiting messages that lead to no event; return the first that leads to one, else a timer that is due.

        Whether a message that only a newer release can read was decided is known only if the partition's next event,
        whose cause is at ``next_cause_seq``, shows it.
        """
        while view.waiting:
            if self._decide_silent(view):
                continue
            delivery = view.waiting[0]
            if is_of_newer_version(delivery) and (next_cause_seq is None or delivery.stored.seq < next_cause_seq):
                view.fold_before(delivery.stored.seq + 1)  # the view counts it as passed over
                continue
            self.coverage[view.actor.name].pending += len(view.waiting)
            is_decidable = not (
                self.verification.why_untrusted(view, delivery)
                or self.verification.why_not_verifiable(view, Processed(delivery, view.state, ()))
            )
            return first_undecided(view, last_own_ns) if is_decidable else None
        if view.undecidable or self.verification.why_untrusted(view):
            return None
        return overdue_timer(view, last_own_ns)

    def _settle_silent(self, reached: int) -> None:
        """Fold messages that have waited for ``_settle_every`` sequences or more, as long as they lead to no event.

        Messages wait until an own event shows what they led to. An actor that rarely emits events would otherwise keep
        the whole log in memory. A message that leads to an event waits for it: the events that were looked up show
        whether it does, or a verification decides it. This runs at the same sequences whichever partitions are folded
        here. So each share of a log is folded exactly as in a replay of the whole.
        """
        self._next_settle = reached + self._settle_every
        if self.looks_ahead or not self._verify:
            self._settled_upto = reached - self._settle_every
            for partition, next_cause_seq in self._next_cause_seqs.items():
                self._fold_before(self.views[partition], next_cause_seq)
            return
        for view in self.views.values():
            if view.open_decision or view.undecidable:
                continue
            while view.waiting and view.waiting[0].stored.seq <= reached - self._settle_every:
                if not self._decide_silent(view):
                    break
                self.verification.note_folded_early(view)

    def _decide_silent(self, view: View) -> bool:
        """Decide and fold the oldest waiting message if it leads to no event; otherwise change nothing."""
        before, delivery = view.state, view.waiting[0]
        if not view.fold_silent():
            return False
        self.verification.count_silent(view, Processed(delivery, before, ()))
        return True

    def _make_route(self, subject: str) -> _Route | None:
        try:
            found = tuple(routes(self._actors, subject, self._partitions))
        except ValueError:
            return None
        owning: list[View] = []
        consuming: list[View] = []
        counts = False
        for number, (actor, partition, own) in enumerate(
            (actor, partition, own)
            for actor, partition, own in found
            if actor.name not in self._only or partition in self._only[actor.name]
        ):
            if self._share is not None and (actor.name, partition) not in self._share:
                continue
            counts = counts or number == 0
            (owning if own else consuming).append(self.view(actor, partition))
        return _Route(tuple(owning), tuple(consuming), counts) if owning or consuming else None

    def view(self, actor: Actor[Any], partition: str) -> View:
        """Return the view of a partition; make it if it is new."""
        view = self.views.get((actor.name, partition))
        if view is None:
            view = self.views[actor.name, partition] = View(actor, partition, self._partitions)
            self._watch(view)
        return view

    def _watch(self, view: View) -> None:
        if self._verify:
            self.verification.watch(view)
        if self.on_view is not None:
            self.on_view(view)

    def begin_at(self, actor: Actor[Any], partition: str, checkpoint: Checkpoint) -> None:
        """Fold a partition on from a checkpoint, instead of from the first event. Nothing may have been fed yet.

        Only for a replay that verifies nothing, of a log that was never repartitioned.
        """
        view = self.views[actor.name, partition] = View(actor, partition, self._partitions, checkpoint)
        self._watch(view)

    def is_settled(self, partition: ActorPartition) -> bool:
        """Whether recorded events show what was decided about each message that the partition's view has folded.

        Otherwise some were taken to have led to nothing, since its log ends before it tells.
        """
        return partition not in self._unsettled

    def view_of(self, actor: Actor[Any], partition: str) -> View | None:
        """Return a partition's view, or that of the one it will be divided from; None if neither had a message."""
        names = reversed(lineage(actor, partition, self._log_partitions))
        return next((found for name in names if (found := self.views.get((actor.name, name)))), None)
