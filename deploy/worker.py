"""A worker process, from its arguments to its end: the log, the actors it hosts, and the ledger where that is named."""

import asyncio
import faulthandler
import gc
import os
import re
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path

import msgspec
import structlog

from actors.ledger import LedgerProjector, LedgerSettings
from actors.registry import ACTORS
from actors.runtime.committer import BATCH_FROM, BATCH_FROM_UNFLUSHED, Group
from actors.runtime.worker import Worker
from deploy.config import Config
from deploy.inbox import is_inbox
from deploy.lifeline import Lifeline
from deploy.queries import serving
from events.errors import LogError
from events.jetstream import Access, Connection, JetStreamLog, KeyValueMembership, KeyValueSnapshots
from schemas.subjects import Partitions

LEDGER = "ledger"
"""The name of the projector, which is no actor: it decides nothing."""

STOP_DEADLINE = 14.0
"""Seconds from the wish to stop to the end at the latest; the actors' own hand-over takes up to 10."""

_CONNECT_DEADLINE = 30.0
_logger = structlog.get_logger("neuraxis.worker")


class UnknownWork(ValueError):
    """There is no actor of that name; the message names the nearest."""

    code = "unknown_work"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process is to do.

    ``hosts`` are names of actors, and ``ledger``; ``ledger_file`` is where that one writes.
    """

    hosts: tuple[str, ...]
    access: Access
    config: Config
    ledger_file: Path


def known_work() -> tuple[str, ...]:
    """Return what a worker can be asked to run."""
    return (*ACTORS, LEDGER)


def check_work(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without repeats; raises UnknownWork for one there is no actor of."""
    known = known_work()
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise UnknownWork(f"there is no actor {name!r}: {hint}")
    return tuple(dict.fromkeys(names))


def run(job: Job, lifeline: Lifeline) -> None:
    """Run until SIGTERM, SIGINT, or the end of the supervisor; raises the first error of its work."""
    try:
        asyncio.run(_run(job, lifeline))
    except* LogError as wrong:
        raise _first(wrong) from wrong
    finally:
        lifeline.close()


async def _run(job: Job, lifeline: Lifeline) -> None:
    connection = await Connection.open(job.access, _CONNECT_DEADLINE)
    # Only now: until there is something to hand over, a signal may end the process as it always does.
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(lifeline, stop), name="lifeline")
            limiting = tasks.create_task(_limit_the_stop(stop), name="stop deadline")
            await _work(job, connection, lifeline, stop)
            watching.cancel()
            limiting.cancel()
    finally:
        await connection.close()
        faulthandler.cancel_dump_traceback_later()


async def _work(job: Job, connection: Connection, lifeline: Lifeline, stop: asyncio.Event) -> None:
    settings = job.config.log
    partitions = Partitions(settings.agents, settings.sessions)
    log = await JetStreamLog.over(connection, stream=settings.stream, partitions=partitions, replicas=settings.replicas)
    member, running, ready = _member_name(job.hosts), [], []
    worker: Worker | None = None
    if LEDGER in job.hosts:
        written = asyncio.Event()
        running.append(_projector(job, log, member, written).run(stop))
        ready.append(written)
    if any(host in ACTORS for host in job.hosts):
        worker = await _actors(job, connection, log, member)
        running.append(worker.run(stop))
        ready.append(worker.ready)
    ledger = job.ledger_file if LEDGER in job.hosts else None
    async with serving(connection, ledger, worker), asyncio.TaskGroup() as around:
        announcing = around.create_task(_announce(ready, job.hosts, lifeline), name="readiness")
        async with asyncio.TaskGroup() as tasks:
            for work in running:
                tasks.create_task(work)
        announcing.cancel()


async def _actors(job: Job, connection: Connection, log: JetStreamLog, member: str) -> Worker:
    settings, replicas = job.config.runtime, job.config.log.replicas
    return Worker(
        log,
        await KeyValueSnapshots.over(connection, replicas),
        await KeyValueMembership.over(connection, replicas),
        [ACTORS[host] for host in job.hosts if host in ACTORS],
        name=member,
        settings=job.config.sections,
        standby=settings.standby,
        reply=replier(connection),
        build=version("neuraxis"),
        snapshot_every=settings.snapshot_every,
        batch_from=BATCH_FROM if job.config.broker.sync == "always" else BATCH_FROM_UNFLUSHED,
    )


def _projector(job: Job, log: JetStreamLog, member: str, written: asyncio.Event) -> LedgerProjector:
    return LedgerProjector(
        log,
        job.ledger_file,
        stream=job.config.log.stream,
        settings=job.config.section(LEDGER, LedgerSettings),
        source=f"neuraxis/{member}/ledger",
        build=version("neuraxis"),
        on_progress=lambda _: written.set(),
    )


async def _announce(ready: Sequence[asyncio.Event], hosts: tuple[str, ...], lifeline: Lifeline) -> None:
    for event in ready:
        await event.wait()
    # What is loaded stays: looking through all of it for garbage would hold up decisions by tens of milliseconds.
    gc.collect()
    gc.freeze()
    _logger.info("worker_ready", hosts=hosts)
    lifeline.say_ready()


async def _watch(lifeline: Lifeline, stop: asyncio.Event) -> None:
    await lifeline.ended()
    _logger.warning("supervisor_gone", pid=os.getpid())
    stop.set()


async def _limit_the_stop(stop: asyncio.Event) -> None:
    """Once the stop is wished for, end the process in time even if its loop should hang: a C timer sees to it."""
    await stop.wait()
    faulthandler.dump_traceback_later(STOP_DEADLINE, exit=True)


def replier(connection: Connection) -> Callable[[str, Group], Awaitable[None]]:
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


def _member_name(hosts: Sequence[str]) -> str:
    """Return a name no other worker has, fit for a subject's token."""
    where = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    what = hosts[0] if len(hosts) == 1 else "actors"
    return f"{where}-{what}-{os.getpid()}-{secrets.token_hex(3)}"


def _first(group: BaseExceptionGroup[LogError]) -> LogError:
    wrong: BaseException = group
    while isinstance(wrong, BaseExceptionGroup):
        wrong = wrong.exceptions[0]
    assert isinstance(wrong, LogError)
    return wrong
