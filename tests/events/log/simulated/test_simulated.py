"""Each fault of the simulated log by itself."""

import asyncio

import pytest

from events.errors import LogError, Refused, Unavailable, UnknownOutcome
from events.log import Stored
from tests.each import each
from tests.events.setting import fenced, plain, record
from tests.events.simulated_world import data_of, in_world, log_of
from tests.simulated import (
    CALM,
    Faults,
    Incident,
    Killed,
    SimulatedConnection,
    SimulatedLog,
    SimulatedMembership,
    SimulatedSnapshots,
    SimulatedStream,
)

ALL = "log.*.00.reflex.>"


async def read(log: SimulatedLog, count: int, after: int = 0) -> list[Stored]:
    tail = await log.tail([ALL], after)
    seen: list[Stored] = []
    while len(seen) < count:
        seen.extend(await tail.next())
    return seen


def test_filters_of_one_reading_may_not_overlap_even_in_part() -> None:
    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(Refused, match="overlap"):
            await log_of(stream).tail(["log.00.*.>", "log.*.00.>"], 0)

    in_world(body)


def test_a_subject_outside_the_stream_is_refused() -> None:
    async def body(stream: SimulatedStream) -> None:
        for subject in ("forged_id.reflex.passed", "log.00.00", "log.00..x"):
            with pytest.raises(Refused):
                await log_of(stream).append([plain(record(subject))])

    assert data_of(in_world(body)) == []


def test_an_id_is_known_for_two_minutes() -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        await log.append([plain(record(id="a"))])
        await asyncio.sleep(119)
        assert await log.append([plain(record(id="a"))]) == 1
        await asyncio.sleep(2)
        assert await log.append([plain(record(id="a"))]) == 2

    assert in_world(body).incidents[Incident.DUPLICATE] == 1


def test_a_lost_request_leaves_its_caller_in_doubt_and_stores_nothing() -> None:
    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(UnknownOutcome):
            await log_of(stream).append([plain(record())])
        assert asyncio.get_running_loop().time() == 5

    stream = in_world(body, Faults(lost_request=1.0))
    assert data_of(stream) == []
    assert stream.incidents == {Incident.REQUEST_LOST: 1, Incident.UNKNOWN_OUTCOME: 1}


def test_a_lost_reply_leaves_its_caller_in_doubt_of_what_is_stored() -> None:
    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(UnknownOutcome):
            await log_of(stream).append([plain(record(data=b"x"))])

    stream = in_world(body, Faults(lost_reply=1.0))
    assert data_of(stream) == [b"x"]
    assert stream.incidents[Incident.REPLY_LOST] == 1


def test_a_late_request_is_stored_after_its_caller_gave_up() -> None:
    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(UnknownOutcome):
            await log_of(stream).append([plain(record(data=b"x"))])
        assert data_of(stream) == []
        await asyncio.sleep(9)
        assert data_of(stream) == []
        await asyncio.sleep(2)
        assert data_of(stream) == [b"x"]

    stream = in_world(body, Faults(late_request=1.0, late_by_s=(10.0, 10.0)))
    assert stream.incidents[Incident.STORED_IN_DOUBT] == 1


def test_a_late_request_still_meets_its_fence() -> None:
    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(UnknownOutcome):
            await log_of(stream).append([fenced(ALL, 0, record(data=b"late"))])
        stream.faults = CALM
        await log_of(stream).append([fenced(ALL, 0, record(data=b"first"))])
        await asyncio.sleep(60)

    stream = in_world(body, Faults(late_request=1.0))
    assert data_of(stream) == [b"first"]
    assert stream.incidents[Incident.CONFLICT] == 1


def test_a_busy_broker_is_unavailable_and_stores_nothing() -> None:
    async def body(stream: SimulatedStream) -> None:
        with pytest.raises(Unavailable):
            await log_of(stream).append([plain(record())])

    assert data_of(in_world(body, Faults(busy=1.0))) == []


def test_concurrent_appends_overtake_each_other_but_a_batch_stays_whole() -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        async with asyncio.TaskGroup() as group:
            for number in range(30):
                group.create_task(log.append([plain(record(data=b"%da" % number), record(data=b"%db" % number))]))

    data = data_of(in_world(body, Faults(request_delay_s=(0.0, 0.1))))
    firsts = [int(one[:-1]) for one in data[::2]]
    assert firsts != sorted(firsts)
    assert data == [b"%d%s" % (number, half) for number in firsts for half in (b"a", b"b")]


def test_a_clock_set_back_shows_in_the_timestamps_and_not_in_the_order() -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        for _ in range(20):
            await asyncio.sleep(0.1)
            await log.append([plain(record())])

    messages = in_world(body, Faults(clock_set_back=0.2)).store.messages
    times = [stored.time_ns for stored in messages]
    assert times != sorted(times)
    assert [stored.seq for stored in messages] == list(range(1, 21))


def test_while_the_broker_is_down_every_append_is_unavailable_or_in_doubt() -> None:
    outcomes: set[str] = set()

    async def body(stream: SimulatedStream) -> None:
        stream.stop()
        for _ in range(30):
            with pytest.raises(LogError) as caught:
                await log_of(stream).append([plain(record())])
            outcomes.add(caught.value.code)
        assert data_of(stream) == []
        stream.start()
        await asyncio.sleep(2)

    stream = in_world(body)
    assert outcomes == {"unavailable", "unknown_outcome"}
    held = stream.incidents[Incident.REQUEST_HELD]
    assert 0 < held < 30
    assert len(data_of(stream)) == held == stream.incidents[Incident.STORED_IN_DOUBT]


def test_a_broker_that_dies_takes_the_answers_under_way_with_it() -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        doubtful = [asyncio.create_task(log.append([plain(record(data=b"%d" % i))])) for i in range(10)]
        await asyncio.sleep(0.5)
        assert len(data_of(stream)) == 10
        stream.stop()
        stream.start()
        outcomes = await asyncio.gather(*doubtful, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {UnknownOutcome}

    in_world(body, Faults(reply_delay_s=(1.0, 1.0)))


def test_a_tail_waits_through_an_outage_and_goes_on_where_it_was() -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        reading = asyncio.create_task(read(log, 20))
        for number in range(20):
            if number == 10:
                stream.stop()
                await asyncio.sleep(3)
                assert not reading.done()
                stream.start()
            await log.append([plain(record(data=b"%d" % number))])
        assert [stored.seq for stored in await reading] == list(range(1, 21))

    in_world(body, Faults(pages=(1, 3), delivery_delay_s=(0.0, 0.2)))


def test_what_waits_when_its_worker_is_killed_raises_killed_at_once() -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        waiting = [asyncio.create_task(read(log, 1)), asyncio.create_task(log.append([plain(record())]))]
        await asyncio.sleep(0.1)
        log.kill()
        assert {type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)} == {Killed}
        assert asyncio.get_running_loop().time() == pytest.approx(0.1)
        with pytest.raises(Killed):
            await log.last(ALL)
        assert log.connection.died.is_set()

    in_world(body, Faults(request_delay_s=(1.0, 1.0)))


def test_what_a_killed_worker_had_sent_may_still_be_stored() -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream)
        appending = asyncio.create_task(log.append([plain(record(data=b"will"))]))
        await asyncio.sleep(0.1)
        log.kill()
        with pytest.raises(Killed):
            await appending
        assert data_of(stream) == []
        await asyncio.sleep(2)

    stream = in_world(body, Faults(request_delay_s=(1.0, 1.0)))
    assert data_of(stream) == [b"will"]
    assert stream.incidents[Incident.STORED_AFTER_DEATH] == 1


@each(("point", "stored"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (6, 2)])
def test_a_worker_dies_at_the_crash_point_it_is_told(point: int, stored: int) -> None:
    async def body(stream: SimulatedStream) -> None:
        log = log_of(stream, dies_at=point)

        async def two_appends() -> None:
            await log.append([plain(record())])
            await log.append([plain(record())])

        with pytest.raises(Killed):
            await two_appends()
        await asyncio.sleep(1)
        assert log.connection.points == point

    assert len(data_of(in_world(body))) == stored


def test_one_worker_does_not_die_with_another() -> None:
    async def body(stream: SimulatedStream) -> None:
        one, other = log_of(stream), log_of(stream)
        reading = asyncio.create_task(read(other, 1))
        one.kill()
        await other.append([plain(record())])
        assert len(await reading) == 1

    in_world(body)


def test_snapshots_come_back_as_saved() -> None:
    async def body(stream: SimulatedStream) -> None:
        snapshots = SimulatedSnapshots(SimulatedConnection(stream))
        assert await snapshots.load("breaker.00") is None
        for data in (b"old", b"new"):
            await snapshots.save("breaker.00", data, 0)
        assert await snapshots.load("breaker.00") == b"new"
        assert await snapshots.load("breaker.01") is None

    in_world(body)


def test_snapshots_may_be_lost_old_or_damaged() -> None:
    seen: set[bytes | None] = set()

    async def body(stream: SimulatedStream) -> None:
        snapshots = SimulatedSnapshots(SimulatedConnection(stream))
        await snapshots.save("k", b"older snapshot", 0)
        await snapshots.save("k", b"newer snapshot", 0)
        seen.update([await snapshots.load("k") for _ in range(100)])

    stream = in_world(body, Faults(snapshot_lost=0.2, snapshot_stale=0.2, snapshot_corrupt=0.2))
    assert {None, b"older snapshot", b"newer snapshot"} < seen
    assert all(
        stream.incidents[one] for one in (Incident.SNAPSHOT_LOST, Incident.SNAPSHOT_STALE, Incident.SNAPSHOT_CORRUPT)
    )


def test_a_member_lives_as_long_as_it_beats() -> None:
    async def body(stream: SimulatedStream) -> None:
        members = SimulatedMembership(SimulatedConnection(stream))
        await members.beat("steady", b"1")
        await members.beat("silent", b"2")
        await asyncio.sleep(2)
        await members.beat("steady", b"3")
        assert await members.members() == {"steady": b"3", "silent": b"2"}
        await asyncio.sleep(2)
        assert await members.members() == {"steady": b"3"}
        await members.leave("steady")
        assert await members.members() == {}

    assert in_world(body).incidents[Incident.MEMBER_EXPIRED] == 1
