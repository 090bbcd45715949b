"""Appending: each row once, a batch whole or not at all, whatever happens in between."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import Misconfigured, Unavailable
from events.ledger import Head, LedgerWriter, verify, writer
from schemas.subjects import Partitions
from tests.events.ledger.endless_writer import BATCH
from tests.events.ledger.messages import (
    PARTITIONS,
    STREAM,
    anchor,
    exchanges,
    fetched,
    query,
    read,
    stored,
    tables,
    write,
)
from tests.events.ledger.messages import PASSED as EVENT
from tests.full_disk import small_disk

ROOT = Path(__file__).parents[3]


@given(sizes=st.lists(st.integers(1, 400), max_size=8), anchor_every=st.integers(1, 300))
@settings(max_examples=25, deadline=None)
def test_batches_of_any_size_make_the_same_file(
    sizes: list[int], anchor_every: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sizes")
    messages = exchanges(100)

    async def append(path: Path, cuts: list[int]) -> list[Head]:
        heads: list[Head] = []
        rest = messages
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            for size in [*cuts, len(messages)]:
                batch, rest = rest[:size], rest[size:]
                heads += (await target.append(batch, anchor_every)).heads_to_anchor
        return heads

    one, many = folder / "one.db", folder / "many.db"
    heads = asyncio.run(append(one, []))
    assert asyncio.run(append(many, sizes)) == heads
    assert [head.rows for head in heads] == list(range(anchor_every, 401, anchor_every))
    assert query(many, "SELECT * FROM events") == query(one, "SELECT * FROM events")
    assert tables(many) == tables(one)
    assert verify(many).ok


def test_rows_that_are_stored_already_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = exchanges(2)
    write(path, messages[:5])
    (again,) = write(path, messages)
    assert (again.added, again.head.rows) == (3, 8)
    assert read(path) == messages
    assert write(path, messages)[0].added == 0


def test_two_writers_on_one_file_store_each_row_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = exchanges(50)

    async def follow(size: int) -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            for start in range(0, len(messages), size):
                await target.append(messages[start : start + size])

    async def main() -> None:
        await asyncio.gather(follow(7), follow(11), follow(30))

    asyncio.run(main())
    assert read(path) == messages
    assert verify(path).ok


def test_a_writer_whose_closing_is_cancelled_closes_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        closing, stands = asyncio.Event(), asyncio.Event()

        async def stand(_: LedgerWriter) -> bool:
            closing.set()
            return await stands.wait()

        monkeypatch.setattr(LedgerWriter, "is_in_place", stand)
        target = await LedgerWriter.open(tmp_path / "ledger.db", STREAM, PARTITIONS)
        task = asyncio.create_task(target.close())
        await closing.wait()
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()
        with pytest.raises(ValueError, match="no active connection"):
            await target.head()

    asyncio.run(body())


def test_a_killed_writer_leaves_whole_batches_and_its_successor_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    command = [sys.executable, "-m", "tests.events.ledger.endless_writer", str(path)]
    for _ in range(3):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(5):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in process.stdout if line.endswith("\n"))])
        process.wait(timeout=30)
        process.stdout.close()
        report = verify(path)
        assert report.ok
        assert report.rows % BATCH == 0
        assert report.last_seq >= acknowledged


def test_a_full_disk_stores_nothing_of_the_batch_and_the_same_batch_goes_in_later(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = exchanges(100)

    async def main() -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            await target.append(messages[:40])
            (pages,) = await fetched(target, "PRAGMA page_count")
            await fetched(target, f"PRAGMA max_page_count = {pages + 2}")
            with pytest.raises(Unavailable, match=r"ledger\.db: cannot append 360 rows now: the disk .* is full"):
                await target.append(messages[40:])
            assert (await target.head()).rows == 40
            assert read(path) == messages[:40]
            await fetched(target, "PRAGMA max_page_count = 1000000")
            assert (await target.append(messages[40:])).added == 360

    asyncio.run(main())
    assert read(path) == messages
    assert verify(path).ok


def test_a_full_temporary_folder_keeps_no_row_out(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.events.ledger.messages import exchanges, write\n"
        "write(Path(sys.argv[1]), exchanges(100))"
    )
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        disk.fill()
        environment = os.environ | {"TMPDIR": str(disk.folder), "SQLITE_TMPDIR": str(disk.folder)}
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "ledger.db")], env=environment, check=True, timeout=60
        )
    assert query(tmp_path / "ledger.db", "SELECT count(*) FROM events") == [(400,)]


def test_a_locked_file_is_unavailable_and_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BUSY_TIMEOUT_MS", 10)
    path = tmp_path / "ledger.db"
    messages = exchanges(1)

    async def main() -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="another process holds the file's lock"):
                await target.append(messages)
            other.execute("ROLLBACK")
            other.close()
            assert (await target.append(messages)).added == 4

    asyncio.run(main())


def test_a_cancelled_append_frees_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = exchanges(500)

    async def main() -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            for yields in range(8):
                appending = asyncio.create_task(target.append(messages))
                for _ in range(yields):
                    await asyncio.sleep(0)
                appending.cancel()
                await asyncio.wait((appending,))
        assert (await asyncio.to_thread(verify, path)).ok
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            await target.append(messages)

    asyncio.run(main())
    assert read(path) == messages


@pytest.mark.parametrize(("stream", "partitions"), [("OTHER", PARTITIONS), (STREAM, Partitions(4, 8))])
def test_a_ledger_of_another_stream_is_refused(stream: str, partitions: Partitions, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, exchanges(1))
    with pytest.raises(Misconfigured, match="follows stream NEURAXIS with 4 agent and 16 session partitions"):
        asyncio.run(LedgerWriter.open(path, stream, partitions))


def test_commits_are_flushed_and_readers_do_not_block_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def main() -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            (synchronous,) = await fetched(target, "PRAGMA synchronous")
            (journal,) = await fetched(target, "PRAGMA journal_mode")
            assert (synchronous, journal) == (2, "wal")

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the open files of this process")
def test_an_opening_that_is_cancelled_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def main() -> None:
        opening = asyncio.create_task(LedgerWriter.open(path, STREAM, PARTITIONS))
        await asyncio.sleep(0)  # it has begun in its thread
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(main())  # it waits for that thread
    assert path.exists()
    assert str(path) not in {os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")}


def test_the_writer_knows_the_last_rows(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = [stored(1, EVENT), stored(2, EVENT), anchor(3, 2, 2, "0" * 64), anchor(4, 3, 3, "0" * 64)]

    async def main() -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as target:
            assert await target.head() == Head()
            assert await target.last_own() is None
            assert await target.last_foreign() == 0
            await target.append(messages)
            assert (await target.head()).rows == 4
            assert await target.last_own() == messages[3]
            assert await target.last_foreign() == 2

    asyncio.run(main())
