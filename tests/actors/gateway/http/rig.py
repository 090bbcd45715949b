"""The application on a simulated log in virtual time, with the real guardrails at work behind it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import httpx

from actors.gateway import Client
from actors.gateway.agents import AgentPer
from actors.gateway.http.access import Limits
from actors.gateway.http.app import Gateway, Services, application
from actors.gateway.http.feedback.service import FeedbackService, Lookup, RatedExchange
from actors.gateway.http.guard.service import GuardService
from actors.gateway.http.keys import ALL_SCOPES, ApiKeys, Key, Scope
from actors.gateway.http.keys.key import hash_of
from actors.gateway.http.loops.judgements import Judgements
from actors.gateway.http.loops.service import LoopService
from actors.gateway.http.openai.chat_service import ChatService
from actors.gateway.http.readiness_checks import ReadinessChecks
from actors.gateway.http.scopes import NotFound
from actors.gateway.input_client import OpenInbox
from actors.registry import ACTORS
from actors.runtime.worker import Worker
from deploy.cli.rendering.sentences import sentence_on
from deploy.health.stage_watch import StageWatch
from deploy.processes.gateway.process import hosted_actors
from schemas.actor import Actor
from tests.actors.gateway.asking import VirtualClock
from tests.events.simulated_world import log_of
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedMembership, SimulatedSnapshots, SimulatedStream
from tests.simulation.loop import inline

LIMITS = Limits(concurrent=8, body_s=5.0)
URL = "http://127.0.0.1:8642"
GUARDRAILS: Actor[Any] = ACTORS["guardrails"]

SEED_COMPLETION: dict[str, Any] = {
    "loop_id": "loop_001",
    "reflection_status": "done",
    "orchestrator_persona": "SAGE",
    "override_fatigue": False,
    "override_max_reruns": False,
    "override_by": None,
}
"""Source G's own request."""

SCORED: dict[str, Any] = {**SEED_COMPLETION, "alignment_score": 0.72, "drift_score": 0.28}

SEED_OVERRIDE: dict[str, Any] = {
    "override_fatigue": True,
    "override_max_reruns": False,
    "override_by": "operator",
    "override_reason": "Manual override to continue exploration",
}
"""Source G's own request."""


def ring_of(asking: Sequence[str] = (), operating: Sequence[str] = ()) -> ApiKeys:
    """Return keys that may ask, and others that may do all."""
    return ApiKeys([*(key_of(each, "ask") for each in asking), *(key_of(each, *ALL_SCOPES) for each in operating)])


def key_of(told: str, *scopes: Scope, agent: str = "", per_minute: int = 0) -> Key:
    """Return a key as it is stored; its id says what it may do."""
    id = "-".join((*scopes, hash_of(told)[:4]))
    return Key(id=id, hash=hash_of(told), scopes=scopes, agent=agent, per_minute=per_minute)


async def nothing_rated(exchange: str) -> RatedExchange:
    """Find no exchange."""
    raise NotFound(f"the log holds no exchange {exchange!r}")


@cache
def _without_keys(local: bool, limits: Limits, agent_per: AgentPer) -> Gateway:
    """Return an application that takes no keys, which each test opens on services of its own.

    To make one takes longer than most tests of it, and it keeps nothing from one test to the next.
    """
    return application(ApiKeys([]), local=local, limits=limits, agent_per=agent_per)


@contextlib.asynccontextmanager
async def gateway(
    stream: SimulatedStream,
    *,
    keys: Sequence[str] = (),
    local: bool = True,
    limits: Limits = LIMITS,
    wait_s: float = 10.0,
    answer_s: float = 60.0,
    open_inbox: OpenInbox | None = None,
    most: int = 64,
    agent_per: AgentPer = "shared",
    further_checks: Mapping[str, Callable[[], Awaitable[str]]] | None = None,
    operations: Any = None,
    records: Any = None,
    examinations: Any = None,
    rated: Lookup | None = None,
    metrics_source: Any = None,
    operator_keys: Sequence[str] = (),
    ring: ApiKeys | None = None,
    log: Any = None,
    whole: Callable[[], Awaitable[Any]] | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """Open a gateway on a log, and a client to it, for the length of a block; ``ring``: in the place of the keys."""
    log, membership = log or log_of(stream), SimulatedMembership(SimulatedConnection(stream, "g"))

    async def hosted() -> frozenset[str]:
        return hosted_actors(tuple((await membership.members()).values()))

    stages = StageWatch(membership, log.partitions)
    opening = Client.open(log, why_no_end=stages.why_no_end, open_inbox=open_inbox, now_ns=VirtualClock().now_ns)
    async with opening as edge, asyncio.TaskGroup() as tasks:
        judgements = Judgements(most)
        following = tasks.create_task(judgements.follow(log))
        looking = tasks.create_task(stages.follow())
        unserved = partial(stages.why_unserved, "guardrails")
        loops = LoopService(edge, judgements, wait_s=wait_s, unserved=unserved, whole=whole)
        readiness = ReadinessChecks(edge, judgements, hosted=hosted, further_checks=further_checks)
        guard = GuardService(edge, wait_s=wait_s, sentence=sentence_on)
        chat = ChatService(edge, wait_s=answer_s, accept_s=wait_s, early=open_inbox is not None)
        feedback = FeedbackService(edge, rated or nothing_rated, wait_s=wait_s)
        if keys or operator_keys or ring:
            app = application(ring or ring_of(keys, operator_keys), local=local, limits=limits, agent_per=agent_per)
        else:
            app = _without_keys(local, limits, agent_per)
        app.open(
            Services(
                loops=loops,
                chat=chat,
                readiness=readiness,
                guard=guard,
                feedback=feedback,
                operations=operations,
                records=records,
                examinations=examinations,
                metrics_source=metrics_source,
                audit=partial(edge.report, within=wait_s),
            )
        )
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            yield client
        following.cancel()
        looking.cancel()


@contextlib.asynccontextmanager
async def guarding(stream: SimulatedStream, actor: Actor[Any] = GUARDRAILS, name: str = "w") -> AsyncIterator[None]:
    """Run a worker of guardrails, or of another actor, for the length of a block."""
    connection = SimulatedConnection(stream, name)
    worker = Worker(
        SimulatedLog(connection),
        SimulatedSnapshots(connection),
        SimulatedMembership(connection),
        (actor,),
        name=name,
        clock=VirtualClock(),
        offload=inline,
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run(stop))
        await worker.ready.wait()
        yield
        stop.set()


async def complete(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    """Have a loop judged; fields besides, or instead of, source G's own."""
    return await client.post("/orchestrator/loop-complete", json={**SCORED, **body})


def shape(value: Any) -> Any:
    """Return the names, types and nesting of a JSON value."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value)
