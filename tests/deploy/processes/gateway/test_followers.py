"""Readers of a gateway's events: how many there may be, however they come and go."""

import asyncio
import gc

from deploy.processes.gateway.records import MOST_FOLLOWERS, BrokerRecords
from events.errors import Unavailable
from events.jetstream import JetStreamLog, KeyValueMembership
from tests.broker import Broker


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
