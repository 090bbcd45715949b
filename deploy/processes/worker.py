"""A worker process from its start to its end: it opens the log and runs actors, effectors or the ledger."""

import asyncio
import os
import re
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from actors.ledger import LedgerProjector, LedgerSettings
from actors.monitor.settings import MonitorSettings
from actors.reflex.settings import ReflexSettings
from actors.registry import ACTORS
from actors.runtime.clock import SystemClock
from actors.runtime.committer import BATCH_FROM, BATCH_FROM_UNFLUSHED, Group
from actors.runtime.effectors.effector_worker import EffectorWorker
from actors.runtime.effectors.spec import EffectorContext
from actors.runtime.membership.heartbeat import MetricsAddress, report
from actors.runtime.membership.stall_detector import STALL_S
from actors.runtime.worker import Worker
from deploy.config.configured_log import configured_log
from deploy.config.loading import Config
from deploy.health.loss_from_snapshots import record_loss_from_snapshots
from deploy.health.resource_watch import ResourceWatch, left_on_machine
from deploy.processes import garbage
from deploy.processes.broker.storage_watch import store_limit
from deploy.processes.effector_registry import EFFECTORS, configured_effectors
from deploy.processes.inbox import is_inbox
from deploy.processes.query_services import serving_queries
from deploy.processes.reading import serving_reads
from deploy.processes.running_set import DataFolder, NotReachableYet, NotRunning
from deploy.processes.supervising.lifeline import Lifeline
from deploy.processes.supervising.pulse import STARTING, Pulse
from deploy.processes.supervising.stopping import first_error, run_process, stop_signal
from deploy.telemetry.collector import Collector
from deploy.telemetry.metrics_server import serving_metrics
from deploy.telemetry.process_metrics import ProcessMetrics, TraceCounts
from deploy.telemetry.telemetry_settings import metrics_address
from deploy.telemetry.tracing import Tracing
from events.errors import LogCut, LogError
from events.jetstream import Access, Connection, JetStreamLog, KeyValueMembership, KeyValueSnapshots
from events.jetstream.reading.read_requests import await_read_service, gap_finder, use_rights
from events.jetstream.rights import ask_rights
from events.loggers import get_logger
from schemas.input_path import WITNESSES
from schemas.intake.nearest_name import nearest_name
from schemas.permissions import stored_filters

LEDGER = "ledger"
"""The name of the ledger's projector among what a worker can run. It is not an actor: it decides nothing."""

_CONNECT_TIMEOUT_S = 30.0
_READ_SERVICE_TIMEOUT_S = 60.0
_logger = get_logger("neuraxis.worker")


class UnknownWork(ValueError):
    """No actor or effector has this name; the message suggests the nearest one."""

    code = "unknown_work"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process runs with.

    ``hosted`` names what it runs: actors, effectors, or ``ledger``, which writes ``ledger_file``. ``name`` is the name
    of the process in its log. ``store`` is the folder of the streams of the set's own broker; None with another broker.
    """

    name: str
    hosted: tuple[str, ...]
    access: Access
    config: Config
    ledger_file: Path
    store: Path | None = None


GROUP_OF_EFFECTORS = "effectors"
GROUPS = {"all": tuple(ACTORS), GROUP_OF_EFFECTORS: tuple(EFFECTORS)}
"""Names that stand for several: all actors, and all effectors."""


def known_work() -> tuple[str, ...]:
    """Return what a worker can be asked to run."""
    return (*ACTORS, *EFFECTORS, LEDGER)


def check_work(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names with groups replaced by their members, each once; raises UnknownWork for an unknown name."""
    known = known_work()
    for name in names:
        if name in GROUPS:
            continue
        if name == "gateway":
            raise UnknownWork("the gateway is no actor and has a command of its own: run `neuraxis gateway`")
        if name not in known:
            near = nearest_name(name, (*known, *GROUPS))
            hint = f"did you mean {near!r}? There" if near else "there"
            raise UnknownWork(
                f"there is no actor {name!r}: {hint} are {', '.join(known)}; all stands for every actor that decides, "
                f"effectors for {', '.join(EFFECTORS)}"
            )
    return tuple(dict.fromkeys(each for name in names for each in GROUPS.get(name, (name,))))


def work_with_settings(names: Sequence[str], config: Config) -> tuple[str, ...]:
    """Return the names as :func:`check_work` does, but of the group of effectors only the configured ones.

    Raises:
        UnknownWork: a name is unknown, or the group was named and no effector is configured.
    """
    idle = set(EFFECTORS) - set(configured_effectors(config)) - set(names) if GROUP_OF_EFFECTORS in names else set()
    hosted = tuple(name for name in check_work(names) if name not in idle)
    if not hosted:
        raise UnknownWork(
            "no effector has anything to do: set llm.base_url for a language model, or write a table "
            "[webhook.receivers.NAME] for alerts"
        )
    return hosted


def run(job: Job, lifeline: Lifeline) -> None:
    """Run until SIGTERM, SIGINT, or the end of the supervisor; raises the first error of any of its tasks."""
    run_process(_run(job, lifeline), job.config.runtime.event_loop, lifeline)


async def _run(job: Job, lifeline: Lifeline) -> None:
    pulse = Pulse(job.config.runtime.health_file, supervised=lifeline.supervised)
    async with pulse.beating():
        while True:
            pulse.fault = lambda: STARTING
            try:
                await _run_on_one_log(job, lifeline, pulse)
            except BaseExceptionGroup as group:
                cut, others = group.split(LogCut)
                if others is not None or cut is None:
                    raise
                # The log has lost its end, and the states here may include lost messages: begin again, as after a
                # restart.
                _logger.error("log_cut_begins_anew", hosts=job.hosted, detail=str(first_error(cut)))
            else:
                return


async def _run_on_one_log(job: Job, lifeline: Lifeline, pulse: Pulse) -> None:
    async with await Connection.open(job.access, _CONNECT_TIMEOUT_S, announce=True) as connection:
        # A login that may not read the whole log reads it through other processes, see ``deploy.processes.reading``.
        await use_rights(connection, job.config.log.stream)
        await await_read_service(connection, job.config.log.stream, _READ_SERVICE_TIMEOUT_S)
        metrics = ProcessMetrics()
        async with (
            # Only from here on: before there are partitions to hand over, a signal may end the process at once.
            stop_signal(lifeline) as stop,
            serving_metrics(metrics_address(job.config), metrics.registry(), job.name) as metrics_at,
        ):
            await _host(job, connection, lifeline, stop, pulse, metrics, metrics_at)


async def _host(
    job: Job,
    connection: Connection,
    lifeline: Lifeline,
    stop: asyncio.Event,
    pulse: Pulse,
    metrics: ProcessMetrics,
    metrics_at: MetricsAddress | None,
) -> None:
    settings = job.config.log
    log = await configured_log(connection, settings)
    member, ready = _member_name(job.hosted), []
    # Called once everything is open: a coroutine that is never awaited would be complained of at the process's end.
    runs: list[Callable[[asyncio.Event], Coroutine[Any, Any, None]]] = []
    worker: Worker | None = None
    projector: LedgerProjector | None = None
    working: dict[str, Callable[[], bool]] = {}  # name -> whether it does its work, for what is not an actor
    if LEDGER in job.hosted:
        # Sealed words stay sealed in the ledger, which holds what the stream holds, and which people copy.
        projector = _projector(job, log.as_stored(), member)
        runs.append(projector.run)
        ready.append(projector.following)
        working[LEDGER] = partial(_is_well, projector)
    if any(name in ACTORS for name in job.hosted):
        worker = metrics.worker = await _actors(job, connection, log, member, metrics_at)
        runs.append(worker.run)
        ready.append(worker.ready)
    ledger = job.ledger_file if LEDGER in job.hosted else None
    healthy = job.config.section("monitor", MonitorSettings).ranges
    async with (
        _effectors(job, log, member) as effectors,
        serving_queries(connection, ledger, worker, log.sealing, projector, healthy),
        serving_reads(log, LEDGER) if LEDGER in job.hosted else nullcontext(),
        asyncio.TaskGroup() as background_tasks,
    ):
        if LEDGER in job.hosted:
            # Workers that may not read the whole log are served meanwhile. The projector is not at work yet: what it
            # appends takes sequences that were lost.
            await _look_for_loss(job, member)
        metrics.effectors = effectors
        runs += [effector.run for effector in effectors]
        ready += [effector.ready for effector in effectors]
        working |= {effector.effector.name: effector.is_working for effector in effectors}
        reported, announced = asyncio.Event(), asyncio.Event()
        ready += [reported] if working else []
        pulse.fault = partial(_fault, announced, stop, connection, worker, working)
        background = [
            background_tasks.create_task(_announce_readiness(ready, job.hosted, lifeline, announced), name="readiness"),
            background_tasks.create_task(
                _check_after_reconnects(connection, log.stream, worker), name="checks after reconnects"
            ),
            background_tasks.create_task(_trace(job, log, metrics.traces), name="traces"),
            background_tasks.create_task(_watch_resources(job, log, member), name="resources"),
        ]
        if working:
            membership = await KeyValueMembership.over(connection, settings.replicas)
            background.append(
                background_tasks.create_task(
                    report(membership, f"{member}-serves", working, reported, metrics_at), name="report"
                )
            )
        async with asyncio.TaskGroup() as tasks:
            for run_until in runs:
                tasks.create_task(run_until(stop))
        for task in background:
            task.cancel()


async def _look_for_loss(job: Job, member: str) -> None:
    """Record a loss of the log's end that only snapshots show; the ledger is written also where that cannot be told."""
    if job.store is not None:
        return  # `up` looks after each start of its own broker, before that counts as ready
    try:
        await record_loss_from_snapshots(job.access, job.config, job.ledger_file, f"neuraxis/{member}/ledger")
    except LogError as wrong:
        _logger.warning("loss_not_looked_for", code=wrong.code, error=str(wrong))


async def _trace(job: Job, log: JetStreamLog, counts: TraceCounts) -> None:
    """Send traces, if this process writes the ledger: only one process does, so each span is sent once."""
    settings = job.config.telemetry
    if LEDGER not in job.hosted or not settings.traces:
        return
    try:
        async with Collector(settings.traces, settings.traces_timeout_s, os.environ) as collector:
            await Tracing(log.as_stored(), collector, job.ledger_file.with_suffix(".traces"), counts).run()
    except Exception:  # a bug in telemetry must not take the ledger down
        _logger.exception("traces_ended")


async def _watch_resources(job: Job, log: JetStreamLog, member: str) -> None:
    """Record what is nearly used up, if this process writes the ledger."""
    if LEDGER not in job.hosted:
        return
    folder = DataFolder(job.ledger_file.parent)

    def processes() -> Mapping[str, int] | None:
        try:
            return {each.name: each.pid for each in folder.read().processes if each.pid not in (0, os.getpid())}
        except NotReachableYet:
            return None
        except (NotRunning, msgspec.DecodeError):  # no set of `up`: this process alone is known here
            return {}

    watch = ResourceWatch(
        log,
        partial(left_on_machine, folder.path, processes),
        source=f"neuraxis/{member}/ledger",
        build=version("neuraxis"),
        server_most=partial(store_limit, job.store),
    )
    await watch.run()


async def _check_after_reconnects(connection: Connection, stream: str, worker: Worker | None) -> None:
    """After each reconnect to the broker, check that the log still holds what the partitions wrote."""
    reconnected = asyncio.Event()
    unsubscribe = connection.on_reconnect(reconnected.set)
    try:
        while True:
            await reconnected.wait()
            reconnected.clear()
            await use_rights(connection, stream)  # they may have been changed meanwhile
            if worker is not None and not connection.closed:
                await worker.check_own()
    finally:
        unsubscribe()


async def _actors(
    job: Job, connection: Connection, log: JetStreamLog, member: str, metrics_at: MetricsAddress | None
) -> Worker:
    settings, replicas = job.config.runtime, job.config.log.replicas
    return Worker(
        log,
        await KeyValueSnapshots.over(connection, replicas),
        await KeyValueMembership.over(connection, replicas),
        [ACTORS[name] for name in job.hosted if name in ACTORS],
        name=member,
        settings=job.config.sections,
        standby=settings.standby,
        reply=reply_sender(connection),
        build=version("neuraxis"),
        snapshot_every=settings.snapshot_every,
        # Fewer waiting events make a batch worth while where each append is flushed.
        batch_from=BATCH_FROM if job.config.broker.sync == "always" else BATCH_FROM_UNFLUSHED,
        stands_in=[ACTORS[name] for name in await stand_ins_of(connection, job.hosted)],
        metrics=metrics_at,
        find_gaps=gap_finder(connection, log.stream),
    )


async def stand_ins_of(connection: Connection, hosted: Sequence[str]) -> tuple[str, ...]:
    """Return the witnesses that this worker runs while no other does: those whose events its login may append.

    Witnesses are the actors that notice when others fall silent.
    """
    others = [name for name in WITNESSES if name not in hosted]
    rights = await ask_rights(connection) if others else None
    if rights is None:
        return tuple(others)
    may_publish = rights.permissions.publish
    return tuple(name for name in others if all(map(may_publish.include, stored_filters(name))))


@asynccontextmanager
async def _effectors(job: Job, log: JetStreamLog, member: str) -> AsyncIterator[list[EffectorWorker]]:
    """Open the effectors of a job; they are closed at the end of the block."""
    clock = SystemClock()
    faults = job.config.section("reflex", ReflexSettings).faults  # faults in an answer for which reflex withholds it
    context = EffectorContext(log.connection, piece_sender(log.connection), os.environ, clock, faults)
    async with AsyncExitStack() as stack:
        workers = []
        for name in job.hosted:
            if (spec := EFFECTORS.get(name)) is not None:
                settings = job.config.section(name, spec.settings_type)
                effector = await stack.enter_async_context(spec.open(settings, context))
                workers.append(EffectorWorker(log, effector, name=member, clock=clock, build=version("neuraxis")))
        yield workers


def _is_well(projector: LedgerProjector) -> bool:
    """Whether a projector follows the log and can write the ledger."""
    follows = projector.following.is_set() and projector.cut_off_s < STALL_S
    return follows and not projector.progress.trouble


def _projector(job: Job, log: JetStreamLog, member: str) -> LedgerProjector:
    return LedgerProjector(
        log,
        job.ledger_file,
        stream=job.config.log.stream,
        settings=job.config.section(LEDGER, LedgerSettings),
        source=f"neuraxis/{member}/ledger",
        build=version("neuraxis"),
    )


def _fault(
    announced: asyncio.Event,
    stop: asyncio.Event,
    connection: Connection,
    worker: Worker | None,
    working: Mapping[str, Callable[[], bool]],
) -> str:
    """Return why this process does not do all of its work at present; empty if it does."""
    if stop.is_set():
        return "stopping"
    if not announced.is_set():
        return STARTING
    if not connection.connected:
        return "the broker cannot be reached"
    # A worker that has left its actors to others leads nothing that could stall.
    faults = ["the log cannot be read"] if worker is not None and worker.cut_off_s >= STALL_S else []
    stalled = {} if worker is None else worker.stalled
    faults += [f"{actor} does not advance in {', '.join(partitions)}" for actor, partitions in stalled.items()]
    faults += [f"{stage} does not work" for stage, is_working in working.items() if not is_working()]
    return "; ".join(faults)


async def _announce_readiness(
    ready: Sequence[asyncio.Event], hosted: tuple[str, ...], lifeline: Lifeline, announced: asyncio.Event
) -> None:
    for event in ready:
        await event.wait()
    garbage.freeze_loaded()
    _logger.info("worker_ready", hosts=hosted)
    announced.set()
    lifeline.report_ready()


def reply_sender(connection: Connection) -> Callable[[str, Group], Awaitable[None]]:
    """Return a function that sends a copy of an exchange's end to the inbox that the input named.

    It takes the inbox, and the events of one decision, which were appended together and of which one is the end. Best
    effort: a caller that misses its copy reads the log.
    """

    async def reply(inbox: str, group: Group) -> None:
        if not is_inbox(inbox):
            _logger.warning("reply_refused", inbox=inbox[:80], reason="not an inbox")
            return
        for decided, record in zip(group.decided, group.records, strict=True):
            if getattr(decided.message.event, "reply_to", "") == inbox:
                try:
                    await connection.publish(inbox, record.data, headers=dict(record.headers))
                except LogError as error:
                    _logger.info("reply_missed", exchange=decided.message.exchange, error=error.code)

    return reply


def piece_sender(connection: Connection) -> Callable[[str, bytes], Awaitable[None]]:
    """Return a function that sends a piece of a streamed answer to an inbox; best effort."""

    async def send(inbox: str, body: bytes) -> None:
        if not is_inbox(inbox):
            _logger.warning("piece_refused", inbox=inbox[:80], reason="not an inbox")
            return
        try:
            await connection.publish(inbox, body)
        except LogError as error:
            _logger.info("piece_missed", error=error.code)

    return send


def _member_name(hosted: Sequence[str]) -> str:
    """Return a name that no other worker has, and that can be a token of a subject."""
    machine = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    work = hosted[0] if len(hosted) == 1 else "actors"
    return f"{machine}-{work}-{os.getpid()}-{secrets.token_hex(3)}"
