"""A partition that loses its lead begins again from what it has in memory, not from its snapshot."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from actors.gateway import Client, new_input
from actors.registry import ACTORS
from actors.runtime.context import Role
from actors.runtime.partition.shard import Shard
from events.log import Stored
from schemas.persistent import state_hash
from schemas.subjects import Partitions
from tests.actors.runtime.virtual_set import simulated_worker, virtual_stream
from tests.each import each
from tests.judging import broken_promises, replayed
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedSnapshots
from tests.simulation.loop import run_virtual

REFLEX = ACTORS["reflex"]
PARTITIONS = Partitions(agents=1, sessions=1)
INPUTS = 20


class CountedSnapshots(SimulatedSnapshots):
    """Snapshots that count how often they are asked for."""

    loads = 0

    async def load(self, key: str, at_least: int = 0) -> bytes | None:
        self.loads += 1
        return await super().load(key, at_least)


class NotedLog(SimulatedLog):
    """A log that notes after which sequence it is read back."""

    def __init__(self, connection: SimulatedConnection) -> None:
        super().__init__(connection)
        self.begun: list[int] = []

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        self.begun.append(after)
        async for batch in super().history(filters, after, upto):
            yield batch


async def submit(log: SimulatedLog, count: int) -> list[str]:
    sent = []
    async with Client.open(log) as edge:
        for number in range(count):
            one = new_input("Hello", agent="a", session=f"s-{number}", partitions=PARTITIONS, now_ns=1)
            await edge.submit(one)
            sent.append(one.exchange)
    return sent


async def settled(shard: Shard, last: int) -> None:
    async with asyncio.timeout(60):
        while shard.role is not Role.LEADING or shard.outbox or shard.view.position < last:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.01)


@each("in_flight", [True, False], named=["with an append in flight", "with none"])
def test_it_reads_back_only_what_is_not_acknowledged(in_flight: bool) -> None:
    async def main() -> None:
        stream = virtual_stream(PARTITIONS)
        edge = SimulatedLog(SimulatedConnection(stream, "edge"))
        connection, stop = SimulatedConnection(stream, "worker"), asyncio.Event()
        log, snapshots = NotedLog(connection), CountedSnapshots(connection)
        worker = simulated_worker(connection, "worker", [REFLEX], log=log, snapshots=snapshots)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(stop))
            await worker.ready.wait()
            shard = worker.shards["reflex", "00"]
            sent = await submit(edge, INPUTS)
            inputs = [stored.seq for stored in stream.store.messages if "input" in stored.subject]
            await settled(shard, inputs[-1])
            loads, reads = snapshots.loads, len(log.begun)
            if in_flight:
                more = tasks.create_task(submit(edge, 1))
                while not shard.outbox:  # noqa: ASYNC110 - the worker's own tasks run meanwhile
                    await asyncio.sleep(0)
                shard.reset("unknown_outcome")
                sent += await more
            else:
                shard.reset("foreign_event")
            await settled(shard, inputs[-1] + 2 * in_flight)
            assert snapshots.loads == loads
            assert log.begun[reads] >= inputs[-1], "it begins with the last that it had acknowledged"
            _, report = replayed([REFLEX], stream.store.messages, PARTITIONS)
            assert state_hash(shard.view.state) == report.state_hashes["reflex/00"]
            assert [
                found
                for found in broken_promises([REFLEX], stream.store.messages, sent, PARTITIONS)
                if "0 ends" not in found
            ] == []
            stop.set()

    run_virtual(main(), 1)
