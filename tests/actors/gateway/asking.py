"""Inputs for an edge, what became of them in a simulated log, and a worker to answer them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from actors.gateway import Client, new_input
from actors.gateway.external_events import WrappedEvent
from actors.registry import ACTORS
from actors.runtime.worker import Worker
from events.log import Stored
from schemas.intake.limits import MOST_BYTES, MOST_LAYERS, InputLimits
from schemas.subjects import Partitions
from schemas.vocabulary.gateway import Purpose
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedMembership, SimulatedSnapshots, SimulatedStream
from tests.simulation.loop import EPOCH_NS, VirtualLoop, inline

PARTITIONS = Partitions()
ANYTHING = InputLimits(text_bytes=MOST_BYTES, layer_bytes=MOST_BYTES, layers=MOST_LAYERS, input_bytes=MOST_BYTES)


def asking(
    text: str = "What is the capital of Peru?",
    exchange: str = "",
    session: str = "morning",
    purpose: Purpose = "answer",
    deadline_after_ms: int = 60_000,
) -> WrappedEvent:
    """Build an input."""
    return new_input(
        text,
        agent="ann",
        session=session,
        partitions=PARTITIONS,
        now_ns=EPOCH_NS,
        exchange=exchange,
        purpose=purpose,
        deadline_after_ms=deadline_after_ms,
        limits=ANYTHING,
    )


def several(count: int) -> list[WrappedEvent]:
    return [asking(exchange=f"exchange-{number}", session=f"session-{number % 5}") for number in range(count)]


def stored(stream: SimulatedStream, topic: str = "input.received") -> list[Stored]:
    return [message for message in stream.store.messages if message.subject.endswith(topic)]


def exchange_of(message: Stored) -> str:
    return message.headers["ce-exchange"]


def clock() -> float:
    return asyncio.get_running_loop().time()


class VirtualClock:
    """The loop's time; decisions take none."""

    def now_ns(self) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return loop.time_ns()

    elapsed_ns = now_ns


@asynccontextmanager
async def working(stream: SimulatedStream) -> AsyncIterator[None]:
    """Run a worker of all actors for the length of a block."""
    connection = SimulatedConnection(stream, "w")
    worker = Worker(
        SimulatedLog(connection),
        SimulatedSnapshots(connection),
        SimulatedMembership(connection),
        tuple(ACTORS.values()),
        name="w",
        clock=VirtualClock(),
        offload=inline,
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run(stop))
        await worker.ready.wait()
        yield
        stop.set()


async def submit_all(edge: Client, inputs: Sequence[WrappedEvent]) -> list[int | BaseException]:
    return await asyncio.gather(*map(edge.submit, inputs), return_exceptions=True)


async def one_exchange(log: SimulatedLog) -> None:
    """Ask what nobody will answer."""
    async with Client.open(log) as edge:
        await edge.submit(asking(exchange="first"))
        await edge.await_end("first", 1_000)
