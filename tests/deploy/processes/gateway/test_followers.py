"""Readers of a gateway's events: how many there may be, however they come and go."""

import asyncio
import gc

import pytest

from actors.gateway.answer_wait import CHECK_INTERVAL_S, retry_until_reachable
from actors.gateway.http.loops.judgements import Judgements
from actors.gateway.metrics import Metrics
from deploy.processes.gateway.records import MOST_FOLLOWERS, BrokerRecords
from events.errors import NotPermitted, Unavailable, UnknownOutcome
from events.jetstream import JetStreamLog, KeyValueMembership
from tests.broker import Broker

DEADLINE_S = 30.0


def test_readers_who_come_together_are_no_more_than_those_who_come_in_turn(broker: Broker) -> None:
    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            records = BrokerRecords(log.connection, log, asyncio.Event(), KeyValueMembership(log.connection))

            async def come() -> tuple[int, list[object]]:
                coming = (records.follow(">", None, words=False) for _ in range(MOST_FOLLOWERS * 3))
                came = await asyncio.gather(*coming, return_exceptions=True)
                return sum(isinstance(each, Unavailable) for each in came), came

            refused, came = await come()
            assert refused == MOST_FOLLOWERS * 2
            assert (await come())[0] == MOST_FOLLOWERS * 3

            # Whoever leaves before anything was sent gives the place back, too.
            came.clear()
            gc.collect()
            for _ in range(100):  # the loop closes them, each in a task of its own
                await asyncio.sleep(0)
            assert (await come())[0] == MOST_FOLLOWERS * 2
        finally:
            await log.close()

    asyncio.run(main())


def test_a_broker_that_dies_while_a_gateway_begins_to_read_takes_nobody_down(broker: Broker) -> None:
    """Requests are served by then: whoever ended would end them all."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        judgements = Judgements(16)
        try:
            await asyncio.to_thread(broker.kill)
            following = [asyncio.create_task(judgements.follow(log)), asyncio.create_task(Metrics().follow(log))]
            done, _ = await asyncio.wait(following, timeout=2 * CHECK_INTERVAL_S)
            assert not done
            await asyncio.to_thread(broker.start)
            async with asyncio.timeout(DEADLINE_S):
                await judgements.caught_up.wait()
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        finally:
            await log.close()

    asyncio.run(main())


def test_a_read_that_got_no_answer_is_repeated_and_one_that_is_not_permitted_is_not() -> None:
    async def main() -> None:
        outcomes: list[Exception | str] = [UnknownOutcome("no answer"), Unavailable("away"), "read", NotPermitted("no")]

        async def reading() -> str:
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        assert await retry_until_reachable(reading) == "read"
        with pytest.raises(NotPermitted):
            await retry_until_reachable(reading)

    asyncio.run(main())
