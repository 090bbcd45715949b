"""For how long a tail is said to be cut off: only while the broker that does not let it read can be reached."""

import asyncio

from events.jetstream import JetStreamLog
from events.jetstream.reading.stream_reader import StreamReader
from tests.actors.runtime.waiting import until
from tests.broker import Broker


def test_a_tail_counts_no_time_without_a_broker_after_one_that_refused_it(broker: Broker) -> None:
    """A flapping broker: workers said that they had stalled, by the first heartbeat after each reconnection."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        tail = await log.tail(["log.>"], 0)
        assert isinstance(tail, StreamReader)
        assert tail.cut_off_s == 0.0
        await log.connection.api(f"STREAM.DELETE.{log.stream}")
        tail._renew.set()
        await until(lambda: tail.cut_off_s > 0.0, "a consumer to be refused")
        broker.kill()
        await until(lambda: not log.connection.connected, "the connection to be lost")
        lost = asyncio.get_running_loop().time()
        await asyncio.sleep(0.5)
        await until(
            lambda: 0.0 < tail.cut_off_s < asyncio.get_running_loop().time() - lost,
            "the time without a broker not to count, but the tail to count as cut off",
        )
        broker.start()
        await until(lambda: log.connection.connected, "the connection to be back")
        await asyncio.sleep(0.5)
        assert 0.0 < tail.cut_off_s < asyncio.get_running_loop().time() - lost, "a consumer is refused again"
        await tail.close()
        await log.close()

    asyncio.run(main())
