"""A reading on demand: it is sent nothing between two calls, and then all that has gathered, for one request."""

import asyncio

import pytest

from events.jetstream.log import JetStreamLog
from events.jetstream.reading import stream_reader
from events.log import Stored, Tail
from schemas.subjects import EVERYTHING
from tests.broker import Broker
from tests.events.setting import Setting, back, plain, read, record

AT_A_TIME = 10
"""Messages that the readings here ask for at a time."""


async def opened(broker: Broker) -> tuple[JetStreamLog, JetStreamLog, Tail]:
    """Return a log to write to, the same to read from over a connection of its own, and a reading of it on demand."""
    writing, reading = await JetStreamLog.connect(broker.url), await JetStreamLog.connect(broker.url)
    tail = await reading.tail([EVERYTHING], 0, on_demand=True, pull=AT_A_TIME)
    await writing.append([plain(record())])
    assert len(await tail.next()) == 1
    return writing, reading, tail


async def closed(writing: JetStreamLog, reading: JetStreamLog, tail: Tail) -> None:
    await tail.close()
    await writing.close()
    await reading.close()


def test_what_gathers_between_two_calls_comes_in_one_piece_for_one_request(broker: Broker) -> None:
    async def main() -> None:
        writing, reading, tail = await opened(broker)
        counts = reading.connection.nc.stats
        for _ in range(8):  # more messages together than one request asks for
            before = dict(counts)
            for _ in range(3):
                await writing.append([plain(record())])
            await asyncio.sleep(0.05)
            assert dict(counts) == before
            assert len(await tail.next()) == 3
            assert counts["out_msgs"] == before["out_msgs"] + 1
        await closed(writing, reading, tail)

    asyncio.run(main())


def test_a_backlog_comes_in_order_however_much_it_is(broker: Broker) -> None:
    async def main() -> None:
        writing, reading, tail = await opened(broker)
        for size in (AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1, 7 * AT_A_TIME):
            await writing.append([plain(*[record()] * size)])
            last = await writing.last(EVERYTHING)
            found: list[Stored] = await read(tail, size)
            assert [stored.seq for stored in found] == list(range(last - size + 1, last + 1))
        await closed(writing, reading, tail)

    asyncio.run(main())


def test_a_reading_that_asks_for_nothing_is_not_taken_for_lost(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "HEARTBEAT", 0.02)
    monkeypatch.setattr(stream_reader, "SILENCE", 0.1)

    async def main() -> None:
        writing, reading, tail = await opened(broker)
        sent = reading.connection.nc.stats["out_msgs"]
        await asyncio.sleep(0.5)
        assert reading.connection.nc.stats["out_msgs"] == sent
        await writing.append([plain(record())])
        assert [stored.seq for stored in await tail.next()] == [2]
        await closed(writing, reading, tail)

    asyncio.run(main())


def test_it_goes_on_after_the_broker_was_killed_between_two_calls(broker: Broker) -> None:
    async def main() -> None:
        writing, reading, tail = await opened(broker)
        broker.kill()
        broker.start()
        for log in (writing, reading):
            await back(Setting(log, broker.kill, broker.start))
        await writing.append([plain(record(), record())])
        assert [stored.seq for stored in await read(tail, 2)] == [2, 3]
        await closed(writing, reading, tail)

    asyncio.run(main())
