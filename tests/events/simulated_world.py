"""Small simulated worlds for tests of the simulated log."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.asynchronous import run_by
from tests.simulated import CALM, Faults, SimulatedConnection, SimulatedLog, SimulatedStream
from tests.simulation.loop import VirtualLoop, run_virtual


def in_world(
    body: Callable[[SimulatedStream], Awaitable[object]], faults: Faults = CALM, seed: int = 0
) -> SimulatedStream:
    """Run a body in a world of its own and return the stream it leaves."""

    async def main() -> SimulatedStream:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        stream = SimulatedStream(clock=loop.time_ns, seed=seed, faults=faults)
        await body(stream)
        return stream

    return run_virtual(main(), seed)


world_test = run_by(in_world, "stream")
"""Runs a coroutine as a test: ``stream`` is that of a world of its own."""


def log_of(stream: SimulatedStream, dies_at: int | None = None) -> SimulatedLog:
    """Connect a worker and return its log."""
    return SimulatedLog(SimulatedConnection(stream, dies_at=dies_at))


def data_of(stream: SimulatedStream) -> list[bytes]:
    """Return the data of all that is stored, in order."""
    return [stored.data for stored in stream.store.messages]
