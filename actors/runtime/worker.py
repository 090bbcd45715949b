"""A worker: the actors that one process runs, from start to stop."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from actors.runtime.clock import Clock, SystemClock
from actors.runtime.committer import BATCH_FROM, Committer, Group
from actors.runtime.context import READS_AT_ONCE, STANDBY_BACKLOG, Context, Counters, Role
from actors.runtime.dispatcher import Dispatcher, Key
from actors.runtime.fair_scheduler import FairScheduler
from actors.runtime.gap_reader import SharedReader
from actors.runtime.measurements import Measurements
from actors.runtime.membership.assignment import assign_partitions
from actors.runtime.membership.availability import AvailabilityWatch, with_overrun
from actors.runtime.membership.heartbeat import BEAT, Heartbeat, MetricsAddress, beat, heartbeat_of, leave
from actors.runtime.membership.stall_detector import STALL_S, StallDetector, by_actor
from actors.runtime.partition.gap_check import GapCheck
from actors.runtime.partition.shard import Shard
from events.errors import LogError
from events.log import Log, Membership, Snapshots
from events.loggers import get_logger
from events.losses import FindGaps, Losses
from events.routes import partition_names
from events.warning_backoff import WarningBackoff
from schemas.actor import Actor
from schemas.availability import Overrun
from schemas.subjects import EVERYTHING

POLL_INTERVAL = 0.5
"""Seconds between checks of who is alive."""

STAND_BACK_S = 15.0
"""After this many seconds without being able to read the log, a worker leaves its partitions to workers that can.

It is much more than ``STALL_S``: where no worker can read, all have said so by then, and no partition moves.
"""

_STOP_DEADLINE = 10.0
"""Seconds that a partition gets to drain when this worker stops leading it."""

_logger = get_logger("neuraxis.worker")


async def _no_reply(inbox: str, group: Group) -> None:
    """Send no copies of answers."""


class Worker:
    """Runs actors' partitions against a log until told to stop.

    Attributes:
        hosted: The names of the actors that it hosts, without those that it stands in for.
        ready: Set once every partition has its role, and all messages that were in the log at the start are decided.
        stalled: Actor -> partitions led here that do not advance, as of the last heartbeat.
        shards: The partitions that it holds, by actor and name.
        committer: Appends what they decide; None before it runs.
        counters: What happened so far.
        measurements: What it measures, for metrics.

    Args:
        actors: The actors that it hosts.
        name: Unique among living workers.
        settings: Settings by actor name; actors not named use their defaults.
        standby: Whether to fold partitions that others lead as well, to take over without reading history.
        reply: Sends a copy of the stored events of one decision to the inbox that one of them names.
        build: Version of the code, for the ``ce-build`` header.
        snapshot_every: Messages of a partition between snapshots; more for a large state.
        standby_backlog: Most messages that a partition which stands by keeps waiting; see ``context.STANDBY_BACKLOG``.
        batch_from: Waiting events from which they are appended as a batch; see ``committer.BATCH_FROM``.
        offload: Runs a function in another thread.
        stands_in: Actors that it runs only while no living worker hosts them, so that they always run somewhere.
        metrics: Where the process serves its metrics.
        find_gaps: Finds gaps of the log for a login that may not read all of it; None: the login may read all.
    """

    def __init__(
        self,
        log: Log,
        snapshots: Snapshots,
        membership: Membership,
        actors: Sequence[Actor[Any]],
        *,
        name: str,
        settings: Mapping[str, msgspec.Struct] | None = None,
        clock: Clock | None = None,
        standby: bool = True,
        reply: Callable[[str, Group], Awaitable[None]] = _no_reply,
        build: str = "",
        snapshot_every: int = 1_000,
        standby_backlog: int = STANDBY_BACKLOG,
        batch_from: int = BATCH_FROM,
        offload: Callable[[Callable[[], None]], Awaitable[None]] = asyncio.to_thread,
        stands_in: Sequence[Actor[Any]] = (),
        metrics: MetricsAddress | None = None,
        find_gaps: FindGaps | None = None,
    ) -> None:
        self.name = name
        self.counters = Counters()
        self.ready = asyncio.Event()
        self.stalled: Mapping[str, tuple[str, ...]] = {}
        self.shards: dict[Key, Shard] = {}
        self.committer: Committer | None = None
        self._hosts: dict[str, list[str]] = {}  # actor -> the living members that run it
        self._assigned: dict[Key, bool] = {}  # partition to be held here -> whether it is to be led
        self._log = log
        self._snapshots = snapshots
        self._membership = membership
        self.hosted = tuple(actor.name for actor in actors)
        self._stands_in = tuple(actor.name for actor in stands_in)
        self._actors = {actor.name: actor for actor in (*actors, *stands_in)}
        self._settings = {
            name: (settings or {}).get(name) or actor.settings_type() for name, actor in self._actors.items()
        }
        self.measurements = Measurements(self._actors, {**(settings or {}), **self._settings})
        self._clock = clock or SystemClock()
        self._standby = standby
        self._reply = reply
        self._build = build
        self._snapshot_every = snapshot_every
        self._standby_backlog = standby_backlog
        self._batch_from = batch_from
        self._offload = offload
        self._metrics = metrics
        self._find_gaps = find_gaps
        self._stall_detector = StallDetector()
        self._dispatcher: Dispatcher | None = None
        self._start_seq = 0  # the log's last sequence when the worker started
        # The actors that record which stages are served.
        self._watchers = frozenset(name for name, actor in self._actors.items() if actor.on_availability is not None)
        self._declined: set[str] = set()  # for good: a newer release runs
        self._stood_back: set[str] = set()  # until the log can be read here again
        self._beat_misses, self._members_unknown = WarningBackoff(), WarningBackoff()
        self._watch = AvailabilityWatch(log.partitions) if self._watchers else None

    @property
    def cut_off_s(self) -> float:
        """For how many seconds the log could not be read, although the broker can be reached; 0: it can."""
        return 0.0 if self._dispatcher is None else self._dispatcher.cut_off_s

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set, then hand over: decide no more, drain, take snapshots, sign off.

        Raises:
            LogCut: the log no longer holds what was read from it; a new worker may begin on what is left.
            Misconfigured: something that only an operator can correct.
        """
        async with asyncio.TaskGroup() as tasks:
            info = await self._log.info()
            self._start_seq = info.last_seq
            scheduler, losses = FairScheduler(self._clock), await Losses.of(self._log, info.last_seq)
            actors = tuple(self._actors.values())
            dispatcher = self._dispatcher = Dispatcher(
                self._log, actors, self.shards, info.last_seq, losses, scheduler=scheduler, clock=self._clock
            )
            self.committer = Committer(self._log, tasks, self._batch_from)
            context = Context(
                log=self._log,
                snapshots=self._snapshots,
                committer=self.committer,
                clock=self._clock,
                tasks=tasks,
                position=lambda: dispatcher.position,
                scheduler=scheduler,
                offload=self._offload,
                warming=asyncio.Lock(),
                reply=self._reply,
                source=f"neuraxis/{self.name}",
                build=self._build,
                snapshot_every=self._snapshot_every,
                standby_backlog=self._standby_backlog,
                counters=self.counters,
                measurements=self.measurements,
                losses=losses,
                gap_check=GapCheck(
                    self._log,
                    losses,
                    source=f"neuraxis/{self.name}",
                    build=self._build,
                    now_ns=self._clock.now_ns,
                    find_gaps=self._find_gaps,
                ),
                shared_reader=SharedReader(
                    self._log, actors, tasks, dispatcher.filters if self._find_gaps else (EVERYTHING,)
                ),
                reading=asyncio.Semaphore(READS_AT_ONCE),
                recovery_warnings=WarningBackoff(),
            )
            started = asyncio.Event()
            reading = tasks.create_task(dispatcher.run(self.committer, started.set))
            await started.wait()
            committing = tasks.create_task(self.committer.run())
            scheduling = tasks.create_task(scheduler.run())
            beating = tasks.create_task(self._beat())
            await self._follow_members(stop, tasks, context)
            beating.cancel()
            await self._hand_over()
            for task in (reading, committing, scheduling):
                task.cancel()
            self.committer.close()

    async def check_own(self) -> None:
        """Have every partition check that the log still holds its events; to be called when the broker is back."""
        for shard in tuple(self.shards.values()):
            await shard.check_own()

    async def _beat(self) -> None:
        while True:
            await self._send_heartbeat()
            await asyncio.sleep(BEAT)

    async def _send_heartbeat(self) -> None:
        await beat(self._membership, self.name, self.heartbeat(), self._beat_misses)

    def heartbeat(self) -> Heartbeat:
        """Return this worker's present heartbeat."""
        names = sorted(self.hosted)
        declining = {name for (name, _), shard in self.shards.items() if shard.declines and name in self.hosted}
        if declining - self._declined:
            _logger.warning("newer_release_runs", actors=sorted(declining - self._declined))
        self._declined |= declining
        behind = {name for (name, _), shard in self.shards.items() if shard.is_behind(self._start_seq)}
        leads = {key for key, shard in self.shards.items() if shard.role is Role.LEADING}
        stalled = self._stall_detector.stalled(self.shards, asyncio.get_running_loop().time())
        if self.cut_off_s >= STALL_S:
            stalled |= leads  # what waits for them is not even known here
        self.stalled = by_actor(stalled)
        overruns: dict[str, Overrun] = {}
        waiting: dict[str, int] = {}
        for (name, partition), shard in self.shards.items():
            if (name, partition) in leads and shard.view.waiting:
                waiting[name] = waiting.get(name, 0) + len(shard.view.waiting)
            if (overrun := shard.budget.overrun()) is not None:
                overruns[name] = with_overrun(overruns.get(name), overrun, overrun.count)
        return Heartbeat(
            tuple(names),
            tuple(sorted(behind) if self.shards else names),
            serves=by_actor(leads - stalled),
            stalled=self.stalled,
            overruns=overruns,
            unsaved=by_actor(key for key, shard in self.shards.items() if shard.unsaved),
            stands_in=self._stands_in,
            waiting=waiting,
            metrics=self._metrics,
            declines=tuple(sorted(self._declined | self._stood_back)),
            cut_off=self.cut_off_s > 0.0,
        )

    async def _follow_members(self, stop: asyncio.Event, tasks: asyncio.TaskGroup, context: Context) -> None:
        """Lead and stand by as the list of members demands, until told to stop."""
        while not stop.is_set():
            try:
                members = await self._membership.members()
                self._members_unknown.ended()
                self._stand_back(members)
                if self.name in members:
                    self._apply_assignments(members, tasks, context)
                self._watch_stages(members)
            except LogError as error:
                self._watch_stages({})
                # Without the list the present roles stay. If two workers lead, the fence lets only one append: the list
                # is not needed for safety.
                if self._members_unknown.is_due():
                    _logger.info("members_unknown", error=error.code)
            caught_up = self.shards and all(
                shard.role is shard.wanted_role and not shard.is_behind(self._start_seq)
                for shard in self.shards.values()
            )
            if caught_up and not self.ready.is_set():
                # The heartbeat goes first: whoever learns that this worker is ready must find it among the members.
                await self._send_heartbeat()
                self.ready.set()
            try:
                async with asyncio.timeout(POLL_INTERVAL if self.ready.is_set() else POLL_INTERVAL / 10):
                    await stop.wait()
            except TimeoutError:
                continue

    def _stand_back(self, members: Mapping[str, bytes]) -> None:
        """Decline actors whose messages cannot be read here, while another worker can run them."""
        if not self.cut_off_s:
            if self._stood_back:
                _logger.info("takes_part_again", actors=sorted(self._stood_back))
            self._stood_back.clear()
        elif self.cut_off_s >= STAND_BACK_S:
            others = [heartbeat_of(value) for member, value in members.items() if member != self.name]
            able = {name for each in others if each for name in each.able()}
            if new := able.intersection(self.hosted) - self._stood_back:
                _logger.warning("stands_back", actors=sorted(new), detail="it cannot read the log, and others can")
            self._stood_back |= new

    def _apply_assignments(self, members: Mapping[str, bytes], tasks: asyncio.TaskGroup, context: Context) -> None:
        hosts = self._hosts_among(members)
        if hosts != self._hosts:  # this runs twice a second, and members hardly ever change
            self._hosts, self._assigned = hosts, self._assignments_among(hosts)
        wanted = self._assigned
        for key in [key for key in self.shards if key not in wanted]:
            tasks.create_task(self._retire(self.shards.pop(key)))
        for (actor_name, partition), lead in wanted.items():
            shard = self.shards.get((actor_name, partition))
            if shard is not None:
                shard.set_leading(lead)
                continue
            shard = Shard(self._actors[actor_name], partition, self._settings[actor_name], context)
            self.shards[actor_name, partition] = shard
            shard.start(lead)

    def _watch_stages(self, members: Mapping[str, bytes]) -> None:
        """Check which stages are served, and have the actor that watches the others record any change.

        A list without this worker itself is not usable: it does not mean that no worker runs.
        """
        if self._watch is None:
            return
        now = asyncio.get_running_loop().time()
        if self.name not in members:
            self._watch.note_blind()
            return
        self._watch.check(members, now)
        availability = self._watch.availability(now)
        if availability is None:
            return
        watchers = [shard for (name, _), shard in self.shards.items() if name in self._watchers]
        leading = [shard for shard in watchers if shard.role is Role.LEADING]
        recorded = [shard.record_availability(availability) for shard in leading]
        # Where another worker leads that actor, it records; what was counted here must not be reported twice.
        if not leading or any(recorded):
            self._watch.note_recorded(availability, now)

    def _hosts_among(self, members: Mapping[str, bytes]) -> dict[str, list[str]]:
        """Return who runs each actor of this worker: living members that host it, else those that stand in for it."""
        hosts: dict[str, list[str]] = {name: [] for name in self._actors}
        unable: dict[str, list[str]] = {name: [] for name in self._actors}
        deputies: dict[str, list[str]] = {name: [] for name in self._actors}
        for member, value in sorted(members.items()):
            if (heartbeat := heartbeat_of(value)) is None:
                continue
            able = tuple(name for name in heartbeat.actors if name not in heartbeat.declines)
            for names, found in ((able, hosts), (heartbeat.declines, unable), (heartbeat.stands_in, deputies)):
                for name in names:
                    if name in found:
                        found[name].append(member)
        return {name: hosts[name] or unable[name] or deputies[name] for name in hosts}

    def _assignments_among(self, hosts: Mapping[str, Sequence[str]]) -> dict[Key, bool]:
        """Return the partitions to be held here, given the hosts of each actor, and whether each is to be led."""
        wanted: dict[Key, bool] = {}
        for actor_name, actor in self._actors.items():
            assignments = assign_partitions(actor, partition_names(actor, self._log.partitions), hosts[actor_name])
            for partition, assignment in assignments.items():
                if assignment.leader == self.name or (self._standby and assignment.standby == self.name):
                    wanted[actor_name, partition] = assignment.leader == self.name
        return wanted

    async def _retire(self, shard: Shard) -> None:
        try:
            async with asyncio.timeout(_STOP_DEADLINE):
                await shard.drain()
        except TimeoutError:
            _logger.warning("retire_timed_out", shard=repr(shard))

    async def _hand_over(self) -> None:
        await asyncio.gather(*(self._retire(shard) for shard in self.shards.values()))
        await leave(self._membership, self.name)
