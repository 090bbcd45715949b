"""Orders that meet a broker which goes and comes back: stored once, or their fate told."""

import asyncio

import pytest

from actors.gateway import Client, Order
from deploy.operating.deadline import Deadline
from events.errors import LogError, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog
from schemas.vocabulary.patterns import PatternsWithdrawn
from tests.actors.on_broker import on_broker
from tests.broker import Broker

ORDER = Order(event=PatternsWithdrawn(name="house-rules", by="ann", why="too many false alarms"))


@pytest.mark.parametrize("count", [1, 3])
def test_an_order_waits_for_a_broker_that_is_away_and_is_stored_once(count: int, broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        async with Client.open(log) as client:
            await gone(broker, log)
            ordering = asyncio.create_task(client.order([ORDER] * count, 30))
            await asyncio.sleep(0.2)
            broker.start()
            assert (await ordering).seq == count
        assert (await log.info()).last_seq == count

    on_broker(broker, scenario)


def test_an_order_for_a_broker_that_stays_away_is_said_not_to_be_stored(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        async with Client.open(log) as client:
            await gone(broker, log)
            with pytest.raises(Unavailable, match=r"^the order: not stored .* the broker at .* is not connected"):
                await ordered_within(1.0, client)
        broker.start()
        await back(log)
        assert (await log.info()).last_seq == 0

    on_broker(broker, scenario)


def test_an_order_that_a_stuck_broker_took_up_is_said_to_be_in_doubt(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        async with Client.open(log) as client:
            broker.pause()
            said = r"^the order was sent, .* after \d+\.\d s: it may be stored.*; look$"
            async with asyncio.timeout(30):  # without its deadline it would wait for as long as the broker stands still
                with pytest.raises(UnknownOutcome, match=said):
                    await ordered_within(1.0, client)
            broker.resume()
        await back(log)
        assert (await log.info()).last_seq == 1

    on_broker(broker, scenario)


async def ordered_within(seconds: float, client: Client) -> None:
    """Give the order as a command does."""
    async with Deadline(seconds).enforced() as deadline:
        deadline.note_sending("the order", "look")
        await client.order([ORDER], deadline.left_for_step)


async def gone(broker: Broker, log: JetStreamLog) -> None:
    """Kill the broker, and wait until the client knows."""
    broker.kill()
    async with asyncio.timeout(30):
        while True:
            if not log.connection.connected:
                return
            await asyncio.sleep(0.01)


async def back(log: JetStreamLog) -> None:
    """Wait until the broker answers again."""
    async with asyncio.timeout(30):
        while True:
            try:
                await log.info()
            except LogError:
                await asyncio.sleep(0.05)
            else:
                return
