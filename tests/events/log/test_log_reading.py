"""How every adapter of the log is read: one suite, run on the simulated one and on a real JetStream broker."""

import asyncio

import pytest

from events.errors import LogError
from schemas.subjects import Partitions
from tests.events.setting import RunOnLog, Setting, collect, plain, read, record

REFLEX = "log.00.00.reflex.passed"
ROUTER = "log.00.00.router.mode_selected"


def test_last_is_the_newest_match_of_a_filter_or_zero(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        log = setting.log
        assert await log.last("log.>") == 0
        await log.append([plain(record(REFLEX), record(ROUTER), record("log.01._.regulator.adjusted"))])
        assert await log.last(REFLEX) == 1
        assert await log.last("log.*.00.router.>") == 2
        assert await log.last("log.*.*.*.>") == 3
        assert await log.last("log.*._.regulator.adjusted") == 3
        assert await log.last("log.*.00.regulator.>") == 0

    run_on_log(body)


def test_info_tells_the_extent_and_the_partitions(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        empty = await setting.log.info()
        assert (empty.first_seq, empty.last_seq, empty.messages) == (0, 0, 0)
        await setting.log.append([plain(record(), record())])
        full = await setting.log.info()
        assert (full.first_seq, full.last_seq, full.messages) == (1, 2, 2)
        assert full.bytes > empty.bytes
        assert full.partitions == setting.log.partitions == Partitions()

    run_on_log(body)


@pytest.mark.parametrize(
    ("after", "upto", "expected"),
    [
        (0, 10, list(range(1, 11))),
        (3, 7, [4, 5, 6, 7]),
        (6, 7, [7]),
        (9, 10, [10]),
        (5, 5, []),
        (7, 3, []),
        (10, 20, []),
        (8, 2**40, [9, 10]),
    ],
)
def test_a_history_is_open_below_and_closed_above(
    run_on_log: RunOnLog, after: int, upto: int, expected: list[int]
) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(*[record()] * 10)])
        assert [stored.seq for stored in await collect(setting.log, after, upto)] == expected

    run_on_log(body)


def test_a_history_holds_only_matches_of_its_filters_in_stream_order(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        subjects = ["log.00.00.reflex.passed", "log.00.01.reflex.passed", "log.00.00.reflex.blocked", "log.00.00.a.b"]
        await setting.log.append([plain(*(record(subjects[i % 4]) for i in range(12)))])
        found = await collect(setting.log, 1, 11, ["log.*.00.reflex.passed", "log.*.*.a.>"])
        assert [stored.seq for stored in found] == [4, 5, 8, 9]
        assert await collect(setting.log, filters=["log.*.*.nobody.>"]) == []

    run_on_log(body)


def test_histories_of_overlapping_ranges_agree(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(*(record(data=b"%d" % i) for i in range(40)))])
        whole = await collect(setting.log)
        for after, upto in ((0, 25), (10, 40), (20, 30)):
            assert await collect(setting.log, after, upto) == whole[after:upto]

    run_on_log(body)


def test_a_range_may_begin_before_the_first_message(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        assert await collect(setting.log, -1, 0) == []
        await setting.log.append([plain(record())])
        assert [stored.seq for stored in await collect(setting.log, -1, 1)] == [1]

    run_on_log(body)


def test_a_filter_within_another_is_refused(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        overlapping = ["log.*.00.reflex.>", "log.00.00.reflex.passed"]
        with pytest.raises(LogError, match="overlap"):
            await setting.log.tail(overlapping, 0)
        with pytest.raises(LogError, match="overlap"):
            await anext(setting.log.history(overlapping, 0, 1))

    run_on_log(body)


def test_a_tail_reads_what_is_there_and_then_what_comes(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(*[record()] * 5)])
        tail = await setting.log.tail(["log.>"], 2)
        assert [stored.seq for stored in await read(tail, 3)] == [3, 4, 5]
        waiting = asyncio.create_task(read(tail, 2))
        await setting.log.append([plain(record(), record())])
        assert [stored.seq for stored in await waiting] == [6, 7]
        await tail.close()

    run_on_log(body)


def test_a_tail_on_demand_reads_what_is_there_and_then_what_comes(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(*[record()] * 5)])
        tail = await setting.log.tail(["log.>"], 2, on_demand=True)
        assert [stored.seq for stored in await read(tail, 3)] == [3, 4, 5]
        waiting = asyncio.create_task(read(tail, 2))
        await setting.log.append([plain(record(), record())])
        assert [stored.seq for stored in await waiting] == [6, 7]
        await tail.close()

    run_on_log(body)


def test_a_tail_reads_only_matches_of_its_filters(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        tail = await setting.log.tail(["log.*.00.reflex.>", "log.*.01.router.>"], 0)
        await setting.log.append(
            [plain(*(record(f"log.00.0{i % 3}.{name}.x") for i in range(6) for name in ("reflex", "router")))]
        )
        assert [stored.seq for stored in await read(tail, 4)] == [1, 4, 7, 10]
        await tail.close()

    run_on_log(body)


def test_tails_do_not_disturb_each_other(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        tails = [await setting.log.tail(["log.>"], start) for start in (0, 10, 20)]
        for _ in range(3):
            await setting.log.append([plain(*[record()] * 10)])
        for tail, start in zip(tails, (0, 10, 20), strict=True):
            assert [stored.seq for stored in await read(tail, 30 - start)] == list(range(start + 1, 31))
            await tail.close()

    run_on_log(body)


def test_a_tail_agrees_with_the_history(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        tail = await setting.log.tail(["log.>"], 0)
        for batch in range(4):
            await setting.log.append([plain(*(record(data=b"%d" % i, id=f"{batch}.{i}") for i in range(3)))])
        assert await read(tail, 12) == await collect(setting.log)
        await tail.close()

    run_on_log(body)
