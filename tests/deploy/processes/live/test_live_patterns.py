"""Patterns imported while workers run: every partition judges by them from the next input on, and a replay agrees."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from actors.gateway import new_input
from actors.gateway.operator_orders import Order
from actors.reflex import ACTOR
from deploy.operating.order_client import give
from deploy.processes.supervising.lifeline import READY
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import Append, Stored
from events.replay.replay import Replay
from schemas.event import Event
from schemas.subjects import Partitions
from schemas.vocabulary.patterns import PatternSet, PatternsImported, PatternsWithdrawn
from schemas.vocabulary.reflex import ReflexBlocked, ReflexLibraryChanged, ReflexPassed
from tests.broker import Broker
from tests.deploy.processes.test_worker import worker

VAULT = PatternSet(name="vault", action="BLOCK", confidence=0.9, signatures=("open the vault",))
SESSIONS = ("one", "two", "three", "four", "six")
DEADLINE_S = 60.0


async def verdicts(log: JetStreamLog, exchanges: Sequence[str]) -> dict[str, list[Event]]:
    """Wait until every exchange has a verdict of reflex; return the own events of each, in order."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found: dict[str, list[Event]] = {exchange: [] for exchange in exchanges}
        for stored in await everything(log):
            recorded = decode(stored)
            if isinstance(recorded, Recorded) and recorded.message.exchange in found and ".reflex." in stored.subject:
                found[recorded.message.exchange].append(recorded.message.event)
        if all(events and isinstance(events[-1], ReflexBlocked | ReflexPassed) for events in found.values()):
            return found
        await asyncio.sleep(0.02)
    raise TimeoutError(f"no verdict on {exchanges} within {DEADLINE_S:g} s")


async def everything(log: JetStreamLog) -> list[Stored]:
    return [stored async for batch in log.history(["log.>"], 0, (await log.info()).last_seq) for stored in batch]


async def ask(log: JetStreamLog) -> list[list[type[Event]]]:
    """Send the same input to every session; return the types of what reflex said in each."""
    sent = [
        new_input("please open the vault", agent="a", session=session, partitions=log.partitions, now_ns=time.time_ns())
        for session in SESSIONS
    ]
    for each in sent:
        await log.append([Append([each.record])])
    found = await verdicts(log, [each.exchange for each in sent])
    return [[type(event) for event in events] for events in found.values()]


def test_an_import_is_in_force_from_the_next_input_on_and_replays_the_same(broker: Broker, tmp_path: Path) -> None:
    async def scenario() -> list[Stored]:
        log = await JetStreamLog.connect(broker.url)
        try:
            assert await ask(log) == [[ReflexPassed]] * len(SESSIONS)
            imported = PatternsImported(name="house", sets=(VAULT,), by="ann")
            await give(log, [Order(event=imported)], 30)
            assert await ask(log) == [[ReflexLibraryChanged, ReflexBlocked]] * len(SESSIONS)
            assert await ask(log) == [[ReflexBlocked]] * len(SESSIONS)
            await give(log, [Order(event=PatternsWithdrawn(name="house"))], 30)
            assert await ask(log) == [[ReflexLibraryChanged, ReflexPassed]] * len(SESSIONS)
            return await everything(log)
        finally:
            await log.close()

    # The sessions lie in partitions of their own, so that each has its own change to tell of.
    assert len({Partitions().session_token(session) for session in SESSIONS}) == len(SESSIONS)
    with worker(broker, tmp_path, "reflex") as (_, line):
        assert line.recv(64) == READY
        history = asyncio.run(scenario())
    replay = Replay([ACTOR], Partitions(), verify=True)
    for stored in history:
        replay.feed(stored)
    report = replay.finish()
    assert report.clean
    assert report.coverage["reflex"].different == 0
    assert report.coverage["reflex"].pending == 0
