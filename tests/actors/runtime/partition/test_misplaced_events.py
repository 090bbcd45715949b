"""A snapshot of a leader that was further on than its successor: the successor's first event belongs before it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from actors.gateway import Client, new_input
from actors.registry import ACTORS
from actors.runtime.context import STANDBY_BACKLOG, Role
from actors.runtime.membership.assignment import assign_partitions
from actors.runtime.partition.shard import Shard
from actors.swarm.settings import SwarmSettings
from events.snapshot import unpack
from schemas.availability import Availability, Overrun
from schemas.persistent import state_hash
from schemas.vocabulary.swarm import SwarmConfigured
from tests.actors.runtime.virtual_set import PARTITIONS, Set, simulated_worker, virtual_stream
from tests.judging import replayed
from tests.simulated import SimulatedConnection, SimulatedLog
from tests.simulated.stream import SimulatedStream
from tests.simulation.loop import run_virtual

SWARM = ACTORS["swarm"]
OTHER = SwarmSettings(window_ms=2 * SwarmSettings().window_ms)
INPUTS = 5
FEW = 10
TOO_SLOW = Availability(
    partitions=PARTITIONS,
    absent=(),
    overran={"reflex": Overrun(budget_ms=10.0, count=3, worst_ms=20.0)},
    quiet_ms={},
    window_ms=10_000,
    watched_ms=60_000,
)


class Running:
    """A worker of the swarm alone."""

    def __init__(self, stream: SimulatedStream, name: str, settings: SwarmSettings, backlog: int) -> None:
        self.connection = SimulatedConnection(stream, name)
        self.stop = asyncio.Event()
        self.worker = simulated_worker(
            self.connection, name, [SWARM], settings={"swarm": settings}, standby_backlog=backlog
        )
        self.task = asyncio.create_task(self.worker.run(self.stop))

    @property
    def shard(self) -> Shard | None:
        return self.worker.shards.get(("swarm", "all"))

    def is_(self, role: Role) -> bool:
        return self.shard is not None and self.shard.role is role

    @property
    def led(self) -> Shard:
        assert self.shard is not None
        return self.shard

    async def handed_over(self) -> None:
        self.stop.set()
        await self.task

    async def killed(self) -> None:
        self.connection.kill()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@contextlib.asynccontextmanager
async def running(
    stream: SimulatedStream, name: str, settings: SwarmSettings, backlog: int = STANDBY_BACKLOG
) -> AsyncIterator[Running]:
    worker = Running(stream, name, settings, backlog)
    try:
        yield worker
    finally:
        await worker.killed()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)


def calm_stream() -> tuple[SimulatedStream, SimulatedLog]:
    """Return a broker at which nothing fails, and a log to send inputs by."""
    stream = virtual_stream(PARTITIONS)
    return stream, SimulatedLog(SimulatedConnection(stream, "edge"))


async def submit(log: SimulatedLog, count: int) -> None:
    """Send that many inputs, each of a session of its own."""
    async with Client.open(log) as edge:
        for number in range(count):
            await edge.submit(new_input("Hello", agent="a", session=f"s-{number}", partitions=PARTITIONS, now_ns=1))


def first_then_second() -> tuple[str, str]:
    """Return two names of which the first leads the swarm while both live."""
    first, second = "first", "second"
    leader = assign_partitions(SWARM, ["all"], sorted((first, second)))["all"].leader
    return (first, second) if leader == first else (second, first)


def state_hash_by_replay(stream: SimulatedStream) -> str:
    """Return the hash of the state that a replay of the whole log gives."""
    _, report = replayed([SWARM], stream.store.messages, PARTITIONS)
    return report.state_hashes["swarm/all"]


def test_a_snapshot_behind_the_place_of_a_later_event_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        stream, log = calm_stream()
        old, new = first_then_second()
        async with running(stream, old, SwarmSettings()) as one:
            await until(lambda: one.is_(Role.LEADING))
            async with running(stream, new, OTHER) as two:
                await until(lambda: two.is_(Role.STANDBY))
                monkeypatch.setattr(two.led._snapshots, "renew", lambda seq: None)  # it is killed before
                await submit(log, INPUTS)
                await until(lambda: one.shard is not None and len(one.shard.view.state.pending) == INPUTS)
                assert two.shard is not None
                assert two.shard.view.position < stream.store.messages[-1].seq, "it folds up to an event of the leader"
                await one.handed_over()
                await until(lambda: len(Set(stream, two.worker._clock).recorded(SwarmConfigured)) == 2)  # type: ignore[arg-type]
        async with running(stream, "third", OTHER) as three:
            await until(lambda: three.is_(Role.LEADING) and not three.shard.view.waiting)
            found = state_hash(three.shard.view.state)
        assert found == state_hash_by_replay(stream)

    run_virtual(main(), 1)


def test_a_leader_whose_first_event_belongs_before_a_snapshot_soon_takes_another() -> None:
    async def main() -> None:
        stream, log = calm_stream()
        old, new = first_then_second()
        async with running(stream, old, SwarmSettings()) as one:
            await until(lambda: one.is_(Role.LEADING))
            async with running(stream, new, OTHER) as two:
                await until(lambda: two.is_(Role.STANDBY))
                await submit(log, INPUTS)
                await one.handed_over()
                await until(lambda: two.is_(Role.LEADING) and two.worker.counters.snapshots == 1)
        (data,) = {versions[-1] for versions in stream.snapshots.values()}
        found = unpack(SWARM, "all", data)
        assert found is not None
        assert isinstance(found.configured, SwarmConfigured)
        assert found.configured.settings["window_ms"] == OTHER.window_ms

    run_virtual(main(), 1)


def test_a_standby_keeps_few_messages_waiting_of_an_actor_that_rarely_writes() -> None:
    async def main() -> None:
        stream, log = calm_stream()
        leader, standby = first_then_second()
        async with (
            running(stream, leader, SwarmSettings()) as one,
            running(stream, standby, SwarmSettings(), FEW) as two,
        ):
            await until(lambda: one.is_(Role.LEADING) and two.is_(Role.STANDBY))
            async with Client.open(log) as edge:
                for number in range(10 * FEW):
                    await edge.submit(
                        new_input("Hello", agent="a", session=f"s-{number}", partitions=PARTITIONS, now_ns=1)
                    )
                    assert len(two.led.view.waiting) <= FEW + 1
            await until(lambda: len(one.led.view.state.pending) == 10 * FEW)
            assert two.led.view.position > 0
            await one.killed()
            await until(lambda: two.is_(Role.LEADING) and not two.led.view.waiting)
            found = state_hash(two.led.view.state)
        assert found == state_hash_by_replay(stream)
        assert two.worker.counters.conflicts == 0

    run_virtual(main(), 1)


def test_an_event_that_belongs_before_what_a_standby_folded_makes_it_fold_the_log_again() -> None:
    async def main() -> None:
        stream, log = calm_stream()
        leader, standby = first_then_second()
        async with (
            running(stream, leader, SwarmSettings()) as one,
            running(stream, standby, SwarmSettings(), FEW) as two,
        ):
            await until(lambda: one.is_(Role.LEADING) and two.is_(Role.STANDBY))
            one.led.on_message = lambda delivery, own: None  # type: ignore[method-assign]  # it is far behind
            await submit(log, 3 * FEW)
            await until(lambda: two.led.view.position > one.led.view.position)
            assert one.led.record_availability(TOO_SLOW)
            await until(lambda: two.worker.counters.conflicts == 1 and two.is_(Role.STANDBY))
            await one.killed()
            await until(lambda: two.is_(Role.LEADING) and not two.led.view.waiting and not two.led.outbox)
            found = state_hash(two.led.view.state)
        assert found == state_hash_by_replay(stream)

    run_virtual(main(), 1)


def test_a_former_leader_that_stands_by_folds_the_log_again_for_an_event_before_what_it_decided() -> None:
    async def main() -> None:
        stream, log = calm_stream()
        old, new = first_then_second()
        async with running(stream, old, SwarmSettings()) as one, running(stream, new, OTHER) as two:
            await until(lambda: one.is_(Role.LEADING) and two.is_(Role.STANDBY))
            await submit(log, INPUTS)
            await until(lambda: len(one.led.view.state.pending) == INPUTS)
            assert two.led.view.position < one.led.view.position
            one.led.set_leading(False)
            two.led.set_leading(True)
            await until(lambda: len(Set(stream, two.worker._clock).recorded(SwarmConfigured)) >= 2)  # type: ignore[arg-type]
            await until(lambda: one.worker.counters.conflicts == 1)
            await two.killed()
            await until(lambda: one.is_(Role.LEADING) and not one.led.view.waiting and not one.led.outbox)
            found = state_hash(one.led.view.state)
        assert found == state_hash_by_replay(stream)

    run_virtual(main(), 1)
