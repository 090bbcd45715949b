"""A broker that comes back with less than it had: readings notice, and pass over what cannot be read any more."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from events.errors import Conflict, LogCut
from events.jetstream.log import JetStreamLog
from tests.broker import Broker
from tests.events.setting import Setting, back, collect, fenced, plain, read, record
from tests.faults.cuts import cut_tail, drop_index, flip_bit

FILTER = "log.*.00.reflex.>"


def on_broker(broker: Broker, body: Callable[[JetStreamLog], Awaitable[None]]) -> None:
    """Run a body on a log of the default stream."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            async with asyncio.timeout(60):
                await body(log)
        finally:
            await log.close()

    asyncio.run(main())


async def _harmed(log: JetStreamLog, broker: Broker, cut: int, *, index: bool) -> None:
    broker.stop()
    if cut:
        cut_tail(broker.store, cut)
    if not index:
        drop_index(broker.store)
    broker.start()
    await back(Setting(log, broker.kill, broker.start))


@pytest.mark.parametrize("more", [0, 3, 20], ids=["no more", "less than was lost", "more than was lost"])
@pytest.mark.parametrize("index", [True, False], ids=["index left", "no index"])
def test_a_tail_whose_last_message_is_gone_says_so_wherever_the_log_has_come_to(
    broker: Broker, index: bool, more: int
) -> None:
    async def body(log: JetStreamLog) -> None:
        for number in range(10):
            await log.append([plain(record(data=b"%d" % number * 100))])
        tail = await log.tail(["log.>"], 0)
        await read(tail, 10)
        broker.stop()
        cut_tail(broker.store, 900)
        if not index:
            drop_index(broker.store)
        broker.start()
        other = await JetStreamLog.connect(broker.url)  # another process is there first
        for number in range(more):
            await other.append([plain(record(data=b"new %d" % number))])
        with pytest.raises(LogCut, match="was read from it"):
            async with asyncio.timeout(30):
                await tail.next()
        await tail.close()
        await other.close()

    on_broker(broker, body)


def test_a_tail_that_had_not_read_what_is_lost_goes_on(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        await log.append([plain(record(data=b"kept"))])
        tail = await log.tail(["log.*.*.reflex.>"], 0)
        await read(tail, 1)
        for _ in range(9):
            await log.append([plain(record("log.00.00.router.mode_selected", data=b"x" * 100))])
        await _harmed(log, broker, 900, index=False)
        await log.append([plain(record(data=b"next"))])
        assert [stored.data for stored in await read(tail, 1)] == [b"next"]
        await tail.close()

    on_broker(broker, body)


def test_a_message_that_cannot_be_read_any_more_holds_no_history_up(broker: Broker) -> None:
    """The server counts it among those to come, and never sends it."""

    async def body(log: JetStreamLog) -> None:
        for _ in range(9):
            await log.append([plain(record(data=b"x" * 100))])
        await log.append([plain(record("log.00.00.router.mode_selected", data=b"x" * 100))])
        broker.stop()
        flip_bit(broker.store, 0.45)
        broker.start()
        await back(Setting(log, broker.kill, broker.start))
        assert [stored.seq for stored in await collect(log, upto=10, filters=(FILTER,))] == [1, 2, 3, 4, 6, 7, 8, 9]
        assert await log.at(5) is None
        there = await log.at(4)
        assert there == (await collect(log, 3, 4))[0]

    on_broker(broker, body)


def test_a_refused_fence_says_what_the_log_takes_for_the_last(broker: Broker) -> None:
    async def body(log: JetStreamLog) -> None:
        for _ in range(3):
            await log.append([plain(record())])
        for appends in ([fenced(FILTER, 2, record())], [fenced(FILTER, 2, record(), record())]):
            with pytest.raises(Conflict) as refused:
                await log.append(appends)
            assert refused.value.last == 3

    on_broker(broker, body)
