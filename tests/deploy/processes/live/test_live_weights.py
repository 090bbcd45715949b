"""Weights moved while workers run: routers take them up without a restart, and a replay agrees."""

import asyncio
import time
from pathlib import Path
from typing import TypeVar

from actors.gateway import new_input
from actors.registry import actor_named
from actors.runtime.envelopes import to_record
from deploy.processes.supervising.lifeline import READY
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Append, Stored
from events.make_decision import Cause, address_events
from events.replay.replay import Replay
from schemas.event import Event
from schemas.subjects import Partitions
from schemas.vocabulary.memory import COLD, MemoryRecalled
from schemas.vocabulary.regulator import Adjusted
from schemas.vocabulary.router import ModeSelected
from tests.broker import Broker
from tests.deploy.processes.test_worker import worker

QUICK = (
    *("--set", "regulator.period_ms=1500"),
    *("--set", "regulator.window_ms=600000"),
    *("--set", "regulator.judge_after_ms=1200000"),
)
SESSIONS = ("one", "two", "three", "four")
DEADLINE_S = 60.0
HOSTED = ("clock", "regulator", "router")

T = TypeVar("T", bound=Event)


async def everything(log: JetStreamLog) -> list[Stored]:
    return [stored async for batch in log.history(["log.>"], 0, (await log.info()).last_seq) for stored in batch]


async def found(log: JetStreamLog, kind: type[T], least: int) -> list[T]:
    """Wait until so many events of a kind are on record, and return them."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        recorded = [decode(stored) for stored in await everything(log)]
        events = [each.message.event for each in recorded if isinstance(each, Recorded)]
        matching = [event for event in events if isinstance(event, kind)]
        if len(matching) >= least:
            return matching
        await asyncio.sleep(0.05)
    raise TimeoutError(f"fewer than {least} {kind.__name__} within {DEADLINE_S:g} s")


async def say(log: JetStreamLog, text: str, session: str) -> None:
    """Store an input and memory's word on it, so that a router decides."""
    sent = new_input(text, agent="a", session=session, partitions=log.partitions, now_ns=time.time_ns())
    seq = await log.append([Append([sent.record])])
    tokens = log.partitions.agent_token("a"), log.partitions.session_token(session)
    cause = Cause(sent.exchange, seq, time.time_ns(), "a", session, sent.exchange, *tokens)
    [word] = address_events("memory", cause, [MemoryRecalled(familiarity=COLD, recollections=())], log.partitions)
    await log.append([Append([to_record(word, "test", "test", time.time_ns(), 0)])])


def test_a_running_router_takes_up_a_weight_without_a_restart_and_replays_the_same(
    broker: Broker, tmp_path: Path
) -> None:
    async def scenario() -> list[Stored]:
        log = await JetStreamLog.connect(broker.url)
        try:
            for number in range(12):
                await say(log, f"The boiler in cellar {number} makes a noise again", SESSIONS[number % len(SESSIONS)])
            [adjusted, *_] = await found(log, Adjusted, 1)
            decided = len(await found(log, ModeSelected, 12))
            for session in SESSIONS:
                await say(log, "And one thing more", session)
            later = (await found(log, ModeSelected, decided + len(SESSIONS)))[decided:]
            assert {each.weights[adjusted.parameter] for each in later} == {adjusted.after}
            assert adjusted.after != adjusted.before
            return await everything(log)
        finally:
            await log.close()

    with worker(broker, tmp_path, *HOSTED, *QUICK) as (_, line):
        assert line.recv(64) == READY
        history = asyncio.run(scenario())
    replay = Replay([actor_named(name) for name in HOSTED], Partitions(), verify=True)
    for stored in history:
        replay.feed(stored)
    report = replay.finish()
    assert report.clean
    assert report.coverage["router"].different == 0
    assert report.coverage["regulator"].different == 0
