"""Snapshots in their bucket: the newest comes back, and nothing of what it replaced stays on disk."""

import asyncio
import random
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from events.jetstream import JetStreamLog, KeyValueSnapshots
from tests.broker import Broker

LARGE = random.Random(1).randbytes(1_200_000)  # three chunks, and nothing that compression would shorten
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
    stored = b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [place for place in range(0, len(packed) - 64, 4096) if packed[place : place + 64] in stored]


def test_the_newest_snapshot_comes_back_whatever_its_size(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        assert await one.load(KEY) is None
        for data in (SMALL, LARGE, SMALL, b"", LARGE):
            await one.save(KEY, data)
            assert await other.load(KEY) == data

    with_bucket(broker, body)


def test_what_a_snapshot_replaces_is_overwritten_on_disk(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE)
        assert len(pieces_on_disk(broker.folder, LARGE)) > 200
        await one.save(KEY, SMALL)
        assert pieces_on_disk(broker.folder, LARGE) == []
        assert pieces_on_disk(broker.folder, SMALL)

    with_bucket(broker, body)


def test_a_process_overwrites_what_another_left(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE)
        await other.save(KEY, SMALL)
        assert pieces_on_disk(broker.folder, LARGE) == []
        assert await one.load(KEY) == SMALL

    with_bucket(broker, body)


def test_a_dropped_snapshot_is_gone_and_others_stay(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        await one.save(KEY, LARGE)
        await one.save("router.04", SMALL)
        await other.drop(KEY)
        assert await one.load(KEY) is None
        assert pieces_on_disk(broker.folder, LARGE) == []
        assert await one.load("router.04") == SMALL
        await one.save(KEY, SMALL)
        assert await other.load(KEY) == SMALL

    with_bucket(broker, body)


def test_a_snapshot_tells_when_it_was_saved_by_the_server_s_clock(broker: Broker) -> None:
    async def body(one: KeyValueSnapshots, other: KeyValueSnapshots) -> None:
        assert await one.saved_ns(KEY) is None
        await one.save(KEY, SMALL)
        first = await other.saved_ns(KEY)
        await one.save(KEY, SMALL)
        second = await other.saved_ns(KEY)
        assert first is not None
        assert second is not None
        assert first < second

    with_bucket(broker, body)
