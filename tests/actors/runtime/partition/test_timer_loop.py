"""When a partition's timer is looked at: as it becomes due and when the state changes, and never again and again."""

import asyncio

from actors.runtime.partition.timer_loop import TimerLoop
from schemas.actor import Emission, Timer
from schemas.vocabulary.clock import ClockFired
from tests.simulation.loop import run_virtual

DUE_NS = 5_000_000_000


class Partition:
    """A partition with one timer, whose backlog the test decides."""

    needs_proof = False

    def __init__(self, loop: asyncio.AbstractEventLoop, *, backlog: bool) -> None:
        self.has_no_backlog = not backlog
        self.looks = 0
        self.fired_ns: list[int] = []
        self._loop = loop
        self._begun = loop.time()

    def now_ns(self) -> int:
        return round((self._loop.time() - self._begun) * 1e9)

    def timer(self) -> Timer | None:
        self.looks += 1
        return (
            None
            if self.fired_ns
            else Timer(DUE_NS, "cause", Emission(ClockFired(set_by="input.received", due_ns=DUE_NS)))
        )

    async def prove(self) -> bool:
        raise AssertionError("no proof is needed")

    def fire(self, now_ns: int) -> None:
        self.fired_ns.append(now_ns)


def test_a_timer_fires_when_it_is_due() -> None:
    async def main() -> None:
        partition = Partition(asyncio.get_running_loop(), backlog=False)
        async with asyncio.TaskGroup() as tasks:
            timers = TimerLoop(partition)
            timers.start(tasks.create_task)
            await asyncio.sleep(20)
            timers.stop()
        assert [round(fired / 1e9, 2) for fired in partition.fired_ns] == [5.0]

    run_virtual(main())


def test_a_due_timer_that_waits_for_a_backlog_is_looked_at_only_when_something_changes() -> None:
    async def main() -> None:
        partition = Partition(asyncio.get_running_loop(), backlog=True)
        async with asyncio.TaskGroup() as tasks:
            timers = TimerLoop(partition)
            timers.start(tasks.create_task)
            await asyncio.sleep(20)
            assert partition.looks == 2, "at the start, and once it was due"
            for _ in range(3):
                timers.on_change()
                await asyncio.sleep(1)
            assert partition.looks == 5
            assert partition.fired_ns == []
            partition.has_no_backlog = True
            timers.on_change()
            await asyncio.sleep(1)
            timers.stop()
        assert len(partition.fired_ns) == 1

    run_virtual(main())
