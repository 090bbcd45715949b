"""What workers notice of stages that fall silent, and what they must not take for it; in virtual time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from io import StringIO
from typing import Any

import msgspec
import pytest
from rich.console import Console

from actors.gateway import Answered, Client, new_input
from actors.registry import ACTORS
from actors.runtime.partition.shard import Shard
from actors.runtime.worker import Worker
from deploy.cli.rendering.why import render
from events.codec import Recorded, decode
from events.replay.explain import explain
from schemas.event import Event
from schemas.subjects import Partitions
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.swarm import OverBudget, StageFound, StageLost, SwarmMeasured, WithinBudget
from tests.actors.runtime.waiting import until
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
    """A clock by which every decision takes so long: what is measured moves on by as much each time it is read."""

    def __init__(self, loop: VirtualLoop, took_ms: int) -> None:
        self._loop = loop
        self._elapsed = 0
        self.took_ms = took_ms

    def now_ns(self) -> int:
        """Return virtual wall time."""
        return self._loop.time_ns()

    def elapsed_ns(self) -> int:
        """Return so much more than the last time."""
        self._elapsed += self.took_ms * 1_000_000
        return self._elapsed


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
        worker = Worker(
            SimulatedLog(connection),
            SimulatedSnapshots(connection),
            SimulatedMembership(connection),
            [ACTORS[actor] for actor in actors],
            name=name,
            clock=self.clock,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(stop))
            await worker.ready.wait()
            try:
                yield worker, connection
            finally:
                stop.set()

    async def ask(self, session: str = "s") -> tuple[Answered, float]:
        """Send an input; return its end, and the virtual seconds that it took."""
        loop = asyncio.get_running_loop()
        async with Client.open(self.log) as edge:
            addressed = new_input(
                "What is the capital of Peru?",
                agent="a",
                session=session,
                partitions=PARTITIONS,
                now_ns=self.clock.now_ns(),
                exchange=f"{len(self.exchanges):032x}",
            )
            self.exchanges.append(addressed.exchange)
            began = loop.time()
            await edge.submit(addressed)
            return await edge.answer(addressed.exchange, 2 * DEADLINE_S), loop.time() - began

    def recorded(self, *kinds: type[Event]) -> list[Any]:
        """Return the events of some kinds, in order; a kind stands for what derives from it, too."""
        found = (decode(stored) for stored in self.stream.store.messages)
        return [
            each.message.event for each in found if isinstance(each, Recorded) and isinstance(each.message.event, kinds)
        ]


def lived(body: Callable[[Set], Awaitable[None]], *, took_ms: int = 0) -> Set:
    """Let a body live in a world in which nothing fails by itself, and judge the log that it leaves."""

    async def main() -> Set:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        stream = SimulatedStream(clock=loop.time_ns, seed=1, faults=CALM, partitions=PARTITIONS)
        running = Set(stream, SlowClock(loop, took_ms))
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


@pytest.mark.parametrize(
    ("guard", "stage"),
    [
        ("reflex", "REFLEX"),
        ("intuition", "INTUITION"),
        ("appraisal", "COHERENCE"),
        ("coherence", "COHERENCE"),
        ("breaker", "BREAKER"),
        ("arbiter", "ARBITER"),
        ("memory", "DELIBERATIVE"),
        ("router", "DELIBERATIVE"),
    ],
)
def test_an_input_that_waits_for_a_guard_nobody_runs_fails_as_soon_as_that_is_certain(guard: str, stage: str) -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without(guard)):
            first, took = await running.ask()
            assert (first.event.stage, first.event.action) == (stage, "FAILED")
            if stage == "DELIBERATIVE":
                assert first.event.reason == "deliberation_deadline", "five seconds, without a model"
            else:
                assert first.event.reason == f"no_owner: {guard}"
                assert START_S - SLACK_S < took < START_S + SLACK_S
            await until(lambda: bool(lost(running)), "certainty")
            second, took = await running.ask()
            assert (second.event.stage, second.event.reason) == (stage, f"no_owner: {guard}")
            assert took < 1.0, "certain already"
            measured = running.recorded(SwarmMeasured)[-1]
            assert measured.sci < 0.70
            async with running.worker("guard", (guard,)):
                await until(lambda: bool(running.recorded(StageFound)), "the stage to be found")
                answered, _ = await running.ask()
                assert answered.event.action == "EXECUTED"

    running = lived(body)
    assert {actor for actor, *_ in lost(running)} == {guard}
    told = [alert.status for alert in running.recorded(Alert) if alert.event == "forged_id.swarm.stage_lost"]
    assert told == ["firing", "resolved"]
    assert running.recorded(SwarmMeasured)[-1].healthy


def test_a_worker_that_is_killed_is_missed_after_its_lease_and_the_grace() -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("arbiter")):
            with contextlib.suppress(BaseException):
                async with running.worker("guard", ("arbiter",)) as (_, connection):
                    await asyncio.sleep(20)
                    connection.kill()
            end, took = await running.ask()
            assert end.event.reason == "no_owner: arbiter"
            assert took < LEASE_S + GRACE_S + SLACK_S

    lived(body)


def test_a_worker_that_is_stopped_as_by_a_signal_is_missed_and_found_when_it_goes_on() -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("arbiter")), running.worker("guard", ("arbiter",)) as (_, frozen):
            await asyncio.sleep(20)
            frozen.freeze(30.0)
            end, took = await running.ask()
            assert end.event.reason == "no_owner: arbiter"
            assert took < LEASE_S + GRACE_S + SLACK_S
            await until(lambda: bool(running.recorded(StageFound)), "the stage to be found")
            answered, _ = await running.ask()
            assert answered.event.action == "EXECUTED"

    lived(body)


def test_a_partition_that_is_led_and_does_not_advance_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    work, stuck = Shard.work, ("arbiter", "00")

    def idle(shard: Shard) -> None:
        if (shard.actor.name, shard.partition) != stuck:
            work(shard)

    async def body(running: Set) -> None:
        sessions = {PARTITIONS.session_token(name): name for name in map(str, range(9))}
        async with running.worker("all", tuple(ACTORS)):
            monkeypatch.setattr(Shard, "work", idle)
            (end, took), (other, _) = await asyncio.gather(running.ask(sessions["00"]), running.ask(sessions["01"]))
            assert end.event.reason == "stalled: arbiter"
            assert took < DEADLINE_S / 2
            assert other.event.action == "EXECUTED"
            monkeypatch.setattr(Shard, "work", work)

    assert set(lost(lived(body))) == {("arbiter", "stalled", ("00",))}


@pytest.mark.parametrize("what", ["one worker after the other", "all workers", "the guard's worker, soon back"])
def test_a_restart_is_no_loss(what: str) -> None:
    async def body(running: Set) -> None:
        async with running.worker("a", without("arbiter")):
            async with running.worker("b", tuple(ACTORS)):
                await asyncio.sleep(20)
            if what == "one worker after the other":
                async with running.worker("c", tuple(ACTORS)):
                    await asyncio.sleep(20)
                return
            if what == "the guard's worker, soon back":
                await asyncio.sleep(5)
                async with running.worker("d", ("arbiter",)):
                    await asyncio.sleep(20)
                return
        await asyncio.sleep(30)
        async with running.worker("e", tuple(ACTORS)):
            end, _ = await running.ask()
            assert end.event.action == "EXECUTED"

    assert lost(lived(body)) == []


def test_an_outage_of_the_broker_is_no_loss() -> None:
    async def body(running: Set) -> None:
        async with running.worker("a", without("arbiter")), running.worker("b", ("arbiter",)):
            await asyncio.sleep(20)
            running.stream.stop()
            await asyncio.sleep(40)
            running.stream.start()
            end, _ = await running.ask()
            assert end.event.action == "EXECUTED"
            await asyncio.sleep(20)

    assert lost(lived(body)) == []


def test_decisions_over_their_budget_are_facts_in_the_log_that_alert_and_end() -> None:
    async def body(running: Set) -> None:
        async with running.worker("all", tuple(ACTORS)):
            for number in range(3):
                await running.ask(f"s-{number}")
            running.clock.took_ms = 0
            while not running.recorded(WithinBudget):
                await asyncio.sleep(1)
                assert len(running.recorded(OverBudget)) <= 8, "at most one an actor and window"

    running = lived(body, took_ms=25)
    over = {event.actor: event for event in running.recorded(OverBudget)}
    assert (over["reflex"].count, over["reflex"].budget_ms, over["reflex"].worst_ms) == (3, 10.0, 25.0)
    assert "coherence" not in over, "its budget is 30 ms"
    told = [alert.status for alert in running.recorded(Alert) if alert.event == "forged_id.swarm.over_budget"]
    assert told.count("firing") == len(over)
    assert "resolved" in told


def test_why_tells_which_stage_an_exchange_waited_for_and_from_where() -> None:
    async def body(running: Set) -> None:
        async with running.worker("others", without("arbiter")):
            await running.ask()  # waits until it is certain
            await running.ask()  # ends as soon as the arbiter has the next word

    running = lived(body)
    for exchange in running.exchanges:
        explanation = explain(
            stored for stored in running.stream.store.messages if stored.headers.get("ce-exchange") == exchange
        )
        assert explanation is not None
        assert explanation.complete, "from the end back to the input"
        assert explanation.absent["arbiter"] == (
            "the exchange ended first: nobody served arbiter, which had the next word"
        )


def test_why_marks_a_decision_that_took_longer_than_its_budget() -> None:
    async def body(running: Set) -> None:
        async with running.worker("all", tuple(ACTORS)):
            await running.ask()

    running = lived(body, took_ms=25)
    own = [each for each in running.stream.store.messages if each.headers.get("ce-exchange") in running.exchanges]
    # In virtual time everything happens at once, and there would be nothing to show of where the time went.
    explanation = explain(
        msgspec.structs.replace(stored, time_ns=stored.time_ns + 1_000_000 * number)
        for number, stored in enumerate(own)
    )
    assert explanation is not None
    console = Console(width=200, file=StringIO())
    console.print(render(explanation))
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert any(line.startswith("reflex.passed") and "over 10: 25.000" in line for line in lines)
    assert any(line.startswith("coherence.passed") and "over" not in line for line in lines)
