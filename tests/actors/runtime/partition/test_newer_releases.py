"""A worker that reads back what a newer release has written leaves the partition to a worker of that release."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from actors.gateway import Client, new_input
from actors.registry import ACTORS
from actors.runtime.effectors.left_to_others import NEWER_S
from actors.runtime.membership.assignment import assign_partitions
from actors.runtime.membership.heartbeat import Heartbeat, heartbeat_of
from actors.runtime.worker import Worker
from events.errors import Misconfigured
from events.log import Append, Fence, Record
from events.routes import partition_names
from schemas.actor import Actor
from schemas.envelope import MESSAGE_ID
from schemas.subjects import Partitions
from tests.actors.runtime.virtual_set import simulated_worker, virtual_stream
from tests.simulated import SimulatedConnection, SimulatedLog, SimulatedMembership
from tests.simulated.stream import SimulatedStream
from tests.simulation.loop import run_virtual

REFLEX = ACTORS["reflex"]
DECIDING_OTHERWISE = replace(REFLEX, behaviour=REFLEX.behaviour + 1)
PARTITIONS = Partitions(agents=1, sessions=1)
NEWER = "newer"


async def decided_by_newer(stream: SimulatedStream, log: SimulatedLog) -> None:
    """Leave a log in which a reflex has decided an input that a newer release has decide otherwise."""
    await decided_by(DECIDING_OTHERWISE, stream, log)


async def decided_by(actor: Actor[Any], stream: SimulatedStream, log: SimulatedLog) -> None:
    connection, stop = SimulatedConnection(stream, "former"), asyncio.Event()
    worker = simulated_worker(connection, "former", [actor])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run(stop))
        await worker.ready.wait()
        async with Client.open(log) as edge:
            await edge.submit(new_input("Hello", agent="a", session="s", partitions=PARTITIONS, now_ns=1))
        while "reflex.passed" not in stream.store.messages[-1].subject:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        stop.set()


async def written_by_newer(stream: SimulatedStream, log: SimulatedLog) -> None:
    """Leave a log in which reflex has decided an input, and then another in words of a newer release."""
    await decided_by(REFLEX, stream, log)
    last = stream.store.messages[-1]
    headers = {**last.headers, "ce-id": "f" * 32, MESSAGE_ID: "f" * 32, "ce-dataversion": "2"}
    record = Record(last.subject, headers, last.data)
    await log.append([Append((record,), Fence("log.*.00.reflex.>", last.seq))])


Written = Callable[[SimulatedStream, SimulatedLog], Awaitable[None]]
by_newer = pytest.mark.parametrize("written", [written_by_newer, decided_by_newer])


def older(written: Written, body: Callable[[Worker, asyncio.Task[None], SimulatedStream], Awaitable[None]]) -> None:
    """Have a worker of this release begin on such a log."""

    async def main() -> None:
        stream = virtual_stream(PARTITIONS)
        await written(stream, SimulatedLog(SimulatedConnection(stream, "edge")))
        stream.snapshots.clear()
        connection, stop = SimulatedConnection(stream, "again"), asyncio.Event()
        worker = simulated_worker(connection, "again", [REFLEX])
        running = asyncio.create_task(worker.run(stop))
        try:
            await body(worker, running, stream)
        finally:
            stop.set()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    run_virtual(main(), 1)


@by_newer
def test_it_goes_on_beside_a_worker_of_the_newer_release(written: Written) -> None:
    async def body(worker: Worker, running: asyncio.Task[None], stream: SimulatedStream) -> None:
        membership = SimulatedMembership(SimulatedConnection(stream, NEWER))
        for _ in range(60):
            await membership.beat(NEWER, msgspec.json.encode(Heartbeat(actors=("reflex",))))
            await asyncio.sleep(1)
            assert not running.done(), running
        said = heartbeat_of(stream.members["again"][0])
        assert said is not None
        assert said.declines == ("reflex",)
        assert not said.serves.get("reflex")

    older(written, body)


@by_newer
def test_it_ends_and_says_why_if_there_is_none(written: Written) -> None:
    async def body(worker: Worker, running: asyncio.Task[None], stream: SimulatedStream) -> None:
        with pytest.raises(ExceptionGroup) as ended:
            async with asyncio.timeout(60):
                await running
        (wrong,) = ended.value.exceptions
        assert isinstance(wrong, Misconfigured)
        assert "release or a later one" in str(wrong)

    older(written, body)


def test_who_stands_by_leaves_the_actor_to_a_newer_release_that_decides_otherwise() -> None:
    """Its own code folds what the newer one leaves in the state: it would go on from another one."""
    names = (f"newer-{number}" for number in range(100))
    newer = next(name for name in names if leads(name, beside="older"))

    async def main() -> None:
        stream, stop = virtual_stream(PARTITIONS), asyncio.Event()
        workers = [
            simulated_worker(SimulatedConnection(stream, name), name, [actor])
            for name, actor in (("older", REFLEX), (newer, DECIDING_OTHERWISE))
        ]
        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker.run(stop))
                await worker.ready.wait()
            async with asyncio.timeout(60):
                while workers[0].heartbeat().declines != ("reflex",):  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.1)
            assert workers[1].heartbeat().declines == ()
            stop.set()

    run_virtual(main(), 1)


def leads(name: str, beside: str) -> bool:
    """Whether a worker leads reflex's one partition beside another."""
    assigned = assign_partitions(REFLEX, partition_names(REFLEX, PARTITIONS), sorted((name, beside)))
    return {each.leader for each in assigned.values()} == {name}


def test_a_message_of_a_newer_release_that_nobody_takes_ends_as_a_failure_though_nothing_else_comes() -> None:
    async def main() -> None:
        stream, stop = virtual_stream(PARTITIONS), asyncio.Event()
        worker = simulated_worker(SimulatedConnection(stream, "older"), "older", [REFLEX])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(stop))
            await worker.ready.wait()
            new = new_input("Hello", agent="a", session="s", partitions=PARTITIONS, now_ns=1)
            record = msgspec.structs.replace(new.record, headers={**new.record.headers, "ce-dataversion": "2"})
            await SimulatedLog(SimulatedConnection(stream, "edge")).append([Append((record,))])
            async with asyncio.timeout(NEWER_S + 5):
                while not stream.store.messages[-1].subject.endswith("reflex.failed"):  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.1)
            stop.set()

    run_virtual(main(), 1)
