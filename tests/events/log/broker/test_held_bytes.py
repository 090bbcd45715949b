"""How much of large messages a reading holds whose reader takes nothing."""

import asyncio

from events.jetstream import JetStreamLog
from tests.broker import Broker


def test_a_reading_for_one_who_is_slow_holds_little_of_large_messages_and_loses_none(broker: Broker) -> None:
    count, size = 24, 700_000

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            for _ in range(count):
                await log.connection.nc.request("log.00.00.tried.once", b"x" * size, timeout=10)
            tail = await log.tail(["log.>"], 0, pull=16)
            try:
                largest, seen = 0, 0
                while seen < count:
                    batch = await asyncio.wait_for(tail.next(), 20)
                    largest, seen = max(largest, len(batch)), seen + len(batch)
                    await asyncio.sleep(0.05)  # whoever is slow finds what has come meanwhile
            finally:
                await tail.close()
            assert largest <= 6
        finally:
            await log.close()

    asyncio.run(main())
