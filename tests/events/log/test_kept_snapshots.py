"""Snapshots in their bucket: the newest comes back, and nothing of what it replaced stays on disk."""

import asyncio
import random
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from events.errors import Conflict, Unavailable, UnknownOutcome
from events.jetstream import Connection, JetStreamLog, KeyValueSnapshots, stored_snapshots
from events.jetstream.connection import Reply
from schemas.permissions import SNAPSHOTS_BUCKET
from tests.broker import Broker, files_below

LARGE = random.Random(1).randbytes(1_200_000)  # three chunks, and nothing that compression would shorten
LARGER = random.Random(3).randbytes(1_700_000)  # four
SMALL = random.Random(2).randbytes(10_000)
KEY = "router.03"


def with_bucket(broker: Broker, body: Callable[[KeyValueSnapshots, KeyValueSnapshots], Awaitable[None]]) -> None:
    """Run a body on two processes' views of the bucket."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            await body(await KeyValueSnapshots.over(log.connection), await KeyValueSnapshots.over(log.connection))
        finally:
            await log.close()

    asyncio.run(main())


def pieces_on_disk(folder: Path, data: bytes) -> list[int]:
    """Return where pieces of a snapshot still lie in the store, as places in what was written."""
    packed = zlib.compress(data, 1)
    stored = b"\n".join(content for _, content in files_below(folder))
    return [place for place in range(0, len(packed) - 64, 4096) if packed[place : place + 64] in stored]


def test_the_newest_snapshot_comes_back_whatever_its_size(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        assert await one.load(KEY) is None
        for data in (SMALL, LARGE, SMALL, b"", LARGE):
            await one.save(KEY, data, 0)
            assert await other.load(KEY) == data

    with_bucket(broker, body)


def test_what_a_snapshot_replaces_is_overwritten_on_disk(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 0)
        assert len(pieces_on_disk(broker.folder, LARGE)) > 200
        await one.save(KEY, SMALL, 0)
        assert pieces_on_disk(broker.folder, LARGE) == []
        assert pieces_on_disk(broker.folder, SMALL)

    with_bucket(broker, body)


def test_a_process_overwrites_what_another_left(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 0)
        await other.save(KEY, SMALL, 0)
        assert pieces_on_disk(broker.folder, LARGE) == []
        assert await one.load(KEY) == SMALL

    with_bucket(broker, body)


def test_a_dropped_snapshot_is_gone_and_others_stay(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 0)
        await one.save("router.04", SMALL, 0)
        await other.drop(KEY)
        assert await one.load(KEY) is None
        assert pieces_on_disk(broker.folder, LARGE) == []
        assert await one.load("router.04") == SMALL
        await one.save(KEY, SMALL, 0)
        assert await other.load(KEY) == SMALL

    with_bucket(broker, body)


def test_a_snapshot_that_is_not_saved_whole_leaves_the_one_before(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process was killed while it saved, or the disk was full by then."""

    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 3)
        for chunks in (1, 2):
            await _cut_off(broker, LARGER, chunks)
            assert await other.load(KEY) == LARGE
            assert await other.load(KEY, at_least=3) == LARGE
            assert await other.upto(KEY) == 3
        monkeypatch.setattr(stored_snapshots, "UNDER_WAY_NS", 0)
        await one.save(KEY, SMALL, 9)
        assert await other.load(KEY) == SMALL
        assert pieces_on_disk(broker.folder, LARGER) == []
        assert pieces_on_disk(broker.folder, LARGE) == []

    with_bucket(broker, body)


def test_a_dropped_snapshot_takes_with_it_what_was_not_saved_whole(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 3)
        await _cut_off(broker, LARGER, 2)
        assert pieces_on_disk(broker.folder, LARGER)
        await other.drop(KEY)
        assert pieces_on_disk(broker.folder, LARGER) == pieces_on_disk(broker.folder, LARGE) == []

    with_bucket(broker, body)


async def _cut_off(broker: Broker, data: bytes, chunks: int) -> None:
    """Save a snapshot, of which only some chunks come to be stored."""
    log = await JetStreamLog.connect(broker.url)
    try:
        with pytest.raises(Unavailable, match="disk"):
            await KeyValueSnapshots(_FullAfter(log.connection, chunks)).save(KEY, data, 4)  # type: ignore[arg-type]
    finally:
        await log.close()


class _FullAfter:
    """A connection to a broker that stores some more values and then no more."""

    def __init__(self, connection: Connection, values: int) -> None:
        self._connection = connection
        self._left = values
        self.api = connection.api

    async def request(self, subject: str, *arguments: Any, **named: Any) -> Reply:
        if subject.startswith("$KV."):
            if not self._left:
                raise Unavailable("the disk is full")
            self._left -= 1
        return await self._connection.request(subject, *arguments, **named)


def test_two_processes_that_save_at_a_time_leave_one_of_their_snapshots_whole(broker: Broker) -> None:
    """A leader that hands over saves its last snapshot while its successor saves its first one."""

    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        for _ in range(5):
            await asyncio.gather(one.save(KEY, LARGE, 3), other.save(KEY, LARGER, 4))
            assert await one.load(KEY) in (LARGE, LARGER)

    with_bucket(broker, body)


@pytest.mark.parametrize("there", [SMALL, LARGE, None], ids=["a_small_one", "a_large_one", "none"])
def test_a_slow_process_does_not_replace_what_another_has_saved_since(there: bytes | None, broker: Broker) -> None:
    """It led the partition when its state was taken; words may have been forgotten since. Nothing of it is left."""

    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        if there is not None:
            await one.save(KEY, there, 3)
        revision = await one.revision(KEY)
        assert bool(revision) == (there is not None)
        await other.save(KEY, SMALL, 9, await other.revision(KEY))
        with pytest.raises(Conflict):
            await one.save(KEY, LARGER, 7, revision)
        assert await one.load(KEY) == SMALL
        assert pieces_on_disk(broker.folder, LARGER) == []
        await one.save(KEY, LARGE, 12, await one.revision(KEY))  # it leads again
        assert await other.load(KEY) == LARGE

    with_bucket(broker, body)


def test_a_snapshot_that_was_dropped_does_not_come_back(broker: Broker) -> None:
    """``forget`` drops one that nobody replaces in time: whoever was about to do that has the words still."""

    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 3, await one.revision(KEY))
        revision = await one.revision(KEY)
        await other.drop(KEY)
        with pytest.raises(Conflict):
            await one.save(KEY, LARGER, 7, revision)
        assert await other.load(KEY) is None
        await one.save(KEY, SMALL, 12, await one.revision(KEY))
        assert await other.load(KEY) == SMALL

    with_bucket(broker, body)


def test_a_process_saves_again_after_its_snapshot_was_dropped(broker: Broker) -> None:
    """It sent the revision of the dropped one: a worker that ended then left no snapshot at all."""

    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 3, await one.revision(KEY))
        await other.drop(KEY)
        await one.save(KEY, SMALL, 12, await one.revision(KEY))
        assert await other.load(KEY) == SMALL

    with_bucket(broker, body)


def test_a_process_saves_again_after_the_bucket_was_made_anew(broker: Broker) -> None:
    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            one = await KeyValueSnapshots.over(log.connection)
            await one.save(KEY, LARGE, 3)
            await log.connection.api(f"STREAM.DELETE.KV_{SNAPSHOTS_BUCKET}")
            other = await KeyValueSnapshots.over(log.connection)
            await one.save(KEY, SMALL, 12, await one.revision(KEY))
            assert await other.load(KEY) == SMALL
        finally:
            await log.close()

    asyncio.run(main())


def test_a_head_that_is_replaced_is_read_once_and_overwritten(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 3)
        asked: list[str] = []
        get = KeyValueSnapshots._get

        async def counted(snapshots: KeyValueSnapshots, name: str) -> Reply | None:
            asked.append(name)
            return await get(snapshots, name)

        monkeypatch.setattr(KeyValueSnapshots, "_get", counted)
        await one.save(KEY, SMALL, 12, await one.revision(KEY))
        assert asked == [KEY]
        assert pieces_on_disk(broker.folder, LARGE) == []

    with_bucket(broker, body)


def test_a_process_may_replace_its_own_snapshots_one_after_another(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        for number in range(3):
            await one.save(KEY, LARGER if number % 2 else SMALL, number, await one.revision(KEY))
            assert await other.upto(KEY) == number

    with_bucket(broker, body)


def test_a_snapshot_is_whole_while_it_is_replaced(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE, 3)
        done, loaded = False, 0

        async def load() -> None:
            nonlocal loaded
            while not done:
                assert await other.load(KEY) in (LARGE, LARGER)
                loaded += 1

        loading = asyncio.create_task(load())
        for number in range(10):
            await one.save(KEY, LARGER if number % 2 else LARGE, 3)
        done = True
        await loading
        assert loaded > 3

    with_bucket(broker, body)


def test_of_a_log_without_its_beginning_a_part_that_is_missing_is_asked_for_again(broker: Broker) -> None:
    """Another server of the cluster may have it. Counted as no snapshot, it would end the worker for good."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            snapshots = await KeyValueSnapshots.over(log.connection)
            await snapshots.save(KEY, LARGE, 7)
            last_chunk = {"last_by_subj": f"$KV.{SNAPSHOTS_BUCKET}.{KEY}.*"}
            found = await log.connection.api(f"STREAM.MSG.GET.KV_{SNAPSHOTS_BUCKET}", last_chunk)
            await log.connection.api(f"STREAM.MSG.DELETE.KV_{SNAPSHOTS_BUCKET}", {"seq": found["message"]["seq"]})
            assert await snapshots.load(KEY) is None
            with pytest.raises(Unavailable, match="log trim --snapshots"):
                await snapshots.load(KEY, at_least=5)
        finally:
            await log.close()

    asyncio.run(main())


def test_a_snapshot_tells_up_to_where_everything_is_in_it(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        assert await one.upto(KEY) is None
        await one.save(KEY, SMALL, 7)
        assert await other.upto(KEY) == 7
        await one.save(KEY, SMALL, 12)
        assert await other.upto(KEY) == 12

    with_bucket(broker, body)


def test_a_snapshot_that_cannot_be_asked_for_now_is_not_taken_for_none(broker: Broker) -> None:
    """Whoever took it for none would fold the whole log because a broker was away for a moment."""

    async def body(one: KeyValueSnapshots, _: KeyValueSnapshots) -> None:
        await one.save(KEY, SMALL, 0)
        broker.stop()
        with pytest.raises((Unavailable, UnknownOutcome)):
            await one.load(KEY)
        broker.start()
        assert await _once_up(one) == SMALL

    with_bucket(broker, body)


async def _once_up(snapshots: KeyValueSnapshots) -> bytes | None:
    """Load the snapshot once the broker, and JetStream in it, are up."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await snapshots.load(KEY)
            except (Unavailable, UnknownOutcome):
                await asyncio.sleep(0.05)


def test_a_bucket_that_is_gone_holds_no_recovery_up(broker: Broker) -> None:
    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            snapshots = await KeyValueSnapshots.over(log.connection)
            await log.connection.api(f"STREAM.DELETE.KV_{SNAPSHOTS_BUCKET}")
            assert await snapshots.load(KEY) is None
        finally:
            await log.close()

    asyncio.run(main())
