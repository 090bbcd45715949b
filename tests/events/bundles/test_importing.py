"""Importing into a stream of a real broker."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from events.errors import Misconfigured, Unavailable
from events.jetstream import Connection, JetStreamLog, KeyValueSnapshots
from events.jetstream.connection import Access
from events.jetstream.importing import ImportProgress, Recording, append, begin, check, finish, import_progress
from events.jetstream.reading.durable_pull import DurablePull
from events.ledger.checking.chain import GENESIS
from events.ledger.rows import link_row, to_row
from events.log import Append, Fence, Record, Stored
from schemas.subjects import Partitions
from tests.broker import Broker
from tests.events.ledger.messages import exchanges
from tests.events.setting import collect, plain, record
from tests.faults.cuts import cut_tail, drop_index, flip_bit_of

STREAM = "NEURAXIS"
PARTITIONS = Partitions(agents=2, sessions=3)
MESSAGES = exchanges(400)


def recording(messages: Sequence[Stored] = MESSAGES, sealed: bool = False) -> Recording:
    head = GENESIS
    for message in messages:
        head = link_row(head, to_row(message))
    return Recording(
        partitions=PARTITIONS, events=len(messages), head=head.hex(), sealed=sealed, batches=lambda: iter([messages])
    )


async def imported(connection: Connection, what: Recording) -> ImportProgress:
    """Import what is missing; return where it went on."""
    standing = await import_progress(connection, STREAM, what)
    if standing.whole:
        return standing
    if not standing.begun:
        await begin(connection, STREAM, what)
    await append(connection, STREAM, what, standing.after, lambda _: None)
    await finish(connection, STREAM, what, lambda _: None)
    return standing


async def stopped(connection: Connection, what: Recording, at: int) -> None:
    """Import, and stop as a killed importer does, once a batch from ``at`` on is stored."""

    class Killed(Exception):
        pass

    def look(reached: int) -> None:
        if reached >= at:
            raise Killed

    await begin(connection, STREAM, what)
    with pytest.raises(Killed):
        await append(connection, STREAM, what, 0, look)


def on(broker: Broker, body: Callable[[Connection], Awaitable[None]]) -> None:
    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        try:
            async with asyncio.timeout(60):
                await body(connection)
        finally:
            await connection.close()

    asyncio.run(main())


def test_what_comes_out_is_what_was_recorded(broker: Broker):
    async def body(connection: Connection) -> None:
        await imported(connection, recording())
        log = await JetStreamLog.over(connection)
        assert log.partitions == PARTITIONS
        assert await collect(log) == MESSAGES
        assert await collect(log.as_stored()) == MESSAGES

    on(broker, body)


def test_a_log_with_batches_fences_and_repeated_ids_comes_out_the_same_at_another_broker(broker: Broker):
    async def recorded(connection: Connection) -> list[Stored]:
        log = await JetStreamLog.over(connection, partitions=PARTITIONS)
        last = await log.append([plain(record(id="a"), record(id="b")), Append([record(id="c")], Fence("log.0.>", 0))])
        await log.append([Append([record(id="d")], Fence("log.00.00.reflex.>", last))])
        return await collect(log)

    found: list[Stored] = []

    async def record_it(connection: Connection) -> None:
        found.extend(await recorded(connection))

    on(broker, record_it)
    # The same id again, as from long after the dedupe window.
    found.append(msgspec.structs.replace(found[0], seq=len(found) + 1))
    assert any("Nats-Batch-Id" in one.headers for one in found)
    with Broker(broker.folder.with_name("other")) as other:

        async def import_it(connection: Connection) -> None:
            await imported(connection, recording(found))
            assert await collect(await JetStreamLog.over(connection)) == found

        on(other, import_it)


def test_every_reading_takes_the_recorded_times(broker: Broker):
    async def body(connection: Connection) -> None:
        await imported(connection, recording())
        log = await JetStreamLog.over(connection)
        tail = await log.tail(["log.>"], 0)
        assert (await tail.next())[0] == MESSAGES[0]
        await tail.close()
        pull = DurablePull(connection, STREAM, "nx-test", ["log.>"], imported_through=log.imported_through)
        pulling = asyncio.create_task(pull.run())
        assert (await pull.next()).stored == MESSAGES[0]
        pulling.cancel()
        await asyncio.gather(pulling, return_exceptions=True)

    on(broker, body)


def test_the_log_goes_on_behind_an_import_with_the_broker_s_own_times(broker: Broker):
    async def body(connection: Connection) -> None:
        await imported(connection, recording())
        log = await JetStreamLog.over(connection)
        claim = Record("log.00.00.reflex.passed", {"nx-recorded-at": "7"}, b"{}")
        end = await log.append([Append([claim], Fence("log.>", len(MESSAGES)))])
        assert end == len(MESSAGES) + 1
        (later,) = await collect(log, after=len(MESSAGES))
        assert later.time_ns > MESSAGES[-1].time_ns
        assert later.headers["nx-recorded-at"] == "7"

    on(broker, body)


def test_a_stopped_import_goes_on_where_it_stopped(broker: Broker):
    async def body(connection: Connection) -> None:
        await stopped(connection, recording(), at=1000)
        assert (await imported(connection, recording())).after == 1000
        assert await collect(await JetStreamLog.over(connection)) == MESSAGES
        assert (await imported(connection, recording())).whole

    on(broker, body)


def test_an_import_survives_the_kill_of_the_broker(broker: Broker):
    def kill(reached: int) -> None:
        broker.kill()

    async def struck(connection: Connection) -> None:
        await begin(connection, STREAM, recording())
        with pytest.raises(Unavailable, match=r"stopped behind sequence 1000: .*; run it again"):
            await append(connection, STREAM, recording(), 0, kill)

    async def again(connection: Connection) -> None:
        assert (await imported(connection, recording())).after == 1000
        assert await collect(await JetStreamLog.over(connection)) == MESSAGES

    on(broker, struck)
    broker.start()
    on(broker, again)


def test_records_that_the_broker_does_not_take_are_named_by_their_place(broker: Broker):
    huge = msgspec.structs.replace(MESSAGES[8], data=bytes(2 * 1024 * 1024))

    async def body(connection: Connection) -> None:
        with pytest.raises(Misconfigured, match="sequences 1 to 9 cannot be stored: a record of"):
            await imported(connection, recording([*MESSAGES[:8], huge]))

    on(broker, body)


def test_a_stream_with_an_unfinished_import_serves_no_worker(broker: Broker):
    async def body(connection: Connection) -> None:
        await stopped(connection, recording(), at=1000)
        with pytest.raises(Misconfigured, match=r"not whole .* goes on where it stopped"):
            await JetStreamLog.over(connection)
        with pytest.raises(Unavailable):  # one that was connected before
            await JetStreamLog(connection, STREAM, PARTITIONS).append([plain(record())])

    on(broker, body)


def test_another_recording_is_refused_where_one_is_unfinished(broker: Broker):
    async def body(connection: Connection) -> None:
        await stopped(connection, recording(), at=1000)
        with pytest.raises(Misconfigured, match="beginning of another import"):
            await imported(connection, recording(MESSAGES[:8]))

    on(broker, body)


def test_two_imports_at_once_store_nothing_twice(broker: Broker):
    async def body(connection: Connection) -> None:
        await begin(connection, STREAM, recording())
        await append(connection, STREAM, recording(), 0, lambda _: None)
        with pytest.raises(Misconfigured, match="another import"):
            await append(connection, STREAM, recording(), 0, lambda _: None)
        await finish(connection, STREAM, recording(), lambda _: None)
        assert len(await collect(await JetStreamLog.over(connection))) == len(MESSAGES)

    on(broker, body)


def test_a_stream_that_holds_anything_is_refused_and_left_as_it_is(broker: Broker):
    async def body(connection: Connection) -> None:
        log = await JetStreamLog.over(connection, partitions=PARTITIONS)
        await log.append([plain(record())])
        with pytest.raises(Misconfigured, match="not empty"):
            await imported(connection, recording())
        assert len(await collect(await JetStreamLog.over(connection))) == 1

    on(broker, body)


def test_a_stream_that_fills_just_before_the_import_is_given_back_as_it_was(broker: Broker):
    async def body(connection: Connection) -> None:
        log = await JetStreamLog.over(connection, partitions=Partitions(1, 1), sealed=True)
        await log.append([plain(record())])
        with pytest.raises(Misconfigured, match=r"appended .* just now"):
            await begin(connection, STREAM, recording())
        again = await JetStreamLog.over(connection, partitions=Partitions(1, 1), sealed=True)
        assert await again.append([plain(record())]) == 2

    on(broker, body)


def test_an_empty_stream_takes_the_partitions_of_what_is_imported(broker: Broker):
    async def body(connection: Connection) -> None:
        await JetStreamLog.over(connection)
        await imported(connection, recording())
        assert (await JetStreamLog.over(connection)).partitions == PARTITIONS

    on(broker, body)


def test_a_stream_that_is_being_read_is_refused(broker: Broker):
    async def body(connection: Connection) -> None:
        tail = await (await JetStreamLog.over(connection)).tail(["log.>"], 0)
        with pytest.raises(Misconfigured, match="consumers read it"):
            await imported(connection, recording())
        await tail.close()

    on(broker, body)


def test_snapshots_of_another_log_are_not_taken_for_this_one_s(broker: Broker):
    async def body(connection: Connection) -> None:
        await (await KeyValueSnapshots.over(connection)).save("reflex.00", b"another state", 0)
        with pytest.raises(Misconfigured, match="snapshots of another log"):
            await imported(connection, recording())

    on(broker, body)


def test_subscribers_do_not_hear_what_is_imported(broker: Broker):
    async def body(connection: Connection) -> None:
        heard = asyncio.Queue[str]()

        async def hear(message: object) -> None:
            heard.put_nowait(str(getattr(message, "subject", "")))

        await connection.nc.subscribe("forged_id.>", cb=hear)
        await imported(connection, recording())
        await (await JetStreamLog.over(connection)).append([plain(record("log.00.00.clock.fired"))])
        assert await heard.get() == "forged_id.clock.fired"

    on(broker, body)


def test_a_stream_of_sealed_words_is_a_sealed_one(broker: Broker):
    async def body(connection: Connection) -> None:
        await imported(connection, recording(sealed=True))
        log = await JetStreamLog.over(connection)
        assert log.sealing is not None

    on(broker, body)


def cut(broker: Broker, *, index: bool, size: int = 20_000) -> None:
    """Cut the end off the store of a broker that is stopped for it."""
    broker.stop()
    cut_tail(broker.store, size)
    if not index:
        drop_index(broker.store)
    broker.start()


def test_an_unfinished_import_whose_stream_was_cut_goes_on_from_what_is_left(broker: Broker):
    on(broker, lambda connection: stopped(connection, recording(), at=1000))
    cut(broker, index=False)

    async def again(connection: Connection) -> None:
        assert 0 < (await imported(connection, recording())).after < 1000
        assert await collect(await JetStreamLog.over(connection)) == MESSAGES

    on(broker, again)


def test_an_unfinished_import_whose_stream_keeps_a_gap_is_refused_at_once(broker: Broker):
    on(broker, lambda connection: stopped(connection, recording(), at=1000))
    cut(broker, index=True)

    async def again(connection: Connection) -> None:
        with pytest.raises(Misconfigured, match=r"lost some of what was imported.*import into a new one"):
            await import_progress(connection, STREAM, recording())

    on(broker, again)


@pytest.mark.parametrize("harm", ["cut", "cut, sequences given again", "rotten"])
def test_a_log_that_was_imported_whole_and_lost_since_is_not_said_to_be_imported(broker: Broker, harm: str):
    async def whole(connection: Connection) -> None:
        await imported(connection, recording())
        await check(connection, STREAM, recording(), lambda _: None)

    on(broker, whole)
    if harm == "rotten":
        broker.stop()
        flip_bit_of(broker.store, len(MESSAGES) // 2)
        broker.start()
    else:
        cut(broker, index=harm == "cut")

    async def again(connection: Connection) -> None:
        log = await JetStreamLog.over(connection)
        before = (await log.info()).last_seq
        seq = await log.append([plain(record("log.00.00.reflex.passed", b"new"))])
        assert seq == before + 1
        (new,) = await collect(log, seq - 1)
        assert (new.data, new.time_ns > MESSAGES[-1].time_ns) == (b"new", True)
        assert (await import_progress(connection, STREAM, recording())).whole
        with pytest.raises(Misconfigured, match="the stream has lost it since"):
            await check(connection, STREAM, recording(), lambda _: None)

    on(broker, again)
