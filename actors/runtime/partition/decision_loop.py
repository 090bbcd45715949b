"""The decision loop of one partition: it decides, and puts each decision into an outbox to be appended.

It is synchronous, with one exception: the proof that the log is complete is awaited in a task of its own. A *fence* is
the condition of an append: the partition's last event is the one that this process knows. A *spontaneous event* is one
that no message led to, such as a timer's.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from actors.runtime.budget import Budget
from actors.runtime.committer import Group
from actors.runtime.context import Context, Role
from actors.runtime.effectors.left_to_others import NEWER_S, LeftToOthers
from actors.runtime.fair_scheduler import LONG_BYTES, SLICE_NS
from actors.runtime.partition.completeness_proof import CompletenessProof
from actors.runtime.partition.event_author import EventAuthor
from actors.runtime.partition.snapshot_saver import SnapshotSaver
from actors.runtime.partition.timer_loop import TimerLoop
from events.decoding import Unreadable, exchange_of
from events.errors import LogError
from events.log import Fence
from events.loggers import get_logger
from events.make_decision import Cause, NewEvent
from events.partition_fold import Checkpoint, Delivery, View
from events.routes import fence_filter
from schemas.actor import Actor, Emission, Timer
from schemas.availability import Availability
from schemas.errors import UnknownVersion

_OUTBOX = 1_000
"""Most decisions that wait for their append; while the outbox holds this many, nothing more is decided."""

_logger = get_logger("neuraxis.shard")


class DecisionLoop(ABC):
    """A partition that decides while it leads. ``Shard`` adds how it starts to lead and how it loses the lead.

    Attributes:
        role: What it does now.
        view: Its fold of the log: the state, and the messages that wait to be decided.
        outbox: Decisions not yet acknowledged, oldest first.
        epoch: Changes each time the state is discarded.
        budget: Counts the decisions made here that took longer than the actor's settings allow.
        declines: Whether a message of a newer release came, which this one cannot read: the heartbeat then says that
            other workers should run this actor.
    """

    def __init__(self, actor: Actor[Any], partition: str, settings: msgspec.Struct, context: Context) -> None:
        self.actor = actor
        self.partition = partition
        self.role = Role.RECOVERING
        self.outbox: deque[Group] = deque()
        self.epoch = 0
        self.view = View(actor, partition, context.log.partitions)
        self._author = EventAuthor(actor, partition, settings, context)
        self.budget = Budget(actor.name, partition, self._author.settings)
        self._context = context
        self._measurements = context.measurements.by_actor[actor.name]
        self._fence_filter = fence_filter(actor, partition)
        # What was read back for a recovery has to be proved complete before anything is appended.
        self._proof = CompletenessProof(context.gap_check)
        self._snapshots = SnapshotSaver(actor, partition, context)
        self._timer_loop = TimerLoop(self)
        self._own_in_flight: set[str] = set()  # ids of the events in the outbox
        self._refused: set[int] = set()  # sequences of the causes whose decisions the broker refused to store
        self._own_arrived = asyncio.Event()  # set when an own event was read or acknowledged, or the state discarded
        self._left_to_newer = LeftToOthers(context.clock, NEWER_S)
        self._recheck: asyncio.TimerHandle | None = None  # for a message left to workers of a newer release
        self.declines = False
        self._stopping = False
        # The partition's last sequence as the log states it, if the message there can no longer be read; else None.
        self._fence_last: int | None = None
        self._led_anew = False  # it leads, and has written no spontaneous event since
        self._acknowledged: Checkpoint | None = None  # the view before the first decision in the outbox
        self._warming: asyncio.Task[None] | None = None
        self._proving: asyncio.Task[None] | None = None

    @abstractmethod
    def reset(self, reason: str, last: int | None = None) -> None:
        """Discard the state and recover; see ``actors.runtime.committer.Writer``."""

    @property
    def unsaved(self) -> bool:
        """Whether the latest snapshot could not be saved."""
        return self._snapshots.unsaved

    @property
    def backlog(self) -> int:
        """How many messages wait to be decided."""
        return len(self.view.waiting)

    def is_behind(self, seq: int) -> bool:
        """Return whether it still recovers, or leads and has not yet decided a message at or before ``seq``."""
        if self.role is not Role.LEADING:
            return self.role is Role.RECOVERING
        return bool(self.view.waiting) and self.view.waiting[0].stored.seq <= seq

    def turn(self) -> None:
        """Continue to decide, if this shard still leads."""
        if self.role is Role.LEADING:
            self.work(in_turn=True)

    def work(self, *, in_turn: bool = False) -> None:
        """Decide waiting messages for one slice of time, as long as the outbox has room and no snapshot is due.

        Large messages are decided only in turn, so that short messages of other partitions behind them do not wait.
        """
        view, counters, clock = self.view, self._context.counters, self._context.clock
        measurements, scheduler = self._measurements, self._context.scheduler
        submitted = False
        begun = started = clock.elapsed_ns()
        while view.waiting and self._may_decide() and self not in scheduler:
            message = view.waiting[0]
            if not in_turn and len(message.stored.data) >= LONG_BYTES:
                scheduler.add(self)
                break
            if self._leaves_to_newer(message):
                break
            sequence = message.stored.seq
            evicts = self._evicts(message)
            before = view.state, view.position, view.time_ns
            decided = view.decide_next(refused=sequence in self._refused)
            now = clock.elapsed_ns()
            counters.decided += 1
            measurements.decisions.observe(now - started)
            exceeded = self.budget.observe(now - started, now, sequence, exchange_of(message))
            counters.over_budget += exceeded
            self._snapshots.count()
            if decided:
                submitted = True
                if not self.outbox:
                    state, position, time_ns = before
                    self._acknowledged = msgspec.structs.replace(
                        view.checkpoint(), state=state, position=position, time_ns=time_ns
                    )
                exceeded_budget_us = self.budget.limit_us if exceeded else None
                self._submit_decision(decided, (now - started) // 1000, exceeded_budget_us, message)
            else:
                measurements.outcomes[""] += 1
            self._snapshots.drain_if_due()
            if evicts and not (view.waiting and self._evicts(view.waiting[0])):  # of several, the last
                self._warming = self._spawn(self._warm_live())
            if now - begun >= SLICE_NS:
                scheduler.add(self)
            elif view.waiting:
                started = clock.elapsed_ns()
        if submitted:
            self._submit()
        self._after_work()

    def _leaves_to_newer(self, delivery: Delivery) -> bool:
        """Return whether a message is left to workers of the newer release that wrote it: here it could only fail.

        It is left to them for as long as a worker may take to start; then the failure is recorded.
        """
        if not isinstance(delivery, Unreadable) or delivery.code != UnknownVersion.code:
            return False
        kind = ""  # one kind for all messages: any worker of the newer release can decide them
        pause_s = self._left_to_newer.pause_s(kind, delivery.stored.seq, delivery.stored.time_ns)
        if pause_s and self._recheck is None:
            self._recheck = asyncio.get_running_loop().call_later(pause_s, self._check_again)
        return bool(pause_s)

    def _check_again(self) -> None:
        self._recheck = None
        self.turn()

    def _may_decide(self) -> bool:
        return (
            not (self._snapshots.draining or self._stopping or self._warming is not None) and len(self.outbox) < _OUTBOX
        )

    def _evicts(self, delivery: Delivery) -> bool:
        """Return whether this message removes from the cache something that the next decision must build again."""
        kinds = self.actor.evicts_cache
        return bool(kinds) and not isinstance(delivery, Unreadable) and isinstance(delivery.message.event, kinds)

    def renew_snapshot(self, seq: int) -> None:
        """Take a new snapshot as soon as everything up to ``seq`` is folded, so that no older one is kept."""
        self._snapshots.renew(seq)
        if self.role is Role.LEADING:
            self._after_work()

    def _after_work(self) -> None:
        """If nothing is in flight, take a snapshot that is due; then have the timer loop read the state again."""
        self._snapshots.check_renewal(self.view)
        if self._snapshots.draining and not self.outbox:
            self._snapshots.take(self.view, self._on_snapshot_saved)
            if self.view.waiting:
                self.work()
                return
        self._timer_loop.on_change()

    def _on_snapshot_saved(self) -> None:
        if self.role is Role.LEADING:
            self._after_work()

    def _submit_decision(
        self,
        decided: tuple[NewEvent, ...],
        latency_us: int,
        exceeded_budget_us: int | None = None,
        cause: Delivery | None = None,
    ) -> None:
        self.outbox.append(self._author.group(decided, latency_us, exceeded_budget_us, cause))
        self._own_in_flight.update(one.message.id for one in decided)

    def _submit_spontaneous_event(self, cause: Cause, emission: Emission) -> None:
        if not self.outbox:
            self._acknowledged = self.view.checkpoint()
        self._submit_decision(self.view.spontaneous_event(cause, emission), 0)
        if self._led_anew and self.view.own_last:
            # An earlier leader's snapshot may have folded messages after this event's position: it is unusable then.
            self._snapshots.renew(max(1, self.view.position))
        self._led_anew = False

    def record_availability(self, availability: Availability) -> bool:
        """Have the actor record what this process measured of all stages, if it is new; return whether it could.

        It cannot while an append is in flight: that append may hold the same events, and both would have the same ids.
        """
        events_of = self.actor.on_availability
        if (
            events_of is None
            or self.role is not Role.LEADING
            or self.outbox
            or self._snapshots.draining
            or self._stopping
        ):
            return False
        for number, event in enumerate(tuple(events_of(self.view.state, availability))):
            # Event ids are derived from this text, so it never changes.
            cause = f"{self.actor.name}/{self.partition}/{self.view.own_last}/attended/{number}"
            self._submit_spontaneous_event(self._author.spontaneous_cause(self.view, cause), Emission(event))
            self._snapshots.count()
        if self.outbox:
            # The log may have lost what this shard recorded last, and that may be the same event.
            self._submit(since=self.view.own_last)
        return True

    def _submit(self, since: int | None = None) -> None:
        """Have the outbox appended, once it is proved that the log lacks nothing after the sequence ``since``.

        The default is the sequence of the message that the first decision in the outbox is about.
        """
        first_seq = since
        if first_seq is None:
            first_seq = self.outbox[0].decided[0].cause_seq if self.outbox else 0
        if not self._proof.is_needed(first_seq):
            self._context.committer.submit(self)
        elif self._proving is None and self.outbox:
            self._proving = self._spawn(self._prove(first_seq))

    async def _prove(self, since: int) -> None:
        if await self._is_complete(since):
            self._proving = None
            self._proof.note_proved(since)
            self._context.committer.submit(self)

    async def _is_complete(self, since: int | None = None) -> bool:
        """Return whether what was read back from a sequence on has no unrecorded gap, and this shard still leads.

        If a gap is recorded meanwhile, every partition folds the log again, this one included.
        """
        epoch = self.epoch
        try:
            await self._proof.ensure_gaps_recorded(since)
        except LogError as error:
            if self.epoch == epoch:
                self.reset(error.code)
            return False
        return self.epoch == epoch

    def fence(self) -> Fence:
        """Return the fence that the next append must hold."""
        return Fence(self._fence_filter, self.view.fenced if self._fence_last is None else self._fence_last)

    def committed(self, groups: Sequence[Group], last_seq: int) -> None:
        """Handle that these groups are stored, the last record at ``last_seq``."""
        written = [one for group in groups for one in group.decided]
        self.view.acknowledge([one.topic for one in written], last_seq, written[-1].message.id)
        self._fence_last = None
        if self._outbox_is_full:
            self._timer_loop.on_change()
        for group in groups:
            self.outbox.popleft()
            self._measurements.outcomes[group.decided[0].topic] += 1
            self._author.log(group)
            for one in group.decided:
                self._own_in_flight.discard(one.message.id)
                inbox = getattr(one.message.event, "reply_to", "")
                if inbox:
                    self._spawn(self._context.reply(inbox, group))
        if not self.outbox:
            self._acknowledged = None
        self._own_arrived.set()
        if self.role is not Role.LEADING:
            return
        if self.view.waiting:
            self.work()
        else:
            self._after_work()

    def refused(self, group: Group) -> None:
        """Handle a group that the broker will never store: a failure is recorded for its cause instead."""
        self._refused.add(group.decided[0].cause_seq)
        self.reset("append_refused")

    def _complete_decision(self) -> None:
        """Append the rest of a decision that the log holds only in part, after a loss."""
        if not self.view.open_decision:
            return
        _logger.error("half_a_decision", actor=self.actor.name, partition=self.partition, seq=self.view.open_decision)
        missing = self.view.complete_decision()
        if missing:
            self._submit_decision(missing, 0)
            self._submit()

    def _record_settings(self) -> None:
        if not self._author.is_configured(self.view):
            event = self._author.configured()
            self._submit_spontaneous_event(self._author.settings_cause(self.view), Emission(event))
            self._submit()

    # --- timers

    def due(self, now_ns: int) -> Timer | None:
        """Return the timer of the present state if it is due; else None."""
        timer = self.timer()
        return timer if timer is not None and timer.due_ns <= now_ns else None

    def timer(self) -> Timer | None:
        """Return the timer of the present state, due or not; None where it has none."""
        return None if self.actor.timer is None else self.actor.timer(self.view.state)

    @property
    def has_no_backlog(self) -> bool:
        """Whether nothing waits that may cancel the timer; a backlog of messages is decided first."""
        return not self.view.waiting and not self._snapshots.draining

    def now_ns(self) -> int:
        """Return the process's time, Unix nanoseconds."""
        return self._context.clock.now_ns()

    @property
    def needs_proof(self) -> bool:
        """Whether the log must still be proved complete: the event of the timer may be one that it lost."""
        return self._proof.is_needed()

    async def prove(self) -> bool:
        """Prove that the log is complete; return whether this shard still leads."""
        complete = await self._is_complete()
        if complete:
            self._proof.note_proved()
        return complete

    def fire(self, now_ns: int) -> None:
        """Append the event of the timer that is due."""
        while len(self.outbox) < _OUTBOX:
            timer = self.due(now_ns)
            if timer is None:
                break
            self._submit_spontaneous_event(self._author.spontaneous_cause(self.view, timer.cause), timer.emission)
            self._snapshots.count()
        self._submit()
        if not self._outbox_is_full:  # else the timers look again once some of it is stored; see `committed`
            self._timer_loop.on_change()

    @property
    def _outbox_is_full(self) -> bool:
        return len(self.outbox) >= _OUTBOX

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._context.tasks.create_task(work)
        return task

    async def _warm_live(self) -> None:
        """Build what a message has evicted from the cache while this shard leads; it decides nothing until then."""
        epoch = self.epoch
        await self._warm(self.view.state)
        if self.epoch == epoch:
            self._warming = None
            if self.role is Role.LEADING:
                self.work()

    async def _warm(self, *states: Any) -> None:
        warm = self.actor.warm
        assert warm is not None, "an actor that evicts from its cache has a warm function"
        try:
            # One partition at a time: of partitions that need the same thing, the first builds it for all.
            async with self._context.warming:
                await self._context.offload(lambda: [warm(state) for state in states].clear())
        except Exception as wrong:
            # No decision changes: the next one builds what is missing, and takes longer.
            _logger.warning(
                "warming_failed", actor=self.actor.name, partition=self.partition, error=type(wrong).__name__
            )
