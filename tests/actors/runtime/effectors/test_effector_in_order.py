"""Requests that are performed one after another: whichever worker performs each, however often one is tried."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from events.jetstream import JetStreamLog
from schemas.actor import Emission, Message
from schemas.effectors.contract import OrderedQueue, QueueTurn, TryLater
from schemas.event import Event
from schemas.permissions import durable_name
from tests.actors.on_broker import log_test
from tests.actors.runtime.effectors.echo import EchoAsked, EchoSung, ask, echo, effector
from tests.actors.runtime.effectors.echoing import all_acknowledged, answered, once_each, running
from tests.actors.runtime.waiting import DEADLINE_S, until
from tests.broker import Broker

pytestmark = pytest.mark.usefixtures("echo_vocabulary")


class Performer:
    """Echoes, and notes what it performs in which order; never two at once."""

    def __init__(self) -> None:
        self.performed: list[str] = []
        self.later: dict[str, list[float]] = {}
        self.under_way = 0

    async def __call__(self, message: Message) -> Sequence[Event | Emission]:
        self.performed.append(message.exchange)
        self.under_way += 1
        assert self.under_way == 1
        await asyncio.sleep(0)
        self.under_way -= 1
        if pauses := self.later.get(message.exchange):
            raise TryLater(pauses.pop(0))
        return await echo(message)


def exchanges(count: int) -> list[str]:
    return [f"exchange-{number}" for number in range(count)]


@log_test
async def test_each_is_performed_once_in_the_log_s_order_however_many_workers_there_are(
    log: JetStreamLog, broker: Broker
) -> None:
    performer = Performer()
    one = replace(effector(performer), in_order=True)
    async with running(broker, one), running(broker, one, name="v"), running(broker, one, name="x"):
        await ask(log, *range(30))
        assert once_each(await answered(log, 30), 30)
    assert performer.performed == exchanges(30)


@log_test
async def test_what_is_tried_later_holds_up_those_behind_it_also_through_a_kill_of_the_broker(
    log: JetStreamLog, broker: Broker
) -> None:
    performer = Performer()
    performer.later["exchange-1"] = [0.0, 0.1, 0.3]
    async with running(broker, replace(effector(performer), in_order=True)):
        await ask(log, 0, 1, 2)
        await until(lambda: performer.performed.count("exchange-1") == 3, "the third try")
        broker.kill()
        broker.start()
        assert once_each(await answered(log, 3), 3)
    tries = performer.performed.count("exchange-1")
    assert performer.performed == ["exchange-0", *["exchange-1"] * tries, "exchange-2"]


@log_test
async def test_a_worker_that_stops_leaves_what_is_to_be_tried_later_to_another_at_once(
    log: JetStreamLog, broker: Broker
) -> None:
    performer = Performer()
    performer.later["exchange-0"] = [0.2]
    one = replace(effector(performer), in_order=True)
    async with running(broker, one, ack_wait=1800.0, stop_deadline=1800.0):
        await ask(log, 0, 1)
        await until(lambda: bool(performer.performed), "the first try")
    async with running(broker, one, name="v", ack_wait=1800.0):
        assert once_each(await answered(log, 2), 2)
    assert performer.performed == ["exchange-0", "exchange-0", "exchange-1"]


@log_test
async def test_a_line_that_stands_still_holds_up_no_other_and_passes_over_what_is_another_s(
    log: JetStreamLog, broker: Broker
) -> None:
    still = asyncio.Event()

    async def stands_still(message: Message, turn: QueueTurn) -> Sequence[Event | Emission]:
        assert turn == QueueTurn(attempt=1, behind=3)
        async with asyncio.timeout(DEADLINE_S):
            await still.wait()
        return await echo(message)

    async def goes_on(message: Message, turn: QueueTurn) -> Sequence[Event | Emission]:
        return await echo(message)

    lines = (
        OrderedQueue("1", (EchoAsked,), lambda message: message.exchange == "exchange-0", stands_still),
        OrderedQueue("2", (EchoAsked,), lambda message: message.exchange != "exchange-0", goes_on),
    )
    await ask(log, *range(4))
    async with running(broker, replace(effector(), consumes=(EchoSung,), ordered_queues=lines)):
        found = await answered(log, 3)
        assert [each.message.exchange for each in found] == exchanges(4)[1:]
        still.set()
        assert once_each(await answered(log, 4), 4)


@log_test
async def test_an_order_in_which_requests_were_performed_outlives_the_loss_of_the_consumer(
    log: JetStreamLog, broker: Broker
) -> None:
    performer = Performer()
    one = replace(effector(performer), in_order=True)
    async with running(broker, one):
        await ask(log, *range(3))
        await all_acknowledged(log)
    await log.connection.api(f"CONSUMER.DELETE.{log.stream}.{durable_name('echo')}")
    async with running(broker, one):
        await ask(log, 3)
        assert once_each(await answered(log, 4), 4)
    assert performer.performed == exchanges(4)
