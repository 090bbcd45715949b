"""What every adapter of the log must store and refuse: one suite, run on the simulated one and on a real broker."""

import asyncio
from collections.abc import Sequence

import pytest

from events.errors import Conflict, Refused
from events.log import MAX_BATCH, MAX_RECORD_BYTES, Append
from tests.events.setting import RunOnLog, Setting, bodies, collect, fenced, plain, record

REFLEX = "log.00.00.reflex.passed"
ROUTER = "log.00.00.router.mode_selected"


def test_an_append_returns_the_sequence_of_its_last_record(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        assert await setting.log.append([plain(record())]) == 1
        assert await setting.log.append([plain(record(), record(), record())]) == 4
        assert await setting.log.append([plain(record())]) == 5

    run_on_log(body)


def test_stored_messages_are_what_was_appended(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(REFLEX, b"one", id="a", **{"ce-type": "x"}))])
        await setting.log.append([plain(record(ROUTER, b"two"), record(REFLEX, b"three"))])
        stored = await collect(setting.log)
        assert [(s.seq, s.subject, s.data) for s in stored] == [
            (1, REFLEX, b"one"),
            (2, ROUTER, b"two"),
            (3, REFLEX, b"three"),
        ]
        assert {"Nats-Msg-Id": "a", "ce-type": "x"}.items() <= dict(stored[0].headers).items()

    run_on_log(body)


def test_binary_data_and_percent_encoded_headers_come_back_unchanged(run_on_log: RunOnLog) -> None:
    data = bytes(range(256)) * 20 + b"\r\n\r\nNATS/1.0\r\n\x00"
    headers = {"ce-source": "a%20b%22%25%C3%A9%0D%0A", "ce-agent": "~!#$&'()*+,-./:;<=>?@[\\]^_`{|}", "nx-empty": ""}

    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(data=data, **headers))])
        await setting.log.append([plain(record(data=data, **headers), record(data=b""))])
        one, two, empty = await collect(setting.log)
        assert one.data == two.data == data
        assert headers.items() <= dict(one.headers).items()
        assert headers.items() <= dict(two.headers).items()
        assert empty.data == b""

    run_on_log(body)


def test_timestamps_are_the_servers_and_do_not_fall(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        for _ in range(5):
            await setting.log.append([plain(record(), record())])
        times = [stored.time_ns for stored in await collect(setting.log)]
        assert times == sorted(times)
        assert times[0] > 1_700_000_000_000_000_000

    run_on_log(body)


def test_concurrent_batches_are_each_contiguous_and_in_order(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        async def writer(name: int) -> None:
            for batch in range(3):
                await setting.log.append([plain(*(record(data=f"{name}.{batch}.{i}".encode()) for i in range(5)))])

        async with asyncio.TaskGroup() as group:
            for name in range(6):
                group.create_task(writer(name))
        stored = await bodies(setting.log)
        assert len(set(stored)) == len(stored) == 90
        for start in range(0, 90, 5):
            first = stored[start].decode().removesuffix("0")
            assert stored[start : start + 5] == [f"{first}{i}".encode() for i in range(5)]

    run_on_log(body)


def test_several_appends_of_one_call_are_stored_behind_each_other(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        last = await setting.log.append(
            [fenced("log.*.00.reflex.>", 0, record(REFLEX, b"1"), record(REFLEX, b"2")), plain(record(ROUTER, b"3"))]
        )
        assert last == 3
        assert await bodies(setting.log) == [b"1", b"2", b"3"]

    run_on_log(body)


def test_a_fence_that_holds_lets_records_in(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        for last in range(3):
            assert await setting.log.append([fenced("log.*.00.reflex.>", last, record(REFLEX))]) == last + 1
        assert await setting.log.append([fenced("log.*.00.reflex.>", 3, record(REFLEX), record(REFLEX))]) == 5

    run_on_log(body)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("expected", [0, 1, 3])
def test_a_fence_that_does_not_hold_is_a_conflict_and_stores_nothing(
    run_on_log: RunOnLog, count: int, expected: int
) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(REFLEX, b"1"), record(REFLEX, b"2"))])
        with pytest.raises(Conflict):
            await setting.log.append([fenced("log.*.00.reflex.>", expected, *[record(REFLEX, b"late")] * count)])
        assert await bodies(setting.log) == [b"1", b"2"]

    run_on_log(body)


def test_a_fence_need_not_match_the_records_behind_it(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(REFLEX))])
        await setting.log.append([fenced("log.*.00.reflex.>", 1, record(ROUTER))])
        await setting.log.append([fenced("log.*.00.reflex.>", 1, record(ROUTER), record(ROUTER))])
        with pytest.raises(Conflict):
            await setting.log.append([fenced("log.*.00.reflex.>", 4, record(ROUTER))])

    run_on_log(body)


def test_messages_outside_its_filter_do_not_move_a_fence(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record("log.00.00.reflex.passed"))])
        await setting.log.append([plain(record("log.00.01.reflex.passed"), record("log.00.00.reflexes.passed"))])
        assert await setting.log.append([fenced("log.*.00.reflex.>", 1, record())]) == 4

    run_on_log(body)


@pytest.mark.parametrize("stale", [0, 1, 2])
def test_one_stale_fence_of_several_refuses_the_whole_call(run_on_log: RunOnLog, stale: int) -> None:
    subjects = ["log.00.00.reflex.passed", "log.00.01.reflex.passed", "log.00.02.reflex.passed"]

    async def body(setting: Setting) -> None:
        await setting.log.append([plain(*(record(subject) for subject in subjects))])
        with pytest.raises(Conflict):
            await setting.log.append(
                [
                    fenced(f"log.*.0{i}.reflex.>", i + (i != stale), record(subject, b"late"), record(subject, b"late"))
                    for i, subject in enumerate(subjects)
                ]
            )
        assert await bodies(setting.log) == [b"{}"] * 3

    run_on_log(body)


def test_fences_are_checked_against_the_log_before_the_call(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(REFLEX))])
        crossed = [
            fenced("log.*.00.router.>", 0, record(REFLEX)),
            fenced("log.*.00.reflex.>", 1, record(ROUTER)),
        ]
        assert await setting.log.append(crossed) == 3

    run_on_log(body)


def test_of_many_writers_behind_one_fence_one_wins(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        async def writer(name: int) -> bool:
            try:
                await setting.log.append([fenced("log.*.00.reflex.>", 0, record(data=b"%d" % name), record())])
            except Conflict:
                return False
            return True

        outcomes = await asyncio.gather(*(writer(name) for name in range(8)))
        assert outcomes.count(True) == 1
        assert await bodies(setting.log) == [b"%d" % outcomes.index(True), b"{}"]

    run_on_log(body)


def test_a_lone_record_with_a_known_id_is_not_stored_again(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(id="a"))])
        await setting.log.append([plain(record(id="b"), record(id="c"))])
        assert await setting.log.append([plain(record(ROUTER, b"again", id="a"))]) == 1
        assert await setting.log.append([plain(record(ROUTER, b"again", id="c"))]) == 3
        assert await bodies(setting.log) == [b"{}"] * 3

    run_on_log(body)


def test_a_fenced_retry_of_what_was_stored_is_a_conflict(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        decided = fenced("log.*.00.reflex.>", 0, record(id="a"))
        await setting.log.append([decided])
        with pytest.raises(Conflict):
            await setting.log.append([decided])
        assert len(await bodies(setting.log)) == 1

    run_on_log(body)


def test_a_known_id_behind_a_fence_that_holds_is_a_conflict(run_on_log: RunOnLog) -> None:
    """Its earlier sequence would turn the writer's last one back."""

    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(id="a"))])
        await setting.log.append([plain(record(id="b"))])
        with pytest.raises(Conflict):
            await setting.log.append([fenced("log.*.00.reflex.>", 2, record(id="a"))])
        assert len(await bodies(setting.log)) == 2

    run_on_log(body)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_batch_with_a_known_id_is_a_conflict_and_stores_nothing(run_on_log: RunOnLog, place: int) -> None:
    async def body(setting: Setting) -> None:
        await setting.log.append([plain(record(id="known"))])
        ids = ["x", "y", "z"]
        ids[place] = "known"
        with pytest.raises(Conflict):
            await setting.log.append([plain(*(record(id=one) for one in ids))])
        assert len(await bodies(setting.log)) == 1
        assert await setting.log.append([plain(record(id="x"), record(id="y"))]) == 3

    run_on_log(body)


def test_a_batch_that_holds_an_id_twice_is_a_conflict_and_stores_nothing(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        with pytest.raises(Conflict):
            await setting.log.append([plain(record(id="a"), record(id="b"), record(id="a"))])
        assert await bodies(setting.log) == []

    run_on_log(body)


def test_a_refused_append_leaves_its_ids_unknown(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        for records in ([record(id="a")], [record(id="a"), record(id="b")]):
            with pytest.raises(Conflict):
                await setting.log.append([fenced("log.*.00.reflex.>", 7, *records)])
        assert await setting.log.append([plain(record(id="a"), record(id="b"))]) == 2

    run_on_log(body)


def test_headers_that_are_too_large_are_refused_and_the_log_stays_usable(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        large = record(pad="y" * 80 * 1024)
        for records in ([large], [record(), large, record()], [record(), large]):
            with pytest.raises(Refused):
                await setting.log.append([plain(*records)])
        assert await setting.log.append([plain(record())]) == 1

    run_on_log(body)


def test_a_record_that_is_too_large_is_refused_and_the_log_stays_usable(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        large = record(data=b"x" * (MAX_RECORD_BYTES + 128 * 1024))
        for records in (
            [large],
            [record(), large, record()],
            [record(data=b"x" * MAX_RECORD_BYTES, pad="y" * 128 * 1024)],
        ):
            with pytest.raises(Refused):
                await setting.log.append([plain(*records)])
        assert await setting.log.append([plain(record())]) == 1

    run_on_log(body)


def test_a_record_of_the_full_size_is_stored(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        data = b"x" * (MAX_RECORD_BYTES - 1024)
        await setting.log.append([plain(record(data=data, pad="y" * 900))])
        assert (await collect(setting.log))[0].data == data

    run_on_log(body)


def test_a_batch_of_the_full_size_is_stored(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        assert await setting.log.append([plain(*(record(data=b"%d" % i) for i in range(MAX_BATCH)))]) == MAX_BATCH
        assert await bodies(setting.log) == [b"%d" % i for i in range(MAX_BATCH)]

    run_on_log(body)


def test_a_batch_of_more_records_is_refused_whole(run_on_log: RunOnLog) -> None:
    async def body(setting: Setting) -> None:
        with pytest.raises(Refused):
            await setting.log.append([plain(*[record()] * MAX_BATCH), plain(record())])
        assert await bodies(setting.log) == []

    run_on_log(body)


@pytest.mark.parametrize("appends", [[], [plain()], [fenced("log.>", 0)], [fenced("log.>", 7), plain(record())]])
def test_an_append_without_records_is_refused(run_on_log: RunOnLog, appends: Sequence[Append]) -> None:
    async def body(setting: Setting) -> None:
        with pytest.raises(Refused):
            await setting.log.append(appends)
        assert await bodies(setting.log) == []

    run_on_log(body)
