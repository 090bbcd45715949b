"""Snapshots of large states: the rarer the larger, and packed while others get their turn."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from actors.breaker import ACTOR
from actors.breaker.decider import BreakerState
from actors.breaker.machine import Machine
from actors.runtime.partition.snapshot_saver import BYTES_A_MESSAGE, SnapshotSaver
from events.partition_fold import Checkpoint, View
from events.snapshot import unpack
from schemas.persistent import ExpiringMap, Map
from schemas.subjects import Partitions

EVERY = 10


class Context:
    """What a saver uses of a worker's context; ``saved`` are the snapshots."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.tasks = tasks
        self.snapshot_every = EVERY
        self.snapshots, self.counters = self, SimpleNamespace(snapshots=0)
        self.saved: asyncio.Queue[bytes] = asyncio.Queue()

    async def save(self, key: str, data: bytes, upto: int) -> None:
        await self.saved.put(data)


def view_of(sessions: int) -> View:
    machines = Map({f"agent\nsession {number}": Machine() for number in range(sessions)})
    state = BreakerState(sessions=ExpiringMap(machines))
    return View(ACTOR, "00", Partitions(), Checkpoint(state, 7, 0, 1))


async def due_after(saver: SnapshotSaver, most: int) -> int:
    """Return after how many messages the next snapshot is due."""
    for count in range(1, most + 1):
        saver.count()
        saver.drain_if_due()
        if saver.draining:
            return count
    return most + 1


@pytest.mark.parametrize("sessions", [1, 3_000])
def test_the_larger_a_snapshot_was_the_more_messages_come_before_the_next(sessions: int) -> None:
    async def body() -> None:
        async with asyncio.TaskGroup() as tasks:
            context: Any = Context(tasks)
            saver = SnapshotSaver(ACTOR, "00", context)
            assert await due_after(saver, 1_000) == EVERY
            saver.take(view_of(sessions), lambda: None)
            due = max(EVERY, len(await context.saved.get()) // BYTES_A_MESSAGE)
            assert await due_after(saver, 10_000) == due
            assert (due > EVERY) is (sessions > 1)

    asyncio.run(body())


def test_a_large_state_is_packed_between_others_as_it_was_when_the_snapshot_was_due() -> None:
    async def body() -> None:
        turns = 0

        async def another() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as tasks:
            context: Any = Context(tasks)
            saver = SnapshotSaver(ACTOR, "00", context)
            view = view_of(3_000)
            state = view.state
            busy = asyncio.create_task(another())
            saver.take(view, lambda: None)
            view.state = BreakerState()
            found = unpack(ACTOR, "00", await context.saved.get())
            busy.cancel()
            assert turns > 15
            assert found is not None
            assert (found.state, found.position) == (state, 7)

    asyncio.run(body())
