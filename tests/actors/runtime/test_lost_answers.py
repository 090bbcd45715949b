"""An effector on a log that lost answers: its consumer counts their requests as done, and they are asked again."""

import asyncio

import pytest

from actors.ledger.losing import record_loss
from events.jetstream import JetStreamLog
from schemas.vocabulary.ledger import LossRecorded
from tests.actors.on_broker import on_broker
from tests.actors.runtime.echo import ask, effector
from tests.actors.runtime.echoing import all_acknowledged, answered, once_each, running
from tests.broker import Broker
from tests.events.setting import Setting, back
from tests.faults.cuts import cut_after, drop_index

pytestmark = pytest.mark.usefixtures("echo_vocabulary")
REQUESTS = 6


async def _answers_lost(log: JetStreamLog, broker: Broker) -> LossRecorded:
    """Have requests answered, and cut the log behind the requests."""
    await ask(log, *range(REQUESTS))
    async with running(broker, effector()):
        await answered(log, REQUESTS)
        await all_acknowledged(log)
    last = (await log.info()).last_seq
    broker.stop()
    cut_after(broker.store, REQUESTS)
    drop_index(broker.store)
    broker.start()
    await back(Setting(log, broker.kill, broker.start))
    return LossRecorded(first_seq=REQUESTS + 1, through_seq=last, known_by="ledger", given_again=True)


@pytest.mark.parametrize("running_already", [False, True])
def test_requests_whose_answers_were_lost_are_answered_again_once(broker: Broker, running_already: bool) -> None:
    async def body(log: JetStreamLog) -> None:
        loss = await _answers_lost(log, broker)
        if not running_already:
            await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
        async with running(broker, effector()):
            if running_already:
                await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
            found = await answered(log, REQUESTS)
            await all_acknowledged(log)
        assert once_each(found, REQUESTS)

    on_broker(broker, body)


def test_a_loss_is_recorded_once_however_many_find_it(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        loss = await _answers_lost(log, broker)
        await asyncio.gather(*(record_loss(log, loss, f"test {one}", "2026-01-01T00:00:00Z", "") for one in range(3)))
        await record_loss(log, loss, "late", "2026-01-01T00:00:00Z", "")
        assert (await log.info()).last_seq == REQUESTS + 1

    on_broker(broker, body)
