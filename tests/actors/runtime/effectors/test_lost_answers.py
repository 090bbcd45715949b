"""An effector on a log that lost answers: its consumer counts their requests as done, and they are asked again."""

import asyncio

import msgspec
import pytest

from events.jetstream import JetStreamLog
from events.log import Append
from events.loss_recording import record_loss
from schemas.envelope import MESSAGE_ID
from schemas.vocabulary.ledger import LossRecorded
from tests.actors.on_broker import log_test
from tests.actors.runtime.effectors.echo import ask, effector, question
from tests.actors.runtime.effectors.echoing import all_acknowledged, answered, once_each, running
from tests.actors.runtime.waiting import until
from tests.broker import Broker
from tests.events.setting import Setting, back
from tests.faults.cuts import cut_after, drop_index, flip_bit_of

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
@log_test
async def test_requests_whose_answers_were_lost_are_answered_again_once(
    log: JetStreamLog, broker: Broker, running_already: bool
) -> None:
    loss = await _answers_lost(log, broker)
    if not running_already:
        await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
    async with running(broker, effector()):
        if running_already:
            await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
        found = await answered(log, REQUESTS)
        await all_acknowledged(log)
    assert once_each(found, REQUESTS)


@pytest.mark.parametrize("running_already", [False, True])
@log_test
async def test_a_request_that_its_writer_repeats_since_it_rotted_is_not_performed_again(
    log: JetStreamLog, broker: Broker, running_already: bool
) -> None:
    """Its answer stands before the repeated request, behind the place of the lost one."""
    await ask(log, *range(REQUESTS))
    async with running(broker, effector()):
        await answered(log, REQUESTS)
        await all_acknowledged(log)
    broker.stop()
    flip_bit_of(broker.store, 1)
    broker.start()
    await back(Setting(log, broker.kill, broker.start))
    assert await log.at(1) is None
    loss = LossRecorded(first_seq=1, through_seq=1, known_by="ledger", given_again=False)
    again = msgspec.structs.replace(question(0), headers={**question(0).headers, MESSAGE_ID: "again"})
    if not running_already:
        await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
    async with running(broker, effector()) as (worker, _):
        await until(worker.ready.is_set, "the worker to be ready")
        if running_already:
            await record_loss(log, loss, "test", "2026-01-01T00:00:00Z", "")
        await until(lambda: worker._losses.last_seq > 0, "the loss to be known")
        await log.append([Append([again])])
        await ask(log, REQUESTS)
        found = await answered(log, REQUESTS + 1)
        await until(lambda: worker.counters.answered >= 1, "the repeated request to be recognised")
        assert worker.counters.performed == 1
    assert once_each(found, REQUESTS + 1)


@log_test
async def test_a_loss_is_recorded_once_however_many_find_it(log: JetStreamLog, broker: Broker) -> None:
    loss = await _answers_lost(log, broker)
    await asyncio.gather(*(record_loss(log, loss, f"test {one}", "2026-01-01T00:00:00Z", "") for one in range(3)))
    await record_loss(log, loss, "late", "2026-01-01T00:00:00Z", "")
    assert (await log.info()).last_seq == REQUESTS + 1
