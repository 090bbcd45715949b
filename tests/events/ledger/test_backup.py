"""Copies of a ledger: those made rightly, and those that lack the write-ahead log."""

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from events.errors import LedgerDamaged, Misconfigured, Unavailable
from events.ledger import LedgerReader, LedgerWriter, back_up, rebuild, verify
from tests.events.ledger.messages import PARTITIONS, STREAM, exchanges, flip, query, read, write
from tests.full_disk import small_disk

MESSAGES = exchanges(30)


def while_written(path: Path, act: Callable[[LedgerWriter], Awaitable[None]]) -> None:
    """Run ``act`` beside a writer that has stored the messages and has the file open."""

    async def main() -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS) as writer:
            await writer.append(MESSAGES)
            await act(writer)

    asyncio.run(main())


def copied_bare(path: Path, copy: Path) -> None:
    """Copy a ledger while it is written to, as ``cp ledger.db`` does: without the log beside it."""

    async def act(_: LedgerWriter) -> None:
        shutil.copyfile(path, copy)

    while_written(path, act)


def lacks_wal(path: Path) -> bool:
    with LedgerReader(path) as reader:
        return reader.info().lacks_wal


def test_a_copy_without_the_log_beside_it_is_told_from_an_empty_ledger(tmp_path: Path) -> None:
    copied_bare(tmp_path / "ledger.db", tmp_path / "copy.db")
    write(tmp_path / "empty.db", [])
    assert read(tmp_path / "copy.db") == read(tmp_path / "empty.db") == []
    assert lacks_wal(tmp_path / "copy.db")
    assert not lacks_wal(tmp_path / "empty.db")


def test_a_later_copy_without_the_log_beside_it_is_told_from_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, MESSAGES[:40])
    assert not lacks_wal(path)
    copied_bare(path, tmp_path / "copy.db")
    assert len(read(tmp_path / "copy.db")) < len(MESSAGES)
    assert lacks_wal(tmp_path / "copy.db")
    assert not lacks_wal(path)


def test_a_ledger_at_work_is_no_copy_that_lacks_anything(tmp_path: Path) -> None:
    async def act(_: LedgerWriter) -> None:
        assert not lacks_wal(tmp_path / "ledger.db")

    while_written(tmp_path / "ledger.db", act)


def test_a_writer_that_goes_on_after_another_closed_notes_that_it_works(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def act(writer: LedgerWriter) -> None:
        async with await LedgerWriter.open(path, STREAM, PARTITIONS):
            pass
        assert query(path, "SELECT value FROM meta WHERE key = 'state'") == [("at rest",)]
        await writer.append(exchanges(31))
        assert query(path, "SELECT value FROM meta WHERE key = 'state'") == [("at work",)]

    while_written(path, act)


def test_a_rebuild_declares_a_file_whole(tmp_path: Path) -> None:
    copied_bare(tmp_path / "ledger.db", tmp_path / "copy.db")
    rebuild(tmp_path / "copy.db")
    assert not lacks_wal(tmp_path / "copy.db")


def test_a_note_that_nobody_wrote_is_found(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", MESSAGES)
    query(tmp_path / "ledger.db", "UPDATE meta SET key = 'statf' WHERE key = 'state'")
    assert "'statf'" in verify(tmp_path / "ledger.db").findings[0].detail


@pytest.mark.parametrize("linked", [False, True])
def test_a_backup_of_a_ledger_at_work_holds_all_of_it_in_one_file(linked: bool, tmp_path: Path) -> None:
    path, copy = tmp_path / "ledger.db", tmp_path / "kept" / "copy.db"
    copy.parent.mkdir()
    if linked:  # to another disk, say: SQLite keeps its log beside the file itself
        (tmp_path / "disk").mkdir()
        path.symlink_to(tmp_path / "disk" / "ledger.db")

    async def act(writer: LedgerWriter) -> None:
        assert not lacks_wal(path)
        found = await asyncio.to_thread(back_up, path, copy)
        assert (found.ok, found.rows) == (True, len(MESSAGES))
        await writer.append(exchanges(31))

    while_written(path, act)
    assert os.listdir(copy.parent) == ["copy.db"]
    assert read(copy) == MESSAGES
    assert not lacks_wal(copy)
    assert verify(copy).ok


def test_a_backup_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", MESSAGES)
    before = os.umask(0)
    try:
        back_up(tmp_path / "ledger.db", tmp_path / "copy.db")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


def test_a_ledger_and_the_log_beside_it_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    async def act(_: LedgerWriter) -> None:
        for file in os.scandir(tmp_path):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name

    before = os.umask(0)
    try:
        while_written(tmp_path / "ledger.db", act)
    finally:
        os.umask(before)


def test_a_backup_onto_a_full_disk_names_the_copy_and_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", exchanges(200))
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        disk.fill()
        with pytest.raises(Unavailable, match=r"small/ledger\.db cannot be written: its disk .* is full"):
            back_up(tmp_path / "ledger.db", disk.folder / "ledger.db")
        assert [each.name for each in disk.folder.iterdir()] == ["filler"]


@pytest.mark.parametrize("kilobytes", [0, 8, 24, 40, 64])
def test_a_ledger_without_room_on_its_disk_says_so_wherever_sqlite_fails(kilobytes: int, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        spare = disk.folder / "spare"
        spare.write_bytes(bytes(kilobytes * 1024))
        disk.fill()
        spare.unlink()
        with pytest.raises(Unavailable, match=r"is full: free some space|No space left on device"):
            write(disk.folder / "ledger.db", exchanges(1))


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", MESSAGES)
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(Misconfigured, match=r"copy\.db exists"):
        back_up(tmp_path / "ledger.db", tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "mine"


def test_what_is_not_sound_is_not_kept_as_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, MESSAGES)
    query(path, "UPDATE events SET data = CAST('{}' AS BLOB) WHERE seq = 7")
    with pytest.raises(LedgerDamaged, match="sequence 7"):
        back_up(path, tmp_path / "copy.db")
    copied_bare(tmp_path / "other.db", tmp_path / "bare.db")
    with pytest.raises(LedgerDamaged, match=r"copied without bare\.db-wal"):
        back_up(tmp_path / "bare.db", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_a_damaged_log_beside_a_ledger_is_no_shorter_ledger_to_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def act(writer: LedgerWriter) -> None:
        await writer.append(exchanges(31))
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{tmp_path / 'damaged.db'}{suffix}")

    while_written(path, act)
    wal = tmp_path / "damaged.db-wal"
    wal.write_bytes(flip(wal.read_bytes(), 8 * 100_000))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "damaged.db").symlink_to(tmp_path / "damaged.db")
    for folder in (tmp_path, tmp_path / "linked"):
        with pytest.raises(LedgerDamaged, match=r"damaged\.db-wal is damaged"):
            back_up(folder / "damaged.db", tmp_path / "copy.db")


def left_behind(path: Path) -> None:
    """Leave what a killed writer has beside its ledger, whose file alone somebody then deletes."""

    async def act(_: LedgerWriter) -> None:
        shutil.copyfile(f"{path}-wal", f"{path}-kept")

    while_written(path, act)
    path.unlink()
    Path(f"{path}-kept").rename(f"{path}-wal")


def test_a_new_ledger_takes_nothing_of_what_another_one_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    left_behind(path)
    write(path, MESSAGES[:8])
    assert [each.seq for each in read(path)] == [each.seq for each in MESSAGES[:8]]
    assert verify(path).ok
    assert Path(f"{path}-wal-left").stat().st_size, "it may hold rows that the other ledger lacks"


def test_no_copy_is_put_beside_what_another_ledger_left(tmp_path: Path) -> None:
    write(tmp_path / "ledger.db", MESSAGES)
    left_behind(tmp_path / "copy.db")
    with pytest.raises(Misconfigured, match=r"copy\.db-wal is of a ledger that was there"):
        back_up(tmp_path / "ledger.db", tmp_path / "copy.db")


def test_no_ledger_is_made_where_the_disk_behind_a_link_is_not_mounted(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.symlink_to(tmp_path / "disk" / "folder" / "ledger.db")
    with pytest.raises(Unavailable, match="link leads to is gone: mount its disk, or make it"):
        asyncio.run(LedgerWriter.open(path, STREAM, PARTITIONS))
    assert not (tmp_path / "disk").exists()
