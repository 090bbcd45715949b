"""The oldest rows move into archive files, and everything reads them and the ledger as one."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from events.errors import LedgerDamaged, Misconfigured, Unavailable
from events.ledger import (
    ExchangeFilter,
    LedgerReader,
    archive,
    back_up,
    list_exchanges,
    path_aside,
    put_aside,
    rebuild,
    verify,
)
from events.ledger.schema import MOST_ARCHIVES, connect_read_only
from tests.events.ledger.messages import (
    FEEDBACK,
    INPUT,
    MS,
    START_NS,
    anchor,
    exchanges,
    query,
    read,
    stored,
    write,
)
from tests.full_disk import small_disk

COUNT = 400
MESSAGES = exchanges(COUNT // 4)


def at(seq: int) -> int:
    """Return the time of a message (10 ms after another), Unix nanoseconds."""
    return START_NS + 10 * seq * MS


def archived(path: Path, *seqs: int) -> Path:
    """Write a ledger whose rows of before some messages are in archives of their own."""
    write(path, MESSAGES)
    for seq in seqs:
        archive(path, at(seq))
    return path


def own_rows(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as file:
        return [seq for (seq,) in file.execute("SELECT seq FROM events ORDER BY seq")]


def files(folder: Path) -> list[str]:
    """Return the names of ledgers and archives in a folder."""
    return sorted(file.name for file in folder.iterdir() if file.suffix == ".db")


def archives(path: Path) -> list[Path]:
    return [path.with_name(name) for name in files(path.parent) if name != path.name]


def everything(path: Path) -> tuple[object, ...]:
    """Return what a ledger's readers find, whatever of it is where."""
    with LedgerReader(path) as reader:
        info = reader.info()
        return (
            [each for batch in reader.history() for each in batch],
            [each for batch in reader.history(["log.*.*.reflex.>"], 77, 311) for each in batch],
            reader.fold_bodies(lambda count, _: count + 1, 0),
            reader.exchange("x3"),
            reader.exchange("x90", everywhere=True),
            reader.exchange_ids("x1", 50),
            reader.last_exchange(),
            [reader.at(seq) for seq in (1, 99, 100, 101, COUNT)],
            [reader.hash_at(seq) for seq in (1, 99, 100, 101, COUNT)],
            reader.extent([">"]),
            reader.head(),
            (info.rows, info.first_seq, info.last_seq, info.first_time_ns, info.partitions),
            list_exchanges(path, ExchangeFilter(limit=200)),
        )


def test_archives_and_ledger_are_read_as_one_file(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = archived(tmp_path / "whole" / "ledger.db")
    parted = archived(tmp_path / "ledger.db", 100, 230, 231)
    assert own_rows(parted) == list(range(231, COUNT + 1))
    assert everything(parted) == everything(whole)
    found, expected = verify(parted), verify(whole)
    assert found.ok
    assert (found.rows, found.first_seq, found.head) == (COUNT, 1, expected.head)


def test_a_ledger_goes_on_behind_its_archives(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, MESSAGES[:200])
    archive(path, at(150))
    write(path, MESSAGES[200:])
    archive(path, at(300))
    assert read(path) == MESSAGES
    assert verify(path).ok
    rebuild(path)
    assert verify(path).ok, "read models were folded from a part of the events"
    assert len(list_exchanges(path, ExchangeFilter(limit=200)).exchanges) == COUNT // 4


def test_what_its_writer_goes_on_from_stays_in_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    (written,) = write(path, MESSAGES[:40])
    write(path, [anchor(41, 40, 40, written.head.hash.hex()), *(stored(seq, INPUT) for seq in range(42, 61))])
    archive(path, at(10_000))
    assert own_rows(path)[0] == 41
    assert verify(path).anchors == 1
    again = archive(path, at(10_000))
    assert (again.rows, again.first_seq, again.last_seq) == (0, 1, 40)


def test_archives_are_put_into_one(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db", *range(10, 10 * MOST_ARCHIVES + 1, 10))
    before = everything(path)
    with pytest.raises(Misconfigured, match="--join"):
        archive(path, at(200))
    done = archive(path, at(200), join=True)
    assert (done.first_seq, done.last_seq, done.rows, len(done.joined)) == (1, 199, 199, MOST_ARCHIVES)
    assert files(tmp_path) == sorted([path.name, Path(done.path).name])
    assert everything(path) == before
    assert verify(path).ok
    archive(path, at(210))
    assert everything(path) == before


def test_a_backup_is_one_complete_file(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db", 100, 200)
    (tmp_path / "to").mkdir()
    copy = tmp_path / "to" / "copy.db"
    assert back_up(path, copy).rows == COUNT
    assert own_rows(copy) == list(range(1, COUNT + 1))
    assert everything(copy) == everything(path)


def test_a_ledger_that_was_set_aside_keeps_its_archives(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db", 100)
    kept = path_aside(path, 150)
    put_aside(path, kept)
    write(path, [*MESSAGES[:149], *(stored(seq, FEEDBACK, at_ms=10 * seq) for seq in range(150, COUNT))])
    after = everything(kept)
    archive(path, at(100))
    archive(path, at(200), join=True)
    assert everything(kept) == after
    assert verify(kept).ok
    assert verify(path).ok


def test_an_archive_that_is_missing_or_another_is_named(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db", 100, 200)
    first, second = archives(path)
    with pytest.raises(Misconfigured, match=r"archive of ledger\.db: name that ledger"):
        read(first)
    away = tmp_path / "away.db"
    first.rename(away)
    with pytest.raises(Misconfigured, match="for sequence 1 to 99, is not there: put it back beside the ledger"):
        read(path)
    first.symlink_to(away)
    assert len(read(path)) == COUNT
    first.unlink()
    first.write_bytes(second.read_bytes())
    with pytest.raises(LedgerDamaged, match="is not the file that was written"):
        verify(path)


def test_a_changed_row_of_an_archive_is_found(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db", 100)
    (file,) = archives(path)
    query(file, "UPDATE events SET data = '{}' WHERE seq = 50")
    found = verify(path)
    assert not found.ok
    assert found.findings[0].seq == 50
    with pytest.raises(LedgerDamaged, match="not sound"):
        archive(path, at(200))


def test_a_ledger_in_use_is_left_alone(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db")
    with closing(connect_read_only(path)) as reader:
        reader.execute("SELECT count(*) FROM events").fetchone()
        with pytest.raises(Unavailable, match="is in use: stop the set"):
            archive(path, at(200))
    assert own_rows(path) == list(range(1, COUNT + 1))
    assert archives(path) == []
    archive(path, at(200))


def test_a_disk_that_fills_at_any_moment_is_named_and_the_next_run_finishes(tmp_path: Path) -> None:
    """The file is sound all along: nobody may be told to move it aside."""
    said = []
    with small_disk(tmp_path / "small", megabytes=4) as disk:
        path = disk.folder / "ledger.db"
        write(path, MESSAGES)
        archive(path, at(50))  # is joined, and deleted before room is given back
        sound, before = path.read_bytes(), everything(path)
        former = {each: each.read_bytes() for each in archives(path)}
        for spare in range(0, 2 * len(sound) + 1, len(sound) // 10):
            (disk.folder / "spare").write_bytes(bytes(spare))
            disk.fill()
            (disk.folder / "spare").unlink()
            try:
                archive(path, at(150), join=True)
            except Unavailable as full:
                said.append(str(full))
            assert verify(path).ok, spare
            assert everything(path) == before, spare
            disk.clear()
            with suppress(Misconfigured):  # there was room for all of it
                archive(path, at(150), join=True)
            assert len(archives(path)) == 1, spare
            assert everything(path) == before, spare
            assert path.stat().st_size < len(sound), spare
            for each in disk.folder.iterdir():
                each.unlink()
            for each, content in {path: sound, **former}.items():
                each.write_bytes(content)
    assert all("is full: free some space" in each for each in said), said
    assert {each.split("cannot ")[1].split(" ")[0] for each in said} == {"archive", "give"}, said


def test_a_disk_that_is_read_only_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=4) as disk:
        path = disk.folder / "ledger.db"
        write(path, MESSAGES)
        disk.protect(True)
        with pytest.raises(Unavailable, match="cannot archive rows now: the disk is mounted read-only"):
            archive(path, at(150))
        (tmp_path / "link.db").symlink_to(path)
        for each in (path, tmp_path / "link.db"):
            with pytest.raises(Unavailable, match="now: the disk is mounted read-only"):
                rebuild(each)
        disk.protect(False)
        assert archive(path, at(150)).rows


BARE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
"""Runs a program as root without root's right to write what the owner may not."""


def test_a_ledger_that_may_not_be_written_is_a_matter_of_rights(tmp_path: Path) -> None:
    path = tmp_path / "set" / "ledger.db"
    path.parent.mkdir()
    write(path, MESSAGES)
    path.chmod(0o400)
    path.parent.chmod(0o500)
    command = [sys.executable, "-m", "deploy.cli", "log", "archive", "--older-than", "0", "--ledger", str(path)]
    if os.geteuid() == 0:
        if shutil.which(BARE[0]) is None:
            pytest.skip("root may write everything, and setpriv is not there to take that away")
        command = [*BARE, *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        path.parent.chmod(0o700)
    assert done.returncode == 2, done.stderr
    assert "give this user the right to write the file" in " ".join(done.stderr.split())


def test_looking_up_uses_the_indexes_of_every_file(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db", 100, 200)
    questions = (
        "SELECT seq FROM events WHERE exchange = 'x3' AND exchange <> '' ORDER BY seq",
        "SELECT seq, data FROM events WHERE seq BETWEEN 90 AND 110 ORDER BY seq",
        "SELECT hash FROM events WHERE seq <= 150 ORDER BY seq DESC LIMIT 1",
        "SELECT seq FROM events WHERE seq > 150 AND seq <= 400 ORDER BY seq LIMIT 1",
    )
    with closing(connect_read_only(path)) as file:
        for question in questions:
            plan = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {question}")]
            assert len([step for step in plan if step.startswith("SEARCH")]) == 3, (question, plan)


KILLED = """
import sys
from pathlib import Path
from events.ledger import archive
print("begun", flush=True)
archive(Path(sys.argv[1]), int(sys.argv[2]), join=True)
"""


@pytest.mark.parametrize("rounds", [12, pytest.param(150, marks=pytest.mark.faults)])
def test_nothing_is_lost_or_had_twice_when_it_is_killed(tmp_path: Path, rounds: int) -> None:
    path = tmp_path / "ledger.db"
    messages = [stored(seq, INPUT if seq % 2 else FEEDBACK, at_ms=10 * seq) for seq in range(1, 6_001)]
    write(path, messages, size=1_000)
    began = time.monotonic()
    run = subprocess.run([sys.executable, "-c", KILLED, str(path), str(at(200))], check=True)
    took, cut = time.monotonic() - began, 200
    assert run.returncode == 0
    killed = 0
    for number in range(rounds):
        cut += 5_000 // rounds
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(at(cut))], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(took * (0.2 + 0.8 * number / rounds) / 2)
            killed += process.poll() is None
            process.kill()
        assert verify(path).ok, number
        assert read(path) == messages, number
    assert killed, "it was never killed in the middle"
    archive(path, at(5_900), join=True)
    assert read(path) == messages
    assert own_rows(path)[0] == 5_900


def test_flipped_bits_in_the_note_of_archives_are_told(tmp_path: Path) -> None:
    path = archived(tmp_path / "ledger.db", 100)
    query(path, "UPDATE meta SET value = replace(value, '\"rows\"', '\"rowz\"') WHERE key = 'archives'")
    with pytest.raises(LedgerDamaged, match="its note of its archives is damaged"):
        read(path)
