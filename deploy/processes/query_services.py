"""Queries, served as NATS micro services: each reads a state and never changes it.

- ``forged_id.query.ledger.exchange``: how an exchange ended, for a caller that missed its reply;
- ``forged_id.query.ledger.exchanges``: lists of exchanges;
- ``forged_id.query.ledger.overview``: the state of the set at a sequence of the log;
- ``forged_id.query.ledger.health``: whether the ledger can be written;
- ``forged_id.query.<actor>.partitions``: what a worker does with each partition of an actor that it runs.

Like any NATS micro service, they answer ``$SRV.PING``, ``$SRV.INFO`` and ``$SRV.STATS``.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from nats.errors import Error as NatsError
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Service

from actors.ledger import LedgerProjector
from actors.monitor.settings import HEALTHY, Range
from actors.runtime.worker import Worker
from deploy.cli.rendering.sentences import sentence_on
from deploy.health.readiness import LEDGER_QUERY, LedgerHealth, ledger_write_fault
from deploy.processes.inbox import is_inbox
from deploy.processes.question_queue import MOST_WAITING, QuestionQueue
from events.errors import LogError
from events.jetstream import Connection
from events.ledger import ExchangeFilter, ExchangeResult, PointRequest, exchange_result, list_exchanges, overview_at
from events.loggers import get_logger
from events.sealing.sealing import Sealing
from schemas.event import ROOT, topic_of
from schemas.intake.strict import BadInput, read
from schemas.permissions import EXCHANGE_QUERY
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Mode

EXCHANGES_QUERY = f"{ROOT}.query.ledger.exchanges"
OVERVIEW_QUERY = f"{ROOT}.query.ledger.overview"
LONGEST_S = 4.0
"""Seconds that a question to the ledger may take: a gateway gives it up a little later."""

_logger = get_logger("neuraxis.ledger")
_MOST_LOOKUPS = 1_000
"""The most single exchanges that wait to be looked up, each some milliseconds."""

QuestionT = TypeVar("QuestionT", bound=msgspec.Struct)


class NotFound(Exception):
    """What a question names is not in the ledger."""


class ExchangeQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question how an exchange ended."""

    exchange: str


class EmptyQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question without fields."""


class PartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker does with a partition.

    ``role`` is the worker's: it leads the partition or stands by. ``place`` is the sequence folded last. ``waiting``
    counts messages that wait to be decided.
    """

    partition: str
    role: str
    place: int
    waiting: int


def end_sentence(stage: str, action: str, reason: str, mode: str) -> str:
    """Return an exchange's end as a sentence, the one of ``neuraxis why``; empty if this release has none for it."""
    try:
        end = msgspec.convert(
            {
                "topic": topic_of(ResponseEmitted),
                "stage": stage,
                "action": action,
                "reason": reason,
                "mode": mode or None,
                "first_mode": mode or None,
                "response": "",
                "backend": "",
            },
            ResponseEmitted,
        )
    except msgspec.ValidationError:  # another release wrote it
        return ""
    return sentence_on(end)


@asynccontextmanager
async def serving_queries(
    connection: Connection,
    ledger: Path | None,
    worker: Worker | None,
    sealing: Sealing | None = None,
    projector: LedgerProjector | None = None,
    healthy: Mapping[Mode, Range] = HEALTHY,
) -> AsyncIterator[None]:
    """Serve the queries of a process within the block.

    Args:
        connection: The connection to the broker.
        ledger: The ledger file that this process writes, if any.
        worker: Runs its actors, if any.
        sealing: Decrypts people's words in the ledger.
        projector: Writes the ledger.
        healthy: For each mode, the range of its share of all answers that the monitor considers healthy.
    """
    async with AsyncExitStack() as stack:
        if ledger is not None:
            service = await _service(connection, "ledger", "How an exchange ended, from the ledger.")
            stack.push_async_callback(_stop, service)

            async def look_up(question: ExchangeQuestion) -> ExchangeResult:
                found = await exchange_result(ledger, question.exchange, sealing)
                if found is None:
                    raise NotFound(f"the ledger holds no exchange {question.exchange[:64]!r} (yet)")
                return found

            lookups = _handler(ExchangeQuestion, '{"exchange": "<id>"}', look_up)
            results = await _queued(stack, lookups, most_waiting=_MOST_LOOKUPS)
            await service.add_endpoint(name="exchange", subject=EXCHANGE_QUERY, handler=results)
            lists = _handler(
                ExchangeFilter,
                '{"limit": 50} and conditions that they meet',
                lambda wanted: asyncio.to_thread(
                    list_exchanges, ledger, wanted, phrased=end_sentence, most_s=LONGEST_S
                ),
            )
            handler = await _queued(stack, lists, _is_quick)
            await service.add_endpoint(name="exchanges", subject=EXCHANGES_QUERY, handler=handler)
            ranges: Mapping[str, tuple[float, float]] = {mode: (each.low, each.high) for mode, each in healthy.items()}
            overview = _handler(
                PointRequest,
                '{"at": <sequence>}, 0 for now',
                lambda point: asyncio.to_thread(overview_at, ledger, point.at, ranges, most_s=LONGEST_S),
            )
            await service.add_endpoint(name="overview", subject=OVERVIEW_QUERY, handler=await _queued(stack, overview))
            if projector is not None:
                health = _handler(EmptyQuestion, "nothing, or {}", _health_of(ledger, projector))
                await service.add_endpoint(name="health", subject=LEDGER_QUERY, handler=health)
        for actor in worker.hosted if worker is not None else ():
            service = await _service(connection, actor, f"What this worker does with the partitions of {actor}.")
            stack.push_async_callback(_stop, service)
            assert worker is not None
            partitions = _handler(EmptyQuestion, "nothing, or {}", partial(_partitions, worker, actor))
            await service.add_endpoint(
                name="partitions", subject=f"{ROOT}.query.{actor}.partitions", handler=partitions
            )
        yield


async def _stop(service: Service) -> None:
    with suppress(NatsError):  # where the connection is closed, it has ended, and the reason must not be hidden
        await service.stop()


def _is_quick(request: Request) -> bool:
    """Whether a request asks for a list without conditions, whose rows need no search, or is not valid."""
    try:
        wanted = read(request.data.strip() or b"{}", ExchangeFilter, "the question")
    except BadInput:
        return True
    return wanted == ExchangeFilter(before=wanted.before, at=wanted.at, limit=wanted.limit)


def _key_of(request: Request) -> bytes | None:
    """Return the question of a request: of those that wait with the same one, all get one answer.

    Every dashboard asks for the same overview, several times a second while exchanges end.
    """
    return request.data.strip() if _may_be_answered(request) else None


async def _queued(
    stack: AsyncExitStack,
    query: Callable[[Request], Awaitable[None]],
    is_quick: Callable[[Request], bool] = lambda request: False,
    *,
    most_waiting: int = MOST_WAITING,
) -> QuestionQueue:
    """Return a queue for questions, which is served as long as the stack is open; quick ones do not wait in it."""
    queue = QuestionQueue(query, is_quick, key_of=_key_of, most_waiting=most_waiting)
    await stack.enter_async_context(queue.serving())
    return queue


async def _service(connection: Connection, stage: str, description: str) -> Service:
    return await add_service(
        connection.nc, name=f"neuraxis-{stage}", version=version("neuraxis"), description=description
    )


def _handler(
    kind: type[QuestionT], usage: str, answer: Callable[[QuestionT], Awaitable[Any]]
) -> Callable[[Request], Awaitable[None]]:
    """Return a handler that answers questions of one kind; an empty request is one without fields.

    ``usage`` says how to ask. ``answer`` raises NotFound for what is not there; the request ends with status 404 then,
    with 400 if it cannot be read, and with 503 if the ledger cannot.
    """

    async def handle(request: Request) -> None:
        if not _may_be_answered(request):
            return
        try:
            found = await answer(read(request.data.strip() or b"{}", kind, "the question"))
        except BadInput as wrong:
            await request.respond_error("400", f"ask with {usage}: {wrong}")
        except NotFound as wrong:
            await request.respond_error("404", str(wrong))
        except LogError as wrong:
            await request.respond_error("503", f"the ledger cannot be read now: {wrong}")
        else:
            await request.respond(msgspec.json.encode(found))

    return handle


def _health_of(ledger: Path, projector: LedgerProjector) -> Callable[[EmptyQuestion], Awaitable[LedgerHealth]]:
    last_fault = ""

    async def health(_: EmptyQuestion) -> LedgerHealth:
        nonlocal last_fault
        fault, before = await asyncio.to_thread(ledger_write_fault, ledger), last_fault
        if fault and fault != before:
            _logger.warning("ledger_unwritable", path=str(ledger), detail=fault)
        last_fault = fault
        trouble = fault or projector.progress.trouble
        trouble = trouble.replace(str(ledger), ledger.name)  # the gateway's readiness shows it
        return LedgerHealth(position=projector.progress.position, trouble=trouble)

    return health


async def _partitions(worker: Worker, actor: str, _: EmptyQuestion) -> tuple[PartitionStatus, ...]:
    """Return what a worker does with each partition of an actor, in the order of their names.

    A shard is a partition as its worker runs it: with its role (it leads, or stands by) and its view, the folded state.
    """
    return tuple(
        PartitionStatus(
            partition=partition, role=shard.role, place=shard.view.position, waiting=len(shard.view.waiting)
        )
        for (name, partition), shard in sorted(worker.shards.items())
        if name == actor
    )


def _may_be_answered(request: Request) -> bool:
    return is_inbox(request._msg.reply)  # nats-py offers no public way to see where an answer would go
