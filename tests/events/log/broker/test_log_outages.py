"""What every adapter of the log keeps to when its broker dies, hangs or is not what it should be."""

import asyncio

import pytest
from structlog.testing import capture_logs

from events.errors import Conflict, Misconfigured, Unavailable, UnknownOutcome
from events.jetstream.connection import Access, Connection
from events.jetstream.log import JetStreamLog
from events.jetstream.reading.read_requests import await_read_service
from events.jetstream.reading.stream_reader import BACKLOG, StreamReader
from events.log import MAX_RECORD_BYTES, Record
from schemas.permissions import READ_ROOT
from schemas.subjects import Partitions
from tests.broker import Broker
from tests.events.setting import RunOnLog, Setting, back, collect, plain, read, record, run_on_jetstream


def test_a_tail_goes_on_after_broker_crashes_under_load_without_gap_or_repeat(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        log = setting.log
        acknowledged = asyncio.Semaphore(0)

        async def write() -> None:
            for number in range(90):
                await _append_until_acknowledged(setting, record(data=b"%d" % number, id=f"id-{number}"))
                acknowledged.release()

        tail = await log.tail(["log.>"], 0)
        reading = asyncio.create_task(read(tail, 90))
        writing = asyncio.create_task(write())
        for _ in range(3):
            for _ in range(20):
                await acknowledged.acquire()
            setting.kill_broker()
            await asyncio.sleep(0.05)
            setting.start_broker()
        await writing
        seen = await reading
        assert [stored.seq for stored in seen] == list(range(1, 91))
        assert [stored.data for stored in seen] == [b"%d" % number for number in range(90)]
        await tail.close()

    run_on_log(body)


async def _append_until_acknowledged(setting: Setting, wanted: Record) -> None:
    """Append a record again and again: lone and with an id, so that it is stored once."""
    while True:
        try:
            await setting.log.append([plain(wanted)])
        except (Unavailable, UnknownOutcome):
            await asyncio.sleep(0.01)
        else:
            return


def test_what_was_acknowledged_survives_a_broker_crash_with_its_ids(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(id="a"))])
        await setting.log.append([plain(record(id="b"), record(id="c"))])
        before = await collect(setting.log)
        setting.kill_broker()
        setting.start_broker()
        await back(setting)
        assert await collect(setting.log) == before
        assert await setting.log.append([plain(record(id="c"))]) == 3
        with pytest.raises(Conflict):
            await setting.log.append([plain(record(id="a"), record(id="d"))])

    run_on_log(body)


@pytest.mark.parametrize("count", [1, 2])
def test_an_append_to_a_broker_that_is_gone_ends_as_unavailable_or_in_doubt(run_on_log: RunOnLog, count: int) -> None:
    async def body(setting: Setting) -> None:
        setting.kill_broker()
        async with asyncio.timeout(20):
            with pytest.raises((Unavailable, UnknownOutcome)):
                await setting.log.append([plain(*[record()] * count)])
        setting.start_broker()
        await back(setting)
        assert await setting.log.append([plain(record())]) <= 1 + count

    run_on_log(body)


def test_an_append_to_a_broker_that_hangs_is_in_doubt_and_stored_when_it_wakes(broker: Broker) -> None:
    async def body(setting: Setting) -> None:
        broker.pause()
        try:
            with pytest.raises(UnknownOutcome):
                await setting.log.append([plain(record())])
        finally:
            broker.resume()
        tail = await setting.log.tail(["log.>"], 0)
        assert [stored.seq for stored in await read(tail, 1)] == [1]
        await tail.close()

    run_on_jetstream(broker, body)


def test_other_partition_counts_are_refused_at_connect(broker: Broker) -> None:
    async def main() -> None:
        made = await JetStreamLog.connect(broker.url, partitions=Partitions(agents=2, sessions=8))
        await made.close()
        with pytest.raises(Misconfigured, match="8 session partitions"):
            await JetStreamLog.connect(broker.url, partitions=Partitions())
        found = await JetStreamLog.connect(broker.url)
        assert found.partitions == Partitions(agents=2, sessions=8)
        await found.close()

    asyncio.run(main())


def test_large_messages_are_read_without_being_cut_off(broker: Broker) -> None:
    """A server closes the connection of a client that more than 64 MB wait for."""

    async def body() -> None:
        log = await JetStreamLog.connect(broker.url)
        blank = b" " * (MAX_RECORD_BYTES - 1024)
        for number in range(90):
            await log.append([plain(record(id=f"large-{number}", data=blank))])
        tail = await log.tail(["log.>"], 0)
        assert [stored.seq for stored in await read(tail, 90)] == list(range(1, 91))
        await tail.close()
        assert len(await collect(log)) == 90
        assert log.connection.nc.stats["reconnects"] == 0
        await log.close()

    asyncio.run(body())


def test_a_tail_for_one_who_stops_reading_holds_little_and_goes_on_where_it_was(broker: Broker) -> None:
    async def body() -> None:
        log = await JetStreamLog.connect(broker.url)
        await log.append([plain(*[record()] * 400)])
        await log.append([plain(*[record()] * 400)])
        tail = await log.tail(["log.>"], 0, pull=4)
        assert isinstance(tail, StreamReader)
        held = 0
        for _ in range(400):  # whatever is on its way has come by then
            await log.connection.nc.flush()
            held = max(held, len(tail._buffer))
        assert 4 < held <= 4 * (BACKLOG + 4)
        assert [stored.seq for stored in await read(tail, 800)] == list(range(1, 801))
        await tail.close()
        await log.close()

    asyncio.run(body())


def test_who_waits_for_a_read_service_says_so_at_once_and_again(broker: Broker) -> None:
    async def wait() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        try:
            connection.ask_to_read(f"{READ_ROOT}.nobody", "NEURAXIS")
            await await_read_service(connection, "NEURAXIS", 1.5)
        finally:
            await connection.close()

    with capture_logs() as lines, pytest.raises(Unavailable, match="start `neuraxis worker ledger`"):
        asyncio.run(wait())
    assert [round(line["for_s"]) for line in lines if line["event"] == "waits_for_read_service"] == [0, 1]
