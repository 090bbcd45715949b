"""Many answers of one effector that are ready at the same time, as after an outage of whom it calls."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from events.errors import Conflict
from events.jetstream import JetStreamLog
from schemas.actor import Emission, Message
from schemas.event import Event
from tests.actors.on_broker import on_broker
from tests.actors.runtime.effectors.echo import ask, echo, effector
from tests.actors.runtime.effectors.test_effector import answered, once_each, running
from tests.broker import Broker

pytestmark = pytest.mark.usefixtures("echo_vocabulary")

MANY = 40


def test_answers_that_are_ready_together_are_stored_without_breaking_each_other_s_fence(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, conflicts = 0, 0
    all_ready = asyncio.Event()
    append = JetStreamLog.append

    async def together(message: Message) -> Sequence[Event | Emission]:
        nonlocal waiting
        waiting += 1
        if waiting == MANY:
            all_ready.set()
        await all_ready.wait()
        return await echo(message)

    async def counting(log: JetStreamLog, appends: Any) -> Any:
        nonlocal conflicts
        try:
            return await append(log, appends)
        except Conflict:
            conflicts += 1
            raise

    async def body(log: JetStreamLog) -> None:
        monkeypatch.setattr(JetStreamLog, "append", counting)
        async with running(broker, effector(together, concurrency=MANY)):
            await ask(log, *range(MANY))
            assert once_each(await answered(log, MANY), MANY)

    on_broker(broker, body)
    assert conflicts == 0
