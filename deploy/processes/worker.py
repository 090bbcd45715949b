"""A worker process, from its arguments to its end: it opens the log and hosts actors, effectors and the ledger."""

import asyncio
import gc
import os
import re
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec

from actors.ledger import LedgerProjector, LedgerSettings
from actors.monitor.settings import MonitorSettings
from actors.reflex.settings import ReflexSettings
from actors.registry import ACTORS
from actors.runtime.clock import SystemClock
from actors.runtime.committer import BATCH_FROM, BATCH_FROM_UNFLUSHED, Group
from actors.runtime.effectors.shell import EffectorWorker
from actors.runtime.effectors.spec import EffectorContext
from actors.runtime.membership.heartbeat import MetricsAddress
from actors.runtime.membership.heartbeat_reporting import report
from actors.runtime.worker import Worker
from deploy.config.configured_log import configured_log
from deploy.config.loading import Config
from deploy.processes.effectors import EFFECTORS, configured_effectors
from deploy.processes.inbox import is_inbox
from deploy.processes.query_services import serving_queries
from deploy.processes.supervising.lifeline import Lifeline
from deploy.processes.supervising.pulse import STARTING, Pulse
from deploy.processes.supervising.stopping import first_error, stop_signal
from deploy.telemetry.collector import Collector
from deploy.telemetry.configured import metrics_address
from deploy.telemetry.metrics_server import serving_metrics
from deploy.telemetry.process_metrics import ProcessMetrics, TraceCounts
from deploy.telemetry.tracing import Tracing
from events.errors import LogCut, LogError
from events.jetstream import Access, Connection, JetStreamLog, KeyValueMembership, KeyValueSnapshots
from events.jetstream.rights import ask_rights
from events.loggers import get_logger
from schemas.intake.nearest_name import nearest_name
from schemas.permissions import stored_filters
from schemas.stages import WITNESSES

LEDGER = "ledger"
"""The name of the projector, which is no actor: it decides nothing."""

_CONNECT_DEADLINE = 30.0
_logger = get_logger("neuraxis.worker")


class UnknownWork(ValueError):
    """There is no actor or effector of that name; the message names the nearest."""

    code = "unknown_work"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process is to do.

    ``hosts`` are names of actors, effectors, and ``ledger``; ``ledger_file`` is where that one writes. ``name`` is what
    the process is called in its log.
    """

    name: str
    hosts: tuple[str, ...]
    access: Access
    config: Config
    ledger_file: Path


GROUP_OF_EFFECTORS = "effectors"
GROUPS = {"all": tuple(ACTORS), GROUP_OF_EFFECTORS: tuple(EFFECTORS)}
"""Names that stand for several: every actor that decides, and all that speak to the world outside."""


def known_work() -> tuple[str, ...]:
    """Return what a worker can be asked to run."""
    return (*ACTORS, *EFFECTORS, LEDGER)


def check_work(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without repeats, groups spelled out; raises UnknownWork for one there is no actor of."""
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
    """Return the work that ``names`` name; of the group of effectors only the configured ones.

    Raises:
        UnknownWork: a name is unknown, or the group was named and no effector is configured.
    """
    idle = set(EFFECTORS) - set(configured_effectors(config)) - set(names) if GROUP_OF_EFFECTORS in names else set()
    hosts = tuple(name for name in check_work(names) if name not in idle)
    if not hosts:
        raise UnknownWork(
            "no effector has anything to do: set llm.base_url for a language model, or write a table "
            "[webhook.receivers.NAME] for alerts"
        )
    return hosts


def run(job: Job, lifeline: Lifeline) -> None:
    """Run until SIGTERM, SIGINT, or the end of the supervisor; raises the first error of its work."""
    try:
        asyncio.run(_run(job, lifeline))
    except* Exception as wrong:
        # Of several that end the process the first says why, be it a foreseen one or a bug: a group says nothing.
        raise first_error(wrong) from wrong
    finally:
        lifeline.close()


async def _run(job: Job, lifeline: Lifeline) -> None:
    pulse = Pulse(job.config.runtime.health_file, supervised=lifeline.supervised)
    async with pulse.beating():
        await _run_on_logs(job, lifeline, pulse)


async def _run_on_logs(job: Job, lifeline: Lifeline, pulse: Pulse) -> None:
    while True:
        pulse.fault = lambda: STARTING
        try:
            await _run_on_one_log(job, lifeline, pulse)
        except BaseExceptionGroup as group:
            cut, others = group.split(LogCut)
            if others is not None or cut is None:
                raise
            # Whatever this process knows may be of messages that are gone: it begins again, as after a restart.
            _logger.error("log_cut_begins_anew", hosts=job.hosts, detail=str(first_error(cut)))
        else:
            return


async def _run_on_one_log(job: Job, lifeline: Lifeline, pulse: Pulse) -> None:
    connection = await Connection.open(job.access, _CONNECT_DEADLINE, announce=True)
    try:
        # Only now: until there is something to hand over, a signal may end the process as it always does.
        async with stop_signal(lifeline) as stop:
            await _work(job, connection, lifeline, stop, pulse)
    finally:
        await connection.close()


async def _work(job: Job, connection: Connection, lifeline: Lifeline, stop: asyncio.Event, pulse: Pulse) -> None:
    metrics = ProcessMetrics()
    async with serving_metrics(metrics_address(job.config), metrics.registry(), job.name) as told_at:
        await _host(job, connection, lifeline, stop, pulse, metrics, told_at)


async def _host(
    job: Job,
    connection: Connection,
    lifeline: Lifeline,
    stop: asyncio.Event,
    pulse: Pulse,
    metrics: ProcessMetrics,
    told_at: MetricsAddress | None,
) -> None:
    settings = job.config.log
    log = await configured_log(connection, settings)
    member, running, ready = _member_name(job.hosts), [], []
    worker: Worker | None = None
    projector: LedgerProjector | None = None
    works: dict[str, Callable[[], bool]] = {}
    if LEDGER in job.hosts:
        # Sealed words stay sealed in the ledger: it is what the stream holds, and is copied about.
        projector = _projector(job, log.as_stored(), member)
        running.append(projector.run(stop))
        ready.append(projector.following)
        works[LEDGER] = partial(_is_well, projector)
    if any(host in ACTORS for host in job.hosts):
        worker = metrics.worker = await _actors(job, connection, log, member, told_at)
        running.append(worker.run(stop))
        ready.append(worker.ready)
    ledger = job.ledger_file if LEDGER in job.hosts else None
    healthy = job.config.section("monitor", MonitorSettings).ranges
    async with (
        _effectors(job, log, member) as effectors,
        serving_queries(connection, ledger, worker, log.sealing, projector, healthy),
        asyncio.TaskGroup() as context,
    ):
        metrics.effectors = effectors
        running += [effector.run(stop) for effector in effectors]
        ready += [effector.ready for effector in effectors]
        works |= {effector.effector.name: effector.ready.is_set for effector in effectors}
        reported, announced = asyncio.Event(), asyncio.Event()
        ready += [reported] if works else []
        pulse.fault = partial(_fault, announced, stop, connection, worker, works)
        around_all = [
            context.create_task(_announce(ready, job.hosts, lifeline, announced), name="readiness"),
            context.create_task(_check_when_back(connection, worker), name="log looked at again"),
            context.create_task(_trace(job, log, metrics.traces), name="traces"),
        ]
        if works:
            membership = await KeyValueMembership.over(connection, settings.replicas)
            around_all.append(
                context.create_task(report(membership, f"{member}-serves", works, reported, told_at), name="report")
            )
        async with asyncio.TaskGroup() as tasks:
            for work in running:
                tasks.create_task(work)
        for task in around_all:
            task.cancel()


async def _trace(job: Job, log: JetStreamLog, counts: TraceCounts) -> None:
    """Send traces, in the process that writes the ledger: there is one of it, so that each span is sent once."""
    settings = job.config.telemetry
    if LEDGER not in job.hosts or not settings.traces:
        return
    try:
        async with Collector(settings.traces, settings.traces_timeout_s, os.environ) as collector:
            await Tracing(log.as_stored(), collector, job.ledger_file.with_suffix(".traces"), counts).run()
    except Exception:  # a bug in telemetry must not take the ledger down
        _logger.exception("traces_ended")


async def _check_when_back(connection: Connection, worker: Worker | None) -> None:
    """Whenever the broker was away, have the partitions look whether it still holds what they wrote."""
    back = asyncio.Event()
    off = connection.on_reconnect(back.set)
    try:
        while True:
            await back.wait()
            back.clear()
            if worker is not None and not connection.closed:
                await worker.check_own()
    finally:
        off()


async def _actors(
    job: Job, connection: Connection, log: JetStreamLog, member: str, told_at: MetricsAddress | None
) -> Worker:
    settings, replicas = job.config.runtime, job.config.log.replicas
    return Worker(
        log,
        await KeyValueSnapshots.over(connection, replicas),
        await KeyValueMembership.over(connection, replicas),
        [ACTORS[host] for host in job.hosts if host in ACTORS],
        name=member,
        settings=job.config.sections,
        standby=settings.standby,
        reply=reply_sender(connection),
        build=version("neuraxis"),
        snapshot_every=settings.snapshot_every,
        batch_from=BATCH_FROM if job.config.broker.sync == "always" else BATCH_FROM_UNFLUSHED,
        stands_in=[ACTORS[name] for name in await stand_ins_of(connection, job.hosts)],
        metrics=told_at,
    )


async def stand_ins_of(connection: Connection, hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the witnesses that a worker runs while nobody else does: those whose events its login may append."""
    others = [name for name in WITNESSES if name not in hosts]
    who = await ask_rights(connection) if others else None
    if who is None:
        return tuple(others)
    may = who.permissions.publish
    return tuple(name for name in others if all(map(may.include, stored_filters(name))))


@asynccontextmanager
async def _effectors(job: Job, log: JetStreamLog, member: str) -> AsyncIterator[list[EffectorWorker]]:
    """Open the effectors of a job; they are closed when their work has ended."""
    clock = SystemClock()
    withheld_for = job.config.section("reflex", ReflexSettings).faults
    context = EffectorContext(log.connection, piece_sender(log.connection), os.environ, clock, withheld_for)
    async with AsyncExitStack() as opened:
        workers = []
        for name in job.hosts:
            if (hosting := EFFECTORS.get(name)) is not None:
                settings = job.config.section(name, hosting.settings_type)
                effector = await opened.enter_async_context(hosting.open(settings, context))
                workers.append(EffectorWorker(log, effector, name=member, clock=clock, build=version("neuraxis")))
        yield workers


def _is_well(projector: LedgerProjector) -> bool:
    """Whether a projector follows the log, and is not waiting for something to be mended."""
    return projector.following.is_set() and not projector.progress.trouble


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
    works: Mapping[str, Callable[[], bool]],
) -> str:
    """Return why this process does not do all of its work now; empty: it does."""
    if stop.is_set():
        return "stopping"
    if not announced.is_set():
        return STARTING
    if not connection.connected:
        return "the broker cannot be reached"
    stalled = {} if worker is None else worker.stalled
    lacks = [f"{actor} does not advance in {', '.join(partitions)}" for actor, partitions in stalled.items()]
    lacks += [f"{stage} does not work" for stage, is_well in works.items() if not is_well()]
    return "; ".join(lacks)


async def _announce(
    ready: Sequence[asyncio.Event], hosts: tuple[str, ...], lifeline: Lifeline, announced: asyncio.Event
) -> None:
    for event in ready:
        await event.wait()
    # What is loaded stays: looking through all of it for garbage would hold up decisions by tens of milliseconds.
    gc.collect()
    gc.freeze()
    _logger.info("worker_ready", hosts=hosts)
    announced.set()
    lifeline.say_ready()


def reply_sender(connection: Connection) -> Callable[[str, Group], Awaitable[None]]:
    """Return what sends a copy of an answer to the inbox that its input named.

    Best effort: a caller that misses its copy asks the log.
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
    """Return what sends a piece of a coming answer to an inbox, and nowhere else; best effort."""

    async def tell(inbox: str, body: bytes) -> None:
        if not is_inbox(inbox):
            _logger.warning("piece_refused", inbox=inbox[:80], reason="not an inbox")
            return
        try:
            await connection.publish(inbox, body)
        except LogError as error:
            _logger.info("piece_missed", error=error.code)

    return tell


def _member_name(hosts: Sequence[str]) -> str:
    """Return a name no other worker has, fit for a subject's token."""
    where = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    what = hosts[0] if len(hosts) == 1 else "actors"
    return f"{where}-{what}-{os.getpid()}-{secrets.token_hex(3)}"
