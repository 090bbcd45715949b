"""Replay: fold recorded events through the same views as live, run no effect, and re-decide on demand.

Feed a :class:`Replay` every stored message from sequence 1 on, in order, from whatever source. Without ``verify``, no
decider is called. That a message led to no event is known only when its partition has recorded an event about a later
message. If a partition has recorded none for long, or its next event lies behind the point that is read up to, that
event is looked up further on in the log (:attr:`Replay.waiting_for_next_event`, :meth:`Replay.note_next_event`). After
a partition's last recorded event nothing tells what it decided; messages consumed there are folded as if they had led
to no event.

With ``verify`` every decision is made again from the state before it, and compared with the recorded events.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from events.codec import Recorded, Unreadable, decode, is_spontaneous
from events.log import Stored
from events.losses import LOSS_FILTER, is_loss
from events.replay.own_events import settles_before, without_wrapping
from events.replay.verifying.pending import Activity, Pending, first_undecided, oldest_of, overdue_timer
from events.replay.verifying.report import Coverage, Difference, Report, in_order
from events.replay.verifying.verification import BEYOND_BACKLOG, Unit, Verification
from events.routes import consumed_filters, lineage, own_filters, partition_names, routes, without_overlap
from events.view import Processed, View
from schemas.actor import Actor, Scope
from schemas.errors import UndecodableEvent
from schemas.persistent import state_hash
from schemas.subjects import Partitions

BACKLOG = 50_000
"""Messages of the log for which a consumed one waits at most, until it is seen whether any events can be owed for it.

It bounds what waits in memory, however many partitions it waits for. Settings and timers that a leader recorded while
it was further behind than this are folded where the replay stands instead of where the leader stood, and counted as
unverified.
"""

__all__ = ["BACKLOG", "BEYOND_BACKLOG", "Coverage", "Difference", "Replay", "Report", "Unit"]


class _Readers(msgspec.Struct, frozen=True):
    """Whom a subject's messages belong to.

    ``counts`` says that what cannot be read is counted here: by whoever folds the first of all partitions concerned.
    """

    owning: tuple[View, ...]
    consuming: tuple[View, ...]
    counts: bool


class Replay:
    """Folds stored messages into the views of every partition of the given actors.

    Attributes:
        views: (actor name, partition) -> view, for the partitions that had any message, or were asked for. Where the
            log was repartitioned, those in force where the replay stands.
        verification: What is compared, and how it came out.
        on_view: Called with each view that is made, before anything is folded into it.
        decides_tail: Whether messages behind a partition's last recorded event are decided, to see which of them wait
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
        share: AbstractSet[Unit] | None = None,
        of: AbstractSet[str] = frozenset(),
    ) -> None:
        """Begin before the first message.

        Args:
            actors: Whose views are folded.
            partitions: The partition counts of the log.
            verify: Make every decision again.
            keep: How many differences are kept; all are counted.
            backlog: See ``BACKLOG``.
            only: Actor name -> the one partition of it that is folded; an actor not named is folded whole.
            share: Of these, the partitions that are folded here, where others fold the rest; default: all.
            of: The exchanges of which differences are kept; default: of all.
        """
        named = {actor.name: actor for actor in actors}
        self._only = {name: frozenset(lineage(named[name], part, partitions)) for name, part in (only or {}).items()}
        self._share = share and {
            (name, part) for name, last in share for part in lineage(named[name], last, partitions)
        }
        self.views: dict[tuple[str, str], View] = {}
        self._stages = iter(partitions.stages)
        self._all, (self._through, self._partitions) = partitions, next(self._stages)
        self.verification = Verification(actors, self._partitions, keep=keep, of=of, reached=lambda: self._last)
        self._actors = tuple(actors)
        self._verify = verify
        self._stretch = max(1, backlog // 2)
        self._stretch_end = self._stretch
        self._routes: dict[str, _Readers | None] = {}
        self._unreadable: Counter[str] = Counter()
        self._activity = Activity()
        self.on_view: Callable[[View], None] | None = None
        self.decides_tail = False
        self._spoke: dict[Unit, int] = {}
        self._foreseen: dict[Unit, int | None] = {}
        self._settled_to = 0
        self._events = self._first = self._last = self._end = 0

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters over all that the replayed actors consumed and published."""
        taken = (one for actor in self._actors for one in (*consumed_filters(actor), *own_filters(actor)))
        return without_overlap((*taken, LOSS_FILTER))

    @property
    def partitions(self) -> Partitions:
        """The partition counts of the whole log."""
        return self._all

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
        if stored.seq >= self._stretch_end:
            self._settle_silent(stored.seq // self._stretch * self._stretch)
        self.verification.losses.note(stored)
        takers = self._readers(stored.subject)
        if takers is None:
            return
        delivery = decode(stored)
        if isinstance(delivery, Unreadable):
            self._note_unreadable(takers, delivery)
            return
        for view in takers.owning:
            view.apply_own(delivery)
            self._note_activity(view, delivery)
        if takers.consuming:
            delivery = without_wrapping(delivery)
            for view in takers.consuming:
                view.receive(delivery)

    def reach(self, seq: int) -> None:
        """Note that the log was read up to a sequence, with or without filters: partitions are divided where it was."""
        while seq >= self._through:
            self._through, self._partitions = next(self._stages)
            self._divide()

    def _divide(self) -> None:
        """Go on with the partitions that the log was then divided into, each with the state of the one before."""
        before, self.views = self.views, {}
        self._routes.clear()
        self._foreseen.clear()
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
                self._spoke[name, part] = self._spoke.get((name, partition), 0)
                if first:  # counted once, however many partitions go on from it
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
        return self._readers(subject) is not None or is_loss(subject)

    @property
    def waiting_for_next_event(self) -> tuple[Unit, ...]:
        """The partitions whose messages have waited so long that their next event should be looked up."""
        return self._waiting_since(self._settled_to)

    @property
    def undecided(self) -> tuple[Unit, ...]:
        """The partitions with waiting messages whose next event was not looked up."""
        return self._waiting_since(self._last)

    def _waiting_since(self, reached: int) -> tuple[Unit, ...]:
        return tuple(
            unit
            for unit, view in self.views.items()
            if unit not in self._foreseen and view.waiting and view.waiting[0].stored.seq <= reached
        )

    def note_next_event(self, ahead: Stored) -> None:
        """Note an event from further on in the log: it is the next event of its partition, if it is the first noted."""
        takers = self._readers(ahead.subject)
        for view in takers.owning if takers is not None else ():
            unit = view.actor.name, view.partition
            if unit not in self._foreseen:
                self._foreseen[unit] = settles_before(ahead)

    def knows_next_events(self, units: Sequence[Unit]) -> bool:
        """Whether the next event of each of some partitions is known."""
        return all(unit in self._foreseen for unit in units)

    def note_no_next_event(self, units: Sequence[Unit]) -> None:
        """Note that these partitions recorded no further event, unless one was noted, and fold accordingly."""
        for unit in units:
            next_place = self._foreseen.setdefault(unit, None)
            if not self._verify:
                self._fold_before(self.views[unit], next_place)

    def _fold_before(self, view: View, next_place: int | None) -> None:
        if next_place is not None or not self.decides_tail:
            view.fold_before(next_place)
            return
        while view.waiting and view.fold_silent():
            continue

    def skip(self, events: int, first_seq: int, last_seq: int) -> None:
        """Count messages that were not fed, since no partition here takes them."""
        self._events += events
        self._first = min(self._first or first_seq, first_seq)
        self._end = max(self._end, last_seq)

    def _note_activity(self, view: View, own: Recorded) -> None:
        self._foreseen.pop((view.actor.name, view.partition), None)
        self._spoke[view.actor.name, view.partition] = own.stored.time_ns
        if self._verify and not view.open_decision and not is_spontaneous(own.envelope.topic):
            self._activity.note(view.actor.name, view.time_ns)

    def _readers(self, subject: str) -> _Readers | None:
        try:
            return self._routes[subject]
        except KeyError:
            found = self._routes[subject] = self._route(subject)
            return found

    def _note_unreadable(self, takers: _Readers, delivery: Unreadable) -> None:
        if takers.counts:
            self._unreadable[delivery.code] += 1
        for view in takers.owning:
            if self._verify and delivery.code == UndecodableEvent.code:
                # Damage is what a verification is there to find; a newer release's event stops it as any reading.
                self.verification.unreadable(view, delivery)
            else:
                view.apply_own(delivery)
        for view in takers.consuming:
            view.receive(delivery)

    def finish(self) -> Report:
        """Settle what the log's end left open, and report.

        Messages behind the last event that a partition recorded are folded; where its next one was foreseen, only those
        before its cause. A verification decides them besides: one that leads to an event is pending, and so is a timer
        that was due by then. The state hashes are the same with and without.
        """
        self._last = max(self._last, self._end)
        self.reach(self._last)
        waiting: list[Pending] = []
        states: dict[Unit, Any] = {}
        for key, view in self.views.items():
            if 0 < view.open_decision < self._last:
                # Nothing lies between the events of one decision, so the rest of this one will never come.
                view.close_decision()
            next_place = self._foreseen.get(key, view.open_place)
            if not self._verify:
                view.fold_before(next_place)
                states[key] = view.state
                continue
            owed = self._owed(view, self._spoke.get(key, 0))
            if owed is not None:
                waiting.append(owed)
            states[key] = view.state_before(next_place)
        active = self._activity.seconds
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
        )

    def _owed(self, view: View, spoke_ns: int) -> Pending | None:
        """Fold what waits and leads to nothing; return the first that leads to more, or else a timer that is due."""
        while view.waiting:
            if not self._decide_silent(view):
                self.coverage[view.actor.name].pending += len(view.waiting)
                is_decidable = not self.verification.why_not_verifiable(
                    view, Processed(view.waiting[0], view.state, ())
                )
                return first_undecided(view, spoke_ns) if is_decidable else None
        return None if view.undecidable else overdue_timer(view, spoke_ns)

    def _settle_silent(self, reached: int) -> None:
        """Fold messages that have waited for a whole stretch of the log or longer, as long as they lead to no event.

        Messages wait until an own event shows what they led to. An actor that rarely emits events would otherwise keep
        the whole log in memory. A message that leads to an event waits for it: a verification decides whether it does;
        without verification, the events that were looked up tell. Stretches end at the same sequences whichever
        partitions are folded here. So each share of a log is folded exactly as in a replay of the whole.
        """
        self._stretch_end = reached + self._stretch
        if not self._verify:
            self._settled_to = reached - self._stretch
            for unit, next_place in self._foreseen.items():
                self._fold_before(self.views[unit], next_place)
            return
        for view in self.views.values():
            if view.open_decision or view.undecidable:
                continue
            while view.waiting and view.waiting[0].stored.seq <= reached - self._stretch:
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

    def _route(self, subject: str) -> _Readers | None:
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
        return _Readers(tuple(owning), tuple(consuming), counts) if owning or consuming else None

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

    def view_of(self, actor: Actor[Any], partition: str) -> View | None:
        """Return a partition's view, or that of the one it will be divided from; None where neither had a message."""
        names = reversed(lineage(actor, partition, self._all))
        return next((found for name in names if (found := self.views.get((actor.name, name)))), None)
