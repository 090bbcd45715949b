"""Measured overruns of a stage's latency budget are counted and told, and change no decision."""

import asyncio
from typing import Any

from structlog.testing import capture_logs

from actors.reflex import ACTOR
from actors.reflex.settings import ReflexSettings
from actors.runtime.budget import Budget
from actors.runtime.worker import Worker
from events.log import Append, Record
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.subjects import Partitions, stored_subject
from schemas.vocabulary.gateway import InputReceived
from tests.actors.runtime.virtual_set import simulated_worker, virtual_stream
from tests.each import each
from tests.simulated import SimulatedConnection, SimulatedLog
from tests.simulation.loop import inline, run_virtual

PARTITIONS = Partitions(agents=1, sessions=1)
INPUTS = 5
DECISION_MS = 11


def asked(number: int) -> Record:
    event = InputReceived(text="Hello there")
    topic = topic_of(event)
    envelope = Envelope(
        id=f"in-{number}", topic=topic, source="edge", time="", agent="a", session="s", exchange=f"{number:032x}"
    )
    return Record(stored_subject(topic, "00", "00"), encode_headers(envelope), encode_event(event))


def worked(settings: ReflexSettings) -> tuple[Worker, int, list[Any]]:
    """Let a worker decide five inputs; return it, how many messages its stream holds, and what was warned of."""

    async def live() -> tuple[Worker, int]:
        stream = virtual_stream(PARTITIONS)
        connection = SimulatedConnection(stream, "w")
        worker = simulated_worker(
            connection, "w", [ACTOR], settings={"reflex": settings}, took_ms=DECISION_MS, offload=inline
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(stop))
            await worker.ready.wait()
            log = SimulatedLog(SimulatedConnection(stream, "edge"))
            for number in range(INPUTS):
                await log.append([Append([asked(number)])])
            for _ in range(600):
                if len(stream.store.messages) > 2 * INPUTS:
                    break
                await asyncio.sleep(0.1)
            stop.set()
        return worker, len(stream.store.messages)

    with capture_logs() as logs:
        worker, stored = run_virtual(live(), 1)
    return worker, stored, [entry for entry in logs if entry["event"] == "over_budget"]


def test_decisions_over_budget_are_counted_and_told_once_in_a_while():
    worker, stored, warned = worked(ReflexSettings(latency_budget_ms=10.0))
    assert worker.counters.over_budget == INPUTS
    assert [shard.budget.over for shard in worker.shards.values()] == [INPUTS]
    (warning,) = warned
    assert (warning["actor"], warning["log_level"]) == ("reflex", "warning")
    assert (warning["took_ms"], warning["budget_ms"]) == (11.0, 10.0)
    assert warning["exchange"], "a line about an exchange names it"
    assert worker.measurements.by_actor["reflex"].decisions.above(0.01) == INPUTS
    assert stored == 2 * INPUTS + 1, "an overrun is told, and every decision stands"


@each("budget_ms", [11.0, 20.0])
def test_decisions_within_their_budget_are_not(budget_ms: float):
    worker, _, warned = worked(ReflexSettings(latency_budget_ms=budget_ms))
    assert worker.counters.over_budget == 0
    assert warned == []


def test_an_actor_that_is_always_late_is_warned_of_every_ten_seconds():
    budget = Budget("reflex", "07", {"latency_budget_ms": 1.0})
    with capture_logs() as logs:
        for second in range(25):
            assert budget.observe(1_000_001, second * 1_000_000_000, second)
    assert [(entry["seq"], entry["over_budget"]) for entry in logs] == [(0, 1), (10, 11), (20, 21)]


def test_settings_without_a_budget_have_none():
    assert not Budget("clock", "all", {}).observe(10**12, 0, 1)
