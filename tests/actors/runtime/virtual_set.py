"""A set of workers on a simulated broker, in virtual time: how long something takes says nothing of the machine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from actors.gateway import Client, ExchangeEnd, new_input
from actors.registry import ACTORS
from actors.runtime.clock import Clock
from actors.runtime.worker import Worker
from events.decoding import Recorded, decode
from schemas.actor import Actor
from schemas.event import Event
from schemas.input_path import WITNESSES
from schemas.subjects import Partitions
from schemas.vocabulary.swarm import StageLost
from tests.judging import broken_promises
from tests.simulated import CALM, SimulatedConnection, SimulatedLog, SimulatedMembership, SimulatedSnapshots
from tests.simulated.stream import SimulatedStream
from tests.simulation.loop import VirtualLoop, run_virtual

PARTITIONS = Partitions(agents=1, sessions=2)
DEADLINE_S = 60.0
LEASE_S, GRACE_S, START_S = 3.0, 8.0, 15.0
SLACK_S = 2.0
"""Between two looks, and two heartbeats."""


class SlowClock:
    """A clock by which every decision takes so long: each reading moves it on by as much, beside virtual time."""

    def __init__(self, loop: VirtualLoop, took_ms: int) -> None:
        self._loop = loop
        self._worked_ns = 0
        self.took_ms = took_ms

    def now_ns(self) -> int:
        """Return virtual wall time."""
        return self._loop.time_ns()

    def elapsed_ns(self) -> int:
        """Return virtual time, and so much more with each call."""
        self._worked_ns += self.took_ms * 1_000_000
        return round(self._loop.time() * 1e9) + self._worked_ns


def virtual_stream(partitions: Partitions) -> SimulatedStream:
    """Return an empty stream in the virtual time of the loop that runs, on which nothing fails by itself."""
    return SimulatedStream(clock=_virtual_loop().time_ns, seed=1, faults=CALM, partitions=partitions)


def simulated_worker(
    connection: SimulatedConnection,
    name: str,
    actors: Sequence[Actor[Any]],
    *,
    log: SimulatedLog | None = None,
    snapshots: SimulatedSnapshots | None = None,
    clock: Clock | None = None,
    took_ms: int = 0,
    **options: Any,
) -> Worker:
    """Return a worker on a simulated broker; without ``clock`` each of its decisions takes ``took_ms``."""
    return Worker(
        log or SimulatedLog(connection),
        snapshots or SimulatedSnapshots(connection),
        SimulatedMembership(connection),
        actors,
        name=name,
        clock=clock or SlowClock(_virtual_loop(), took_ms),
        **options,
    )


def _virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


class Set:
    """Workers on a simulated broker."""

    def __init__(self, stream: SimulatedStream, clock: SlowClock) -> None:
        self.stream = stream
        self.clock = clock
        self.log = SimulatedLog(SimulatedConnection(stream, "edge"))
        self.exchanges: list[str] = []

    @contextlib.asynccontextmanager
    async def worker(self, name: str, actors: Sequence[str]) -> AsyncIterator[tuple[Worker, SimulatedConnection]]:
        """Run a worker for the length of a block, and have it hand over at the end."""
        connection, stop = SimulatedConnection(self.stream, name), asyncio.Event()
        worker = self.made(connection, name, actors)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(stop))
            await worker.ready.wait()
            try:
                yield worker, connection
            finally:
                stop.set()

    def made(self, connection: SimulatedConnection, name: str, actors: Sequence[str]) -> Worker:
        """Return a worker that stands in for the witnesses among the actors that it does not host."""
        return simulated_worker(
            connection,
            name,
            [ACTORS[actor] for actor in actors],
            clock=self.clock,
            stands_in=[ACTORS[witness] for witness in WITNESSES if witness not in actors],
        )

    async def ask(self, session: str = "s", text: str = "What is the capital of Peru?") -> tuple[ExchangeEnd, float]:
        """Send an input; return its end, and the virtual seconds that it took."""
        loop = asyncio.get_running_loop()
        async with Client.open(self.log) as edge:
            addressed = new_input(
                text,
                agent="a",
                session=session,
                partitions=PARTITIONS,
                now_ns=self.clock.now_ns(),
                exchange=f"{len(self.exchanges):032x}",
            )
            self.exchanges.append(addressed.exchange)
            began = loop.time()
            await edge.submit(addressed)
            return await edge.await_end(addressed.exchange, 2 * DEADLINE_S), loop.time() - began

    def recorded(self, *kinds: type[Event]) -> list[Any]:
        """Return the events of some kinds, in order; a kind stands for what derives from it, too."""
        found = (decode(stored) for stored in self.stream.store.messages)
        return [
            each.message.event for each in found if isinstance(each, Recorded) and isinstance(each.message.event, kinds)
        ]


def lived(body: Callable[[Set], Awaitable[None]], *, took_ms: int = 0) -> Set:
    """Let a body live in a world in which nothing fails by itself, and judge the log that it leaves."""

    async def main() -> Set:
        running = Set(virtual_stream(PARTITIONS), SlowClock(_virtual_loop(), took_ms))
        await body(running)
        return running

    running = run_virtual(main(), 1)
    broken = broken_promises(list(ACTORS.values()), running.stream.store.messages, running.exchanges, PARTITIONS)
    assert [each for each in broken if "undecided" not in each and "leaks" not in each] == []
    return running


def without(*actors: str) -> tuple[str, ...]:
    return tuple(name for name in ACTORS if name not in actors)


def lost(running: Set) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(event.actor, event.reason, event.partitions) for event in running.recorded(StageLost)]
