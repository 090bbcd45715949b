"""One partition of an actor in this process: recovering, standing by, or leading.

Passive and synchronous: messages are handed to it, decisions are put into its outbox. Only recovery
waits for anything, in a task of its own.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import structlog

from actors.runtime.budget import Budget
from actors.runtime.clock import Clock
from actors.runtime.committer import Committer, Group
from actors.runtime.damage import has_folded, is_own_gone, lost_fence
from actors.runtime.records import to_record
from actors.runtime.turns import SLICE_NS, Turns
from actors.runtime.wholeness import Wholeness
from events.codec import Unreadable, decode
from events.decision import Cause, Decided
from events.errors import LogError, Misconfigured
from events.log import Fence, Log, Snapshots
from events.losses import Losses
from events.routes import fence_filter, partition_filters
from events.snapshot import losses_known, pack, snapshot_key, stands_in, unpack
from events.view import Offered, Standing, View
from schemas.actor import Actor, Emission, Message, Scope, Timer
from schemas.attendance import Attendance
from schemas.catalogue import prefixes_of
from schemas.envelope import LATENCY
from schemas.event import Configured
from schemas.identity import content_hash
from schemas.subjects import NO_PARTITION

_RETRY_FIRST, _RETRY_MOST = 0.02, 1.0
_CALM_AFTER = 5.0
"""Seconds without a loss after which the next one is recovered from at once again."""

_OWN_DEADLINE = 5.0
_OUTBOX = 1_000
_logger = structlog.get_logger("neuraxis.shard")


class Role(StrEnum):
    """What a shard does with the messages of its partition."""

    RECOVERING = "recovering"
    STANDBY = "standby"
    LEADING = "leading"


class Counters(msgspec.Struct):
    """What happened in a process, over all its shards."""

    decided: int = 0
    emitted: int = 0
    failed: int = 0
    conflicts: int = 0
    recoveries: int = 0
    takeovers: int = 0
    snapshots: int = 0
    snapshots_used: int = 0
    over_budget: int = 0


class Surroundings(msgspec.Struct, frozen=True):
    """What a shard needs of the process it lives in.

    ``position`` returns the sequence up to which messages were handed out; ``reply`` sends a copy of an answer to
    an inbox; ``snapshot_every`` is in messages; ``losses`` is what the log is known to have lost, ``wholeness`` has
    recorded what it lacks. ``offload`` runs a function beside the loop, which goes on meanwhile.
    """

    log: Log
    snapshots: Snapshots
    committer: Committer
    clock: Clock
    tasks: asyncio.TaskGroup
    position: Callable[[], int]
    turns: Turns
    offload: Callable[[Callable[[], None]], Awaitable[None]]
    warming: asyncio.Lock
    reply: Callable[[str, Group], Awaitable[None]]
    source: str
    build: str
    snapshot_every: int
    counters: Counters
    losses: Losses
    wholeness: Wholeness


class Shard:
    """One partition of an actor in this process; a ``Writer`` to the committer.

    Attributes:
        role: What it does now.
        leads: What it is to do once recovered: lead, or stand by.
        view: Its fold.
        outbox: Decisions not yet acknowledged, oldest first.
        epoch: Changes whenever the state was thrown away.
        budget: Counts the decisions made here that took longer than the actor's settings allow.
        unsaved: Whether the latest snapshot could not be saved.
    """

    def __init__(self, actor: Actor[Any], partition: str, settings: msgspec.Struct, around: Surroundings) -> None:
        self.actor = actor
        self.partition = partition
        self.role = Role.RECOVERING
        self.leads = False
        self.outbox: deque[Group] = deque()
        self.epoch = 0
        self.view = View(actor, partition, around.log.partitions)
        self._settings: dict[str, Any] = msgspec.to_builtins(settings)
        self._settings_hash = content_hash(self._settings)
        self.budget = Budget(actor.name, partition, self._settings)
        self.unsaved = False
        self._around = around
        self._fence_filter = fence_filter(actor, partition)
        self._own_prefixes = frozenset(prefixes_of(actor.name))
        self._source = f"{around.source}/{actor.name}/{partition}"
        self._build = f"{around.build}+{self._settings_hash[:8]}"
        self._inbox: list[tuple[Offered, bool]] = []
        self._unheard: set[str] = set()
        self._refused: set[int] = set()
        self._own_arrived = asyncio.Event()
        self._recovery: asyncio.Task[None] | None = None
        self._timekeeper: asyncio.Task[None] | None = None
        self._state_changed = asyncio.Event()
        self._since_snapshot = 0
        self._renew_after = 0
        self._renewing = 0
        self._draining = False
        self._stopping = False
        self._stated: int | None = None
        self._fence_last: int | None = None
        self._losses = 0
        self._hold = 0.0
        self._lost_at = float("-inf")
        self._saving: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._read_back: tuple[int, int] | None = None
        self._read_at = 0.0
        self._proving: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Shard({self.actor.name}/{self.partition} {self.role})"

    @property
    def wanted(self) -> Role:
        """What it is to do once recovered."""
        return Role.LEADING if self.leads else Role.STANDBY

    @property
    def struggling(self) -> bool:
        """Whether it loses its state again and again, lately: it recovers, and does not get on."""
        calm = asyncio.get_running_loop().time() - self._lost_at > _CALM_AFTER
        return self._hold >= _RETRY_MOST and not calm

    # --- life in the process

    def start(self, lead: bool) -> None:
        """Recover, then lead or stand by."""
        self.leads = lead
        self._recover()

    def set_leading(self, lead: bool) -> None:
        """Take over, or step back; recovery under way ends in the new role."""
        if lead == self.leads:
            return
        self.leads = lead
        if self.role is Role.RECOVERING:
            return
        if lead:
            self._around.counters.takeovers += 1
            self._recovery = self._spawn(self._take_over())
        elif self.outbox:
            self._forget()
            self._recover()
        else:
            self._step_back()

    async def retire(self) -> None:
        """Decide no more, let the outbox drain, snapshot, and stop."""
        self._stopping = True
        self._stop_timekeeper()
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)
        while self.role is Role.LEADING and self.outbox:
            self._own_arrived.clear()
            await self._own_arrived.wait()
        if self._saving is not None:
            await asyncio.gather(self._saving, return_exceptions=True)
        if self.role is Role.LEADING and (self._since_snapshot or self._renew_after):
            await self._save(*self._packed())
        self._forget()

    # --- messages

    def take(self, offered: Offered, own: bool) -> None:
        """Take the partition's next message; ``own`` says whether this actor wrote it."""
        if self.role is Role.RECOVERING:
            self._inbox.append((offered, own))
        elif not own:
            self.view.offer(offered)
            if self.role is Role.LEADING:
                self.work()
        elif self.role is Role.STANDBY:
            self.view.record(offered)
            self._own_arrived.set()
        elif offered.stored.seq > self.view.own_last and not self._is_ours(offered):
            self.lost("foreign_event")

    def _is_ours(self, offered: Offered) -> bool:
        return not isinstance(offered, Unreadable) and offered.envelope.id in self._unheard

    @property
    def backlog(self) -> int:
        """How many messages wait to be decided."""
        return len(self.view.waiting)

    def turn(self) -> None:
        """Go on deciding, where this shard still leads."""
        if self.role is Role.LEADING:
            self.work()

    def work(self) -> None:
        """Decide what waits, as far as there is room and no snapshot is due, for a slice of time; then others come."""
        view, counters, clock = self.view, self._around.counters, self._around.clock
        turns = self._around.turns
        submitted = False
        begun = clock.elapsed_ns()
        while view.waiting and self._may_decide() and self not in turns:
            started = clock.elapsed_ns()
            sequence = view.waiting[0].stored.seq
            cools = self._cools(view.waiting[0])
            decided = view.decide_next(refused=sequence in self._refused)
            now = clock.elapsed_ns()
            counters.decided += 1
            exceeded = self.budget.exceeded(now - started, now, sequence)
            counters.over_budget += exceeded
            self._since_snapshot += 1
            if decided:
                submitted = True
                self._put(decided, (now - started) // 1000, self.budget.limit_us if exceeded else None)
            if self._since_snapshot >= self._around.snapshot_every:
                self._draining = True
            if cools:
                self._warming = self._spawn(self._warm_live())
            if now - begun >= SLICE_NS:
                turns.add(self)
        if submitted:
            self._submit()
        self._settle_down()

    def _may_decide(self) -> bool:
        return not (self._draining or self._stopping or self._warming is not None) and len(self.outbox) < _OUTBOX

    def _cools(self, offered: Offered) -> bool:
        """Whether the state after a message lacks what its next decision would have to build."""
        kinds = self.actor.cooled_by
        return bool(kinds) and not isinstance(offered, Unreadable) and isinstance(offered.message.event, kinds)

    def renew_snapshot(self, seq: int) -> None:
        """Have a snapshot taken as soon as everything up to ``seq`` is folded, so that no older one is kept."""
        self._renew_after = seq
        if self.role is Role.LEADING:
            self._settle_down()

    def _is_renewal_due(self) -> bool:
        waiting = self.view.waiting
        return bool(self._renew_after) and not (waiting and waiting[0].stored.seq <= self._renew_after)

    def _settle_down(self) -> None:
        """When nothing is under way: take a due snapshot; then let the timekeeper look at the state anew."""
        if self._is_renewal_due() and self._saving is None:
            self._renew_after, self._renewing = 0, self._renew_after
            self._draining = True
        if self._draining and not self.outbox:
            self._draining = False
            self._since_snapshot = 0
            if self._saving is None:
                self._saving = self._spawn(self._save_in_background(*self._packed()))
            if self.view.waiting:
                self.work()
                return
        self._state_changed.set()

    def _put(self, decided: tuple[Decided, ...], latency_us: int, exceeded_us: int | None = None) -> None:
        now = self._around.clock.now_ns()
        records = tuple(to_record(one, self._source, self._build, now, latency_us, exceeded_us) for one in decided)
        self.outbox.append(Group(decided, records))
        self._unheard.update(one.message.id for one in decided)
        self._around.counters.emitted += len(decided)
        if isinstance(decided[0].message.event, self.actor.failed):
            self._around.counters.failed += 1
            failure = decided[0].message.event
            _logger.error(
                "decision_failed",
                actor=self.actor.name,
                partition=self.partition,
                reason=failure.reason,
                error=failure.error,
                seq=failure.failed_seq,
                exchange=decided[0].message.exchange,
            )

    def attend(self, attendance: Attendance) -> bool:
        """Record what this shell measured of all stages, where that is news; return whether it could.

        While an append is under way it cannot: that may be the same news, and two of them would share their ids.
        """
        attends = self.actor.attends
        if attends is None or self.role is not Role.LEADING or self.outbox or self._draining or self._stopping:
            return False
        for number, event in enumerate(tuple(attends(self.view.state, attendance))):
            cause = f"{self.actor.name}/{self.partition}/{self.view.own_last}/attended/{number}"
            self._put(self.view.spontaneous(self._own_cause(cause), Emission(event)), 0)
            self._since_snapshot += 1
        if self.outbox:
            self._submit()
        return True

    def _submit(self) -> None:
        """Have the outbox appended, once the log is known to lack nothing behind what its first decision is about."""
        first_seq = self.outbox[0].decided[0].cause_seq if self.outbox else 0
        if self._read_back is not None and first_seq >= self._read_back[1]:
            self._read_back = None
        if self._read_back is None:
            self._around.committer.submit(self)
        elif self._proving is None and self.outbox:
            self._proving = self._spawn(self._prove(first_seq))

    async def _prove(self, since: int) -> None:
        if await self._is_whole(since):
            self._proving = self._read_back = None
            self._around.committer.submit(self)

    async def _is_whole(self, since: int) -> bool:
        """Whether the log lacks nothing unrecorded of what was read back, from a sequence on, and this still leads.

        Where a gap is recorded meanwhile, every partition begins anew, this one too.
        """
        epoch = self.epoch
        if self._read_back is None:
            return True
        try:
            await self._around.wholeness.settle(since, self._read_back[1], self._read_at)
        except LogError as error:
            if self.epoch == epoch:
                self.lost(error.code)
            return False
        return self.epoch == epoch

    # --- the committer's side

    def fence(self) -> Fence:
        """Return the fence that the next append must hold."""
        return Fence(self._fence_filter, self.view.fenced if self._fence_last is None else self._fence_last)

    def committed(self, groups: Sequence[Group], last_seq: int) -> None:
        """Take note that these groups are stored, the last record at ``last_seq``."""
        written = [one for group in groups for one in group.decided]
        self.view.acknowledge([one.topic for one in written], last_seq, written[-1].message.id)
        self._fence_last = None
        for group in groups:
            self.outbox.popleft()
            self._tell(group)
            for one in group.decided:
                self._unheard.discard(one.message.id)
                inbox = getattr(one.message.event, "reply_to", "")
                if inbox:
                    self._spawn(self._around.reply(inbox, group))
        self._own_arrived.set()
        if self.role is Role.LEADING:
            self.work()

    def _tell(self, group: Group) -> None:
        # Once stored: a decision that the fence turned away never happened, and whoever reads the log would believe it.
        if self.actor.tells is None:
            return
        for one, record in zip(group.decided, group.records, strict=True):
            for line in self.actor.tells(one.message.event, int(record.headers[LATENCY]) / 1000):
                _logger.info(line, exchange=one.message.exchange)

    def lost(self, reason: str, last: int | None = None) -> None:
        """Drop the state and recover: another writer was here, or the outcome is unknown; see ``Writer``."""
        self._stated = last
        self._around.counters.conflicts += 1
        _logger.info("fence_lost", actor=self.actor.name, partition=self.partition, reason=reason)
        now = asyncio.get_running_loop().time()
        if now - self._lost_at > _CALM_AFTER:
            self._hold = 0.0
        self._lost_at = now
        self._forget()
        self._recover()

    def refused(self, group: Group, why: str) -> None:
        """Take note that the broker will never store this group: a failure is recorded for its cause instead."""
        self._refused.add(group.decided[0].cause_seq)
        self.lost("append_refused")

    # --- recovery

    def _forget(self) -> None:
        self.epoch += 1
        self.role = Role.RECOVERING
        self.outbox.clear()
        self._unheard.clear()
        self._inbox.clear()
        self._draining = False
        self._warming = None
        self._read_back = None
        if self._proving is not None and self._proving is not asyncio.current_task():
            self._proving.cancel()
        self._proving = None
        self._fence_last = None
        self._stop_timekeeper()
        self._own_arrived.set()

    def _recover(self) -> None:
        if self._stopping:
            return
        if self._recovery is not None and self._recovery is not asyncio.current_task():
            self._recovery.cancel()
        self._recovery = self._spawn(self._run_recovery())

    async def _run_recovery(self) -> None:
        """Fold the recorded view up to what the process has handed out, then lead or stand by."""
        while True:
            if self._hold:
                await asyncio.sleep(self._hold)
            self._hold = min(_RETRY_MOST, 2 * self._hold) or _RETRY_FIRST
            try:
                await self._read_history()
                break
            except Misconfigured:
                raise
            except LogError as error:
                _logger.warning(
                    "recovery_waits",
                    actor=self.actor.name,
                    partition=self.partition,
                    error=error.code,
                    detail=str(error),
                )
        self._around.counters.recoveries += 1
        await self._take_over()

    async def _take_over(self) -> None:
        """Build what the first decision would have to build, then lead where that is wanted."""
        await self._warm_up()
        if self.leads:
            await self._promote()

    async def _warm_up(self) -> None:
        """Have the state warmed beside the loop; what comes meanwhile waits, so that nobody changes it."""
        if self.actor.warm is None or self.role is not Role.STANDBY:
            return
        epoch, self.role = self.epoch, Role.RECOVERING
        await self._warm(self.view.state, self._configured_state())
        if self.epoch != epoch or self._stopping:
            return
        self._step_back()
        inbox, self._inbox = self._inbox, []
        for offered, own in inbox:
            self.take(offered, own)

    async def _warm_live(self) -> None:
        """The same for a state that a message has changed while this shard leads: it decides no more until then."""
        epoch = self.epoch
        await self._warm(self.view.state)
        if self.epoch == epoch:
            self._warming = None
            if self.role is Role.LEADING:
                self.work()

    async def _warm(self, *states: Any) -> None:
        warm = self.actor.warm
        assert warm is not None, "what cools is warmed"
        try:
            # One at a time: of partitions that rest on the same thing the first builds it for all.
            async with self._around.warming:
                await self._around.offload(lambda: [warm(state) for state in states].clear())
        except Exception as wrong:
            # It changes no decision: the first one builds what is missing, and is late.
            _logger.warning(
                "warming_failed", actor=self.actor.name, partition=self.partition, error=type(wrong).__name__
            )

    def _configured_state(self) -> Any:
        """Return the state as it will be once this shard has recorded its settings."""
        configured = self._configured()
        return self.actor.evolve(self.view.state, Message(configured, self.view.place, "", self.view.time_ns))

    async def _read_history(self) -> None:
        around = self._around
        self._inbox.clear()
        upto = around.position()  # what comes later is handed to the inbox
        standing = await self._load_snapshot()
        view = View(self.actor, self.partition, around.log.partitions, standing)
        filters = partition_filters(self.actor, self.partition)
        async for batch in around.log.history(filters, view.place, upto):
            for stored in batch:
                if self._owns(stored.subject):
                    view.record(decode(stored))
                else:
                    view.offer(decode(stored))
        self.view = view
        self._read_back = standing.place if standing is not None else 0, upto
        self._since_snapshot = 0
        self._step_back()
        for offered, own in self._inbox:
            self.take(offered, own)
        self._inbox.clear()

    async def _load_snapshot(self) -> Standing | None:
        around = self._around
        data = await around.snapshots.load(snapshot_key(self.actor, self.partition))
        self._losses = around.losses.last_seq
        standing = unpack(self.actor, self.partition, data) if data is not None else None
        if data is None or standing is None:
            return None
        reached = max(standing.place, standing.own_last)
        since = losses_known(data)
        if not around.losses.spare(reached, since) or not await stands_in(around.log, standing):
            # The log lost messages (a cut file, an unsynced power cut): what the snapshot folded is no fact any more.
            _logger.error("snapshot_ahead_of_log", actor=self.actor.name, partition=self.partition, place=reached)
            return None
        around.counters.snapshots_used += 1
        return standing

    def _owns(self, subject: str) -> bool:
        return subject.split(".", 3)[3].split(".", 1)[0] in self._own_prefixes

    def _step_back(self) -> None:
        self.role = Role.STANDBY
        self._stop_timekeeper()

    async def _promote(self) -> None:
        """Lead, once every event that this partition's owners have written is folded."""
        epoch = self.epoch
        try:
            last = await self._around.log.last(self._fence_filter)
            async with asyncio.timeout(_OWN_DEADLINE):
                while self.epoch == epoch and not await has_folded(self._around.log, self.view, last):
                    self._own_arrived.clear()
                    await self._own_arrived.wait()
            stated, self._stated = self._stated, None
            fence_last = await lost_fence(self._around.log, self.view, stated)
        except (LogError, TimeoutError) as error:
            if self.epoch == epoch and self.leads and not self._stopping:
                _logger.info("promotion_waits", actor=self.actor.name, partition=self.partition, error=str(error))
                self._forget()
                self._recover()
            return
        if self.epoch != epoch or not self.leads or self._stopping or self.role is not Role.STANDBY:
            return
        self.role = Role.LEADING
        if self._read_back is not None or self.view.waiting:
            after = self.view.place if self._read_back is None else self._read_back[0]
            self._read_back = after, self._around.position()
            self._read_at = asyncio.get_running_loop().time()
        if fence_last is not None:
            _logger.error("own_event_lost", actor=self.actor.name, partition=self.partition, seq=self.view.fenced)
            self._fence_last = fence_last
        self._complete_decision()
        self._record_settings()
        if self.actor.timer is not None:
            self._timekeeper = self._spawn(self._keep_time(self.actor.timer))
        self.work()

    def _complete_decision(self) -> None:
        if not self.view.open_decision:
            return
        _logger.error("half_a_decision", actor=self.actor.name, partition=self.partition, seq=self.view.open_decision)
        missing = self.view.complete_decision()
        if missing:
            self._put(missing, 0)
            self._submit()

    async def check_own(self) -> None:
        """Recover if the log no longer holds what this partition wrote last: to be asked when the broker is back."""
        epoch, fenced = self.epoch, self.view.fenced
        if self.role is not Role.LEADING or self._fence_last is not None:
            return
        if await is_own_gone(self._around.log, self._fence_filter, fenced) and self.epoch == epoch:
            _logger.error("own_event_gone", actor=self.actor.name, partition=self.partition, seq=fenced)
            self.lost("own_event_gone")

    def _record_settings(self) -> None:
        known = self.view.configured
        if known is not None and (known.settings_hash, known.behaviour) == (self._settings_hash, self.actor.behaviour):
            return
        event = self._configured()
        cause = f"{self.actor.name}/{self.partition}/{self.view.own_last}/{self._settings_hash}/{self.actor.behaviour}"
        self._put(self.view.spontaneous(self._own_cause(cause), Emission(event)), 0)
        self._submit()

    def _configured(self) -> Configured:
        return self.actor.configured(
            settings=self._settings, settings_hash=self._settings_hash, behaviour=self.actor.behaviour
        )

    def _own_cause(self, identity: str) -> Cause:
        tokens = {Scope.SESSION: (NO_PARTITION, self.partition), Scope.AGENT: (self.partition, NO_PARTITION)}
        agent_token, session_token = tokens.get(self.actor.scope, (NO_PARTITION, NO_PARTITION))
        return Cause(identity, self.view.place, self.view.time_ns, "", "", "", agent_token, session_token)

    # --- timers

    async def _keep_time(self, timer_of: Callable[[Any], Timer | None]) -> None:
        """Append what time makes due, while this shard leads."""
        while True:
            self._state_changed.clear()
            timer = timer_of(self.view.state)
            now = self._around.clock.now_ns()
            # What waits to be decided may settle the matter, and an unacknowledged backlog comes first.
            if timer is not None and timer.due_ns <= now and not self.view.waiting and not self._draining:
                if self._read_back is not None:
                    # What it fired may be what the log lacks, wherever that was.
                    if not await self._is_whole(self._read_back[0]):
                        return
                    self._read_back = None
                    continue
                self._fire(timer_of, now)
                timer = None
            wait = None if timer is None else max(0.001, (timer.due_ns - now) / 1e9)
            try:
                async with asyncio.timeout(wait):
                    await self._state_changed.wait()
            except TimeoutError:
                continue

    def _fire(self, timer_of: Callable[[Any], Timer | None], now_ns: int) -> None:
        while len(self.outbox) < _OUTBOX:
            timer = timer_of(self.view.state)
            if timer is None or timer.due_ns > now_ns:
                break
            self._put(self.view.spontaneous(self._own_cause(timer.cause), timer.emission), 0)
            self._since_snapshot += 1
        self._submit()
        self._state_changed.set()

    def _stop_timekeeper(self) -> None:
        if self._timekeeper is not None:
            self._timekeeper.cancel()
            self._timekeeper = None

    # --- snapshots

    def _packed(self) -> tuple[bytes, int]:
        """Return a snapshot of the state, and the sequence up to which everything is in it."""
        standing = self.view.standing()
        return pack(self.actor, self.partition, standing, self._losses), max(standing.place, self._renewing)

    async def _save_in_background(self, packed: bytes, upto: int) -> None:
        try:
            await self._save(packed, upto)
        finally:
            self._saving = None
            if self._renew_after and self.role is Role.LEADING:
                self._settle_down()

    async def _save(self, packed: bytes, upto: int) -> None:
        try:
            await self._around.snapshots.save(snapshot_key(self.actor, self.partition), packed, upto)
            self._around.counters.snapshots += 1
            self.unsaved = False
        except LogError as error:
            self.unsaved = True
            _logger.warning("snapshot_not_saved", actor=self.actor.name, partition=self.partition, error=error.code)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._around.tasks.create_task(work)
        return task
