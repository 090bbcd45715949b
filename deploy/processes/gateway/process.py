"""The gateway's process, from its start to its end. It loads no actor: it only appends, queries and reads."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from actors.gateway import Client
from actors.gateway.agents import SHARED_AGENT
from actors.gateway.http.access import Limits
from actors.gateway.http.app import Gateway, Services, application
from actors.gateway.http.check_results import passes
from actors.gateway.http.feedback.service import FeedbackService
from actors.gateway.http.guard.service import GuardService
from actors.gateway.http.keys import ApiKeys, is_loopback
from actors.gateway.http.loops.judgements import Judgements
from actors.gateway.http.loops.service import LoopService
from actors.gateway.http.metrics import MetricsSource
from actors.gateway.http.openai.chat_service import ChatService
from actors.gateway.http.readiness_checks import ReadinessChecks
from actors.gateway.http.server import serve
from actors.gateway.metrics import Metrics
from actors.llm.endpoint import Endpoint
from actors.reflex.settings import ReflexSettings
from actors.responder.settings import ResponderSettings
from actors.runtime.membership.heartbeat import MetricsAddress, heartbeat_of
from deploy.cli.rendering.sentences import sentence_on
from deploy.config.configured_log import attach_ledger_or_warn, configured_log
from deploy.config.loading import Config
from deploy.health.readiness import LedgerProbe, StoringProbe, ok_if_empty
from deploy.health.resources import used_up
from deploy.health.stage_watch import StageWatch, needed_by, unserved_text
from deploy.processes import garbage
from deploy.processes.broker.storage_watch import storing_fault
from deploy.processes.broker.users import GATEWAY
from deploy.processes.gateway.examinations import BrokerExaminations
from deploy.processes.gateway.operations import BrokerOperations
from deploy.processes.gateway.records import BrokerRecords
from deploy.processes.gateway.upstream import forwarding_to
from deploy.processes.inbox import listening_inbox
from deploy.processes.listen_address import url_of
from deploy.processes.reading import serving_reads
from deploy.processes.supervising.lifeline import Lifeline
from deploy.processes.supervising.pulse import STARTING, Pulse
from deploy.processes.supervising.stopping import run_process, stop_signal
from events.errors import NoLeader, NotPermitted, Unavailable
from events.exhaustion import exhausted
from events.jetstream import Access, Connection, KeyValueMembership
from events.log import Log, Membership
from events.loggers import get_logger

_LOOK_INTERVAL_S = 5.0
"""Seconds between two readiness checks for the health file and systemd."""

GRACE_S = 3.0
"""Seconds that open requests may still wait for their answers after the signal to stop."""

METRICS_WAIT_S = 2.0
"""Seconds that the log and the ledger's process may each take to say how far they are, for metrics."""

_CONNECT_TIMEOUT_S = 30.0
_logger = get_logger("neuraxis.gateway")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway's process runs with.

    ``access`` and ``operating`` say how it connects to the broker: as the gateway, and for operators' requests.
    ``listener`` is the socket that it serves on. ``upstream`` is the endpoint to which requests for other models go.
    ``ledger`` is where the ledger file is, if it is on this machine. ``store`` is the folder of the streams of the
    set's own broker; None with another broker.
    """

    access: Access
    operating: Access
    config: Config
    listener: socket.socket
    keys: ApiKeys
    upstream: Endpoint | None = None
    ledger: Path | None = None
    store: Path | None = None


def run(job: Job, lifeline: Lifeline) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the supervisor; raises the first error of any of its tasks.

    ``lifeline`` is the socket pair to the supervisor, if there is one: over it this process reports that it is ready.
    """
    with job.listener:
        run_process(_run(job, lifeline), job.config.runtime.event_loop, lifeline)


async def _run(job: Job, lifeline: Lifeline) -> None:
    # Reports health once a second: into a file for `neuraxis-probe`, and to systemd's watchdog.
    pulse = Pulse(job.config.runtime.health_file, supervised=lifeline.supervised)
    async with pulse.beating(), stop_signal(lifeline) as stop:
        settings, listening = job.config.gateway, asyncio.Event()
        gateway = application(
            job.keys,
            local=is_loopback(job.listener.getsockname()[0]),
            limits=Limits(concurrent=settings.concurrent, body_s=settings.body_s),
            agent_per=settings.agent_per,
        )
        serving = asyncio.create_task(
            serve(gateway, job.listener, stop, header_s=settings.header_s, up=listening), name="serving"
        )
        try:
            connection = await _connect(job, stop)
            if connection is None:
                await serving
                return
            try:
                await _serve(job, connection, lifeline, stop, gateway, (serving, listening), pulse)
            finally:
                await connection.close()
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


async def _connect(job: Job, stop: asyncio.Event) -> Connection | None:
    """Connect to the broker; None if the signal to stop comes first."""
    opening = asyncio.create_task(Connection.open(job.access, _CONNECT_TIMEOUT_S, announce=True), name="connecting")
    stopping = asyncio.create_task(stop.wait(), name="stop while connecting")
    try:
        await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
        return opening.result() if opening.done() else None
    finally:
        opening.cancel()
        stopping.cancel()
        await asyncio.wait((opening, stopping))


async def _serve(
    job: Job,
    connection: Connection,
    lifeline: Lifeline,
    stop: asyncio.Event,
    gateway: Gateway,
    server: tuple[asyncio.Task[None], asyncio.Event],
    pulse: Pulse,
) -> None:
    serving, listening = server
    ready = asyncio.Event()
    seen = _SeenFault(STARTING if pulse.is_read else "")
    pulse.fault = partial(_fault, ready, stop, connection, seen)
    settings = job.config.gateway
    log = await configured_log(connection, job.config.log)
    # Single exchanges and judgements may be older than the stream's first event: they are looked up in the ledger, too.
    # What follows the log reads new events only, so `log` itself gets no ledger.
    whole = log.with_archive(None)
    await attach_ledger_or_warn(whole, job.ledger)
    judgements = Judgements(settings.loops)
    membership = KeyValueMembership(connection)
    needed = needed_by(job.config)
    stages = StageWatch(membership, log.partitions, needed)

    def no_worker_ever(error: Unavailable) -> bool:
        """Whether nothing holds heartbeats at a broker that is there: the first worker makes the bucket for them."""
        return connection.connected and not isinstance(error, NoLeader | NotPermitted)

    async def hosted() -> frozenset[str]:
        try:
            return hosted_actors(tuple((await membership.members()).values()))
        except Unavailable as error:
            if no_worker_ever(error):
                return frozenset()
            raise

    async def storing() -> str:
        return await storing_fault(connection, log.stream, job.store)

    async def unserved() -> str:
        try:
            await stages.look()
        except Unavailable as error:
            if no_worker_ever(error):
                return "not served: no worker reports at this broker"
            raise
        lacking = unserved_text(stages.unserved(), log.partitions)
        return f"not served: {lacking}" if lacking else ""

    opening = Client.open(
        log, why_no_end=stages.why_no_end, open_inbox=partial(listening_inbox, connection), limits=settings.limits
    )
    async with (
        serving_reads(log, GATEWAY),  # to workers whose logins may not read the whole log
        opening as client,
        asyncio.TaskGroup() as tasks,
        AsyncExitStack() as stack,
    ):
        following = tasks.create_task(judgements.follow(log), name="judgements")
        watching = tasks.create_task(stages.follow(), name="stages")
        checks: dict[str, Callable[[], Awaitable[str]]] = {
            "storing": StoringProbe(client, storing),
            "ledger": LedgerProbe(connection, expected=lifeline.supervised),
            "resources": ok_if_empty(used_up),
            "stages": ok_if_empty(unserved),
        }
        why_unserved = partial(stages.why_unserved, "guardrails")
        readiness = ReadinessChecks(client, judgements, hosted=hosted, further_checks=checks)
        guard = GuardService(client, wait_s=settings.wait_s, sentence=sentence_on)
        chat = ChatService(
            client,
            wait_s=settings.answer_s,
            accept_s=settings.wait_s,
            early=not _may_reject_answers(job.config),
        )
        forwarding = await stack.enter_async_context(
            forwarding_to(
                job.upstream,
                settings.upstream,
                chat,
                client,
                sends_callers_keys=lambda: not job.keys.required,
                reading=job.config.section("reflex", ReflexSettings),  # how reflex reads what the upstream answers
            )
        )
        examinations = BrokerExaminations(
            job.access,
            job.config.log,
            lambda exchange: records.find_exchange(exchange),
            within_s=settings.examine_s,
            ledger=job.ledger,
        )
        records = BrokerRecords(
            connection, log, stop, membership, needed, whole=whole, ledger=job.ledger, search=examinations.why
        )
        loops = LoopService(client, judgements, wait_s=settings.wait_s, unserved=why_unserved, whole=records.whole_log)
        find, metrics = records.find_exchange, Metrics()
        operations = BrokerOperations(job.operating, log.stream, wait_s=settings.wait_s, ledger=job.ledger, lookup=find)
        feedback = FeedbackService(client, find, wait_s=settings.wait_s)
        counting = tasks.create_task(metrics.follow(log.as_stored()), name="metrics")
        gateway.open(
            Services(
                loops=loops,
                chat=chat,
                readiness=readiness,
                guard=guard,
                feedback=feedback,
                operations=operations,
                records=records,
                examinations=examinations,
                metrics_source=metrics_source(metrics, log, records, stages, membership, readiness),
                audit=partial(client.report, within=settings.wait_s),
                forwarding=forwarding,
            )
        )
        # Keys are asked for where others come in: from other machines, or through a reverse proxy on this one.
        if job.keys.required and settings.agent_per == "shared":
            _logger.warning(
                "agent_shared_by_all",
                url=url_of(job.listener),
                agent=SHARED_AGENT,
                risk="whoever reaches this gateway learns what anybody told the agent",
                remedy='set gateway.agent_per = "user", or have every request name an agent',
            )
        announcing = tasks.create_task(
            _announce_readiness((judgements.caught_up, listening), job, lifeline, ready), name="readiness"
        )
        shortening = tasks.create_task(_shorten_waits((client, examinations), stop), name="shorten waits")
        looking = tasks.create_task(_look_at_readiness(readiness, ready, seen, pulse), name="looks")
        await serving
        for task in (following, watching, counting, announcing, shortening, looking):
            task.cancel()


def metrics_source(
    metrics: Metrics,
    log: Log,
    records: BrokerRecords,
    stages: StageWatch,
    membership: Membership,
    readiness: ReadinessChecks,
) -> MetricsSource:
    """Return the source of the gateway's metrics, which are measured at each request of Prometheus."""

    async def log_seq() -> int:
        try:
            async with asyncio.timeout(METRICS_WAIT_S):
                return (await log.info()).last_seq
        except TimeoutError:
            raise Unavailable(f"the broker has not answered within {METRICS_WAIT_S:g} s") from None

    async def ledger_seq() -> int:
        try:
            async with asyncio.timeout(METRICS_WAIT_S):
                return await records.ledger_seq()
        except TimeoutError:
            return -1

    def served() -> dict[str, bool | None]:
        lost = stages.unserved()
        return {stage: stage not in lost if stages.is_known else None for stage in stages.needed}

    async def ready() -> bool:
        return all(map(passes, (await readiness.checks()).values()))

    async def targets() -> tuple[MetricsAddress, ...]:
        heartbeats = map(heartbeat_of, (await membership.members()).values())
        return tuple({each.metrics.address: each.metrics for each in heartbeats if each and each.metrics}.values())

    return MetricsSource(metrics, log_seq=log_seq, ledger_seq=ledger_seq, served=served, ready=ready, targets=targets)


class _SeenFault(msgspec.Struct):
    """What ``/readyz`` last said against this process, in words; empty if nothing."""

    text: str


def _fault(ready: asyncio.Event, stop: asyncio.Event, connection: Connection, seen: _SeenFault) -> str:
    """Return why this process is not ready, empty if it is: a probe that reads files is told what ``/readyz`` says."""
    if stop.is_set():
        return "stopping"
    if not ready.is_set():
        return STARTING
    return seen.text if connection.connected else "the broker cannot be reached"


async def _look_at_readiness(readiness: ReadinessChecks, ready: asyncio.Event, seen: _SeenFault, pulse: Pulse) -> None:
    """Make the readiness checks at intervals, if systemd or the health file is told of their results."""
    await ready.wait()
    while pulse.is_read:
        try:
            checks = await readiness.checks()
        except Exception as error:  # whatever it is, requests are served meanwhile
            seen.text = f"readiness cannot be checked: {exhausted(error) or type(error).__name__}"
        else:
            seen.text = "; ".join(f"{name}: {result}" for name, result in checks.items() if not passes(result))
        await asyncio.sleep(_LOOK_INTERVAL_S)


async def _announce_readiness(
    needed: Sequence[asyncio.Event], job: Job, lifeline: Lifeline, ready: asyncio.Event
) -> None:
    for event in needed:
        await event.wait()
    garbage.freeze_loaded()
    _logger.info("gateway_ready", url=url_of(job.listener), keys=job.keys.required)
    ready.set()
    lifeline.report_ready()


class _WithDeadlines(Protocol):
    def shorten_waits(self, seconds: float) -> None: ...


async def _shorten_waits(services: Sequence[_WithDeadlines], stop: asyncio.Event) -> None:
    """Wait for the signal to stop; then let no request wait longer than :data:`GRACE_S`."""
    await stop.wait()
    for service in services:
        service.shorten_waits(GRACE_S)


def _may_reject_answers(config: Config) -> bool:
    """Whether guardrails may reject a model's answer: then no part of it is sent before they have judged all of it."""
    return config.section("responder", ResponderSettings).guardrails


def hosted_actors(encoded: Sequence[bytes]) -> frozenset[str]:
    """Return the actors that living workers run and that have read the log to its end, by the workers' heartbeats."""
    heartbeats = map(heartbeat_of, encoded)
    return frozenset(actor for each in heartbeats if each for actor in each.actors if actor not in each.recovering)
