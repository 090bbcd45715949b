"""One partition of an actor in this process: recovering, standing by, or leading.

It is passive and synchronous: the dispatcher hands it messages, and it decides about them (``decision_loop``). Only
recovery is awaited, in a task of its own.
"""

import asyncio
from typing import Any

import msgspec

from actors.runtime.context import Context, Role
from actors.runtime.effectors.left_to_others import NEWER_S
from actors.runtime.measurements import LEASE_LEFT, LEASE_TAKEN
from actors.runtime.partition.decision_loop import DecisionLoop
from actors.runtime.partition.log_damage import has_folded, is_own_gone, lost_fence
from actors.runtime.partition.recovery import Kept, fold_history, is_of_newer_release
from events.decoding import Unreadable
from events.errors import LogError, Misconfigured
from events.loggers import get_logger
from events.partition_fold import Delivery
from schemas.actor import Actor, Message

_RETRY_FIRST, _RETRY_MOST = 0.02, 1.0
"""First and longest pause before a recovery is tried again, in seconds."""

_CALM_AFTER = 5.0
"""After this many seconds without losing its state, a shard recovers at once from the next loss, without a pause."""

_OWN_DEADLINE = 5.0
"""Seconds that the events of an earlier leader get to arrive before this shard recovers again.

The time runs out only after the process has read up to the last of these events: before, recovering would not help.
"""

_logger = get_logger("neuraxis.shard")


class Shard(DecisionLoop):
    """One partition of an actor in this process; it is a ``Writer`` of ``actors.runtime.committer``.

    Attributes:
        is_to_lead: Whether it is to lead once recovered, or to stand by.
    """

    def __init__(self, actor: Actor[Any], partition: str, settings: msgspec.Struct, context: Context) -> None:
        super().__init__(actor, partition, settings, context)
        self.is_to_lead = False
        self._inbox: list[tuple[Delivery, bool]] = []  # what arrives during recovery, as ``on_message`` takes it
        self._recovery: asyncio.Task[None] | None = None
        self._reads_back = False  # whether the recovery under way has begun to read the log
        self._stated_last: int | None = None  # the ``last`` of the latest ``reset``
        self._kept: Kept | None = None  # what the next recovery begins with, rather than with the snapshot
        self._folds_ahead_from = context.standby_backlog  # how many messages may wait before it folds some of them
        self._pause_s = 0.0  # before the next recovery
        self._lost_at = float("-inf")  # when it last lost its state (the event loop's time)

    def __repr__(self) -> str:
        return f"Shard({self.actor.name}/{self.partition} {self.role})"

    @property
    def wanted_role(self) -> Role:
        """The role that it is to have once it has recovered."""
        return Role.LEADING if self.is_to_lead else Role.STANDBY

    @property
    def struggling(self) -> bool:
        """Whether it has lost its state again and again lately: it recovers each time but does not advance."""
        calm = asyncio.get_running_loop().time() - self._lost_at > _CALM_AFTER
        return self._pause_s >= _RETRY_MOST and not calm

    # --- start, roles and stop

    def start(self, lead: bool) -> None:
        """Recover, then lead or stand by."""
        self.is_to_lead = lead
        if lead:
            self._measurements.leases[LEASE_TAKEN] += 1
        self._recover()

    def set_leading(self, lead: bool) -> None:
        """Start to lead, or stop leading; a recovery in progress ends in the new role."""
        if lead == self.is_to_lead:
            return
        self.is_to_lead = lead
        self._measurements.leases[LEASE_TAKEN if lead else LEASE_LEFT] += 1
        if self.role is Role.RECOVERING:
            return
        if lead:
            self._context.counters.takeovers += 1
            self._recovery = self._spawn(self._take_over())
        elif self.outbox:
            self._discard_state()
            self._recover()
        else:
            self.view.stand_by()
            self._stand_by()

    async def drain(self) -> None:
        """Decide no more, wait for the outbox to be appended, take a snapshot, and stop."""
        self._stopping = True
        if self.is_to_lead:
            self._measurements.leases[LEASE_LEFT] += 1
        self._timer_loop.stop()
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)
        while self.role is Role.LEADING and self.outbox:
            self._own_arrived.clear()
            await self._own_arrived.wait()
        await self._snapshots.close(self.view if self.role is Role.LEADING else None)
        self._discard_state()

    # --- messages

    def on_message(self, delivery: Delivery, own: bool) -> None:
        """Take the partition's next message; ``own`` says whether this actor wrote it."""
        if isinstance(delivery, Unreadable) and is_of_newer_release(delivery):
            self.declines = True
            if own and self.role is Role.STANDBY:
                self.view.pass_over(delivery)  # it cannot take over any more: workers that can read it will
                return
        if self.role is Role.RECOVERING:
            self._inbox.append((delivery, own))
        elif not own:
            self.view.receive(delivery)
            if self.role is Role.LEADING:
                self.work()
            elif len(self.view.waiting) > self._folds_ahead_from:
                self._fold_ahead()
        elif self.role is Role.STANDBY:
            self.view.apply_own(delivery)
            self.declines = self.declines or bool(self.view.newer_behaviour)
            self._own_arrived.set()
            if self.view.misplaced:  # it belongs before what is folded here: another worker leads
                self.reset("misplaced_event")
        elif delivery.stored.seq > self.view.own_last and not self._is_ours(delivery):
            self.reset("foreign_event")

    def _fold_ahead(self) -> None:
        """Fold two waiting messages for each that comes, so that the backlog shrinks.

        Folding stops at a message that leads to an event: the leader decides that one.
        """
        for _ in range(2):
            if not self.view.fold_ahead():
                # The leader's event for it is to come. To decide the message again each time would cost much.
                self._folds_ahead_from = len(self.view.waiting) + self._context.standby_backlog
                return
        self._folds_ahead_from = self._context.standby_backlog

    def _is_ours(self, delivery: Delivery) -> bool:
        return not isinstance(delivery, Unreadable) and delivery.envelope.id in self._own_in_flight

    def reset(self, reason: str, last: int | None = None) -> None:
        """Discard the state and recover: another worker appended, or the outcome of an append is unknown.

        ``last`` is the sequence of the partition's last event, as the broker stated it when it refused an append; None
        where it did not.
        """
        self._stated_last = last
        if self.role is Role.RECOVERING and not self._reads_back:
            return  # it has not read anything yet that could be lost
        self._context.counters.conflicts += 1
        self._measurements.conflicts[reason] += 1
        _logger.info("fence_lost", actor=self.actor.name, partition=self.partition, reason=reason)
        now = asyncio.get_running_loop().time()
        if now - self._lost_at > _CALM_AFTER:
            self._pause_s = 0.0
        self._lost_at = now
        self._discard_state()
        self._recover()

    # --- recovery

    def _to_keep(self) -> Kept | None:
        """Return the part of the state to be discarded that is certainly in the log; None if that is not known."""
        if self.role is Role.RECOVERING:
            return self._kept  # the recovery has not read all of the log yet
        checkpoint = self._acknowledged if self.outbox else self.view.checkpoint()
        if checkpoint is None or self.view.misplaced or self.view.passed_over:
            return None
        return Kept(checkpoint, self._snapshots.last_loss, self._proof.unproved_after)

    def _discard_state(self) -> None:
        self._kept, self._acknowledged = self._to_keep(), None
        self.epoch += 1
        self.role = Role.RECOVERING
        self.outbox.clear()
        self._own_in_flight.clear()
        self._inbox.clear()
        self._snapshots.draining = False
        self._warming = None
        self._proof.note_proved()  # what was read back is discarded: nothing of it needs a proof any more
        if self._proving is not None and self._proving is not asyncio.current_task():
            self._proving.cancel()
        self._proving = None
        self._fence_last = None
        self._timer_loop.stop()
        self._own_arrived.set()

    def _recover(self) -> None:
        if self._stopping:
            return
        if self._recovery is not None and self._recovery is not asyncio.current_task():
            self._recovery.cancel()
        self._reads_back = False
        self._recovery = self._spawn(self._run_recovery())

    async def _run_recovery(self) -> None:
        """Fold the log up to what the process has dispatched, then lead or stand by."""
        while True:
            if self._pause_s:
                await asyncio.sleep(self._pause_s)
            self._pause_s = min(_RETRY_MOST, 2 * self._pause_s) or _RETRY_FIRST
            self._reads_back = True
            try:
                await self._read_history()
                break
            except Misconfigured:
                raise
            except LogError as error:
                # Two hundred partitions may wait for one broker: a log line for each attempt of each would hide all
                # other lines.
                log = _logger.warning if self._context.recovery_warnings.is_due() else _logger.debug
                log(
                    "recovery_waits",
                    actor=self.actor.name,
                    partition=self.partition,
                    error=error.code,
                    detail=str(error),
                )
        self._context.recovery_warnings.ended()
        self._context.counters.recoveries += 1
        self._measurements.recoveries += 1
        await self._take_over()

    async def _take_over(self) -> None:
        """Build in advance what the first decision needs, then lead if it is to lead."""
        await self._warm_up()
        if self.is_to_lead:
            await self._promote()

    async def _warm_up(self) -> None:
        """Warm up the state in another thread; messages wait meanwhile, so that nothing changes the state."""
        if self.actor.warm is None or self.role is not Role.STANDBY:
            return
        epoch, self.role = self.epoch, Role.RECOVERING
        await self._warm(self.view.state, self._configured_state())
        if self.epoch != epoch or self._stopping:
            return
        self._stand_by()
        inbox, self._inbox = self._inbox, []
        for delivery, own in inbox:
            self.on_message(delivery, own)

    def _configured_state(self) -> Any:
        """Return the state as it will be once this shard has recorded its settings."""
        configured = self._author.configured()
        return self.actor.fold(self.view.state, Message(configured, self.view.position, "", self.view.time_ns))

    async def _read_history(self) -> None:
        self._inbox.clear()
        upto = self._context.position()  # later messages come to the inbox
        found = await fold_history(self.actor, self.partition, self._context, upto, self._kept)
        self.view, self._kept = found.view, None
        self.declines = self.declines or bool(found.view.passed_over)
        self._proof.read_back(found.after, upto)
        self._snapshots.begin(found.last_loss)
        if found.snapshot_is_bad:
            self._snapshots.renew(max(1, self.view.position))
        self._stand_by()
        for delivery, own in self._inbox:
            self.on_message(delivery, own)
        self._inbox.clear()

    def _stand_by(self) -> None:
        self.role = Role.STANDBY
        self._timer_loop.stop()

    async def _promote(self) -> None:
        """Lead, once every event is folded that earlier leaders of this partition have written."""
        epoch = self.epoch
        if self.view.passed_over:
            await self._leave_to_newer(epoch)
            return
        try:
            last = await self._context.log.last(self._fence_filter)
            # After the fence is read: a repartitioning first marks the stream, and only then moves every fence.
            info = await self._context.log.info()
            while self.epoch == epoch:
                self._own_arrived.clear()
                if await has_folded(self._context.log, self.view, last):
                    break
                await self._own_event(last)
            stated, self._stated_last = self._stated_last, None
            fence_last = await lost_fence(self._context.log, self.view, stated)
        except (LogError, TimeoutError) as error:
            if self.epoch == epoch and self.is_to_lead and not self._stopping:
                _logger.info("promotion_waits", actor=self.actor.name, partition=self.partition, error=str(error))
                self._discard_state()
                self._recover()
            return
        if self.view.passed_over:
            await self._leave_to_newer(epoch)
            return
        if info.is_repartitioning or info.partitions != self._context.log.partitions:
            raise Misconfigured("the log was repartitioned since this process began: start it again")
        if self.epoch != epoch or not self.is_to_lead or self._stopping or self.role is not Role.STANDBY:
            return
        self.role, self._led_anew = Role.LEADING, True
        self._proof.begin(self.view, self._context.position())
        if fence_last is not None:
            _logger.error("own_event_lost", actor=self.actor.name, partition=self.partition, seq=self.view.fenced)
            self._fence_last = fence_last
        self._complete_decision()
        self._record_settings()
        if self.actor.timer is not None:
            self._timer_loop.start(self._spawn)
        self.work()

    async def _leave_to_newer(self, epoch: int) -> None:
        """Wait for a worker of a newer release, which may be there or starting, to take this partition over.

        It does once it has heard, by a heartbeat, that this worker declines the actor.

        Raises:
            Misconfigured: none did in time.
        """
        await asyncio.sleep(NEWER_S)
        if self.epoch != epoch or not self.is_to_lead or self._stopping:
            return
        raise Misconfigured(
            self.view.why_passed_over
            or f"{self.actor.name} partition {self.partition} has decided messages of a newer release, which this one "
            "cannot read: run that release or a later one"
        )

    async def _own_event(self, last: int) -> None:
        """Wait until ``_own_arrived`` is set: by the next event of an earlier leader.

        Raises:
            TimeoutError: this process had read up to ``last``, and none came within ``_OWN_DEADLINE``.
        """
        while True:
            reached = self._context.position()
            try:
                async with asyncio.timeout(_OWN_DEADLINE):
                    await self._own_arrived.wait()
                return
            except TimeoutError:
                if reached >= last:
                    raise

    async def check_own(self) -> None:
        """Recover if the log no longer holds the last event of this partition; to be called when the broker is back."""
        epoch, fenced = self.epoch, self.view.fenced
        if self.role is not Role.LEADING or self._fence_last is not None:
            return
        if await is_own_gone(self._context.log, self._fence_filter, fenced) and self.epoch == epoch:
            _logger.error("own_event_gone", actor=self.actor.name, partition=self.partition, seq=fenced)
            self.reset("own_event_gone")
