"""One bit turned anywhere, in the file or in the log beside it: found and located, or in bytes that nobody reads."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from events.errors import LogError
from events.ledger import Check, LedgerWriter, Verification, rebuild, verify
from events.ledger.checking.wal_damage import wal_damage
from events.ledger.read_models import FOLDS
from events.log import Stored
from schemas.catalogue import CATALOGUE
from tests.each import each
from tests.events.ledger.messages import PARTITIONS, STREAM, exchanges, flip, query, read, stored, write

FOLDED = tuple(CATALOGUE[str(topic)].sample for topic in FOLDS)
MESSAGES = exchanges(30) + [
    stored(121 + number, FOLDED[number % len(FOLDED)], exchange=f"x{number % 7}") for number in range(4 * len(FOLDED))
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a ledger at rest: everything in one file."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    write(path, MESSAGES)
    assert verify(path).ok
    return path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of a ledger at work: what was committed last is in the log beside the file."""
    folder = tmp_path_factory.mktemp("running")
    (folder / "copy").mkdir()

    async def main() -> None:
        async with await LedgerWriter.open(folder / "ledger.db", STREAM, PARTITIONS) as writer:
            for start in range(0, len(MESSAGES), 40):
                await writer.append(MESSAGES[start : start + 40])
            for name in ("ledger.db", "ledger.db-wal"):
                shutil.copyfile(folder / name, folder / "copy" / name)

    asyncio.run(main())
    path = folder / "copy" / "ledger.db"
    assert path.with_name("ledger.db-wal").stat().st_size > 10 * 16384
    assert verify(copied(path, folder / "again")).ok
    return path


def copied(path: Path, folder: Path) -> Path:
    shutil.copytree(path.parent, folder, ignore=shutil.ignore_patterns("*-shm"), dirs_exist_ok=True)
    return folder / path.name


def everything(path: Path) -> dict[str, Any]:
    """Return all that SQL can read of a file, however it is asked."""
    connection = sqlite3.connect(path)
    try:
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
        rows = {
            name: connection.execute(f"SELECT * FROM {name}").fetchall()
            for kind, name, *_ in schema
            if kind in ("table", "view")
        }
        pragmas = ("user_version", "application_id", "encoding", "page_size")
        notes = {name: connection.execute(f"PRAGMA {name}").fetchall() for name in pragmas}
        return {"schema": schema, **rows, **notes}
    finally:
        connection.close()


def outcome(path: Path) -> Verification | str:
    """Return what verifying a file finds, or the error that says what it is not."""
    try:
        return verify(path)
    except LogError as error:
        return str(error)


def damaged(path: Path, part: str, bit: int, folder: Path) -> Path:
    found = copied(path, folder)
    file = found.with_name(part)
    content = file.read_bytes()
    file.write_bytes(flip(content, bit % (8 * len(content))))
    return found


@given(bit=st.integers(0, 2**40) | st.integers(0, 799))
@settings(max_examples=150, deadline=None)
def test_a_bit_of_the_file_is_found_or_changes_nothing_that_can_be_read(
    bit: int, sound: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = damaged(sound, sound.name, bit, tmp_path_factory.mktemp("bit"))
    report = outcome(path)
    if isinstance(report, str):
        assert str(path) in report
    elif report.ok:
        assert everything(path) == everything(sound)
    else:
        located = report.findings[0]
        assert located.seq or located.check in (Check.STRUCTURE, Check.SCHEMA, Check.META, Check.MODELS)


@given(bit=st.integers(0, 2**40) | st.integers(0, 8 * 56 - 1))
@settings(max_examples=100, deadline=None)
def test_a_bit_of_the_log_beside_it_is_found_or_loses_nothing(
    bit: int, running: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = running.with_name(f"{running.name}-wal").read_bytes()
    assume(bit % (8 * len(content)) not in salts_of_the_last_frame(content))
    path = damaged(running, f"{running.name}-wal", bit, tmp_path_factory.mktemp("bit"))
    report = outcome(path)
    if isinstance(report, str):
        assert str(path) in report
    elif report.ok:
        assert read(path) == MESSAGES
    else:
        assert report.findings[0].check is Check.JOURNAL


def salts_of_the_last_frame(content: bytes) -> range:
    size = 24 + int.from_bytes(content[8:12], "big")
    start = 32 + ((len(content) - 32) // size - 1) * size
    return range(8 * (start + 8), 8 * (start + 16))


def test_a_last_frame_of_other_salts_is_taken_for_one_that_was_never_finished(running: Path) -> None:
    content = running.with_name(f"{running.name}-wal").read_bytes()
    for bit in salts_of_the_last_frame(content)[::9]:
        assert wal_damage(flip(content, bit)) == ""


def commits(content: bytes) -> Iterator[int]:
    """Yield where each transaction of a write-ahead log ends."""
    size = 24 + int.from_bytes(content[8:12], "big")
    for start in range(32, len(content) - size + 1, size):
        if content[start + 4 : start + 8] != bytes(4):
            yield start + size


def test_a_log_that_ends_within_a_transaction_is_no_damage(running: Path) -> None:
    content = running.with_name(f"{running.name}-wal").read_bytes()
    assert wal_damage(content) == ""
    first, second, *_ = commits(content)
    for end in (first, first + 1, first + 24, (first + second) // 2, second - 1):
        assert wal_damage(content[:end]) == ""


def test_a_log_written_over_an_older_one_ends_where_the_older_begins(running: Path) -> None:
    content = running.with_name(f"{running.name}-wal").read_bytes()
    first, *_ = commits(content)
    older = bytearray(content[first:])
    size = 24 + int.from_bytes(content[8:12], "big")
    for start in range(0, len(older), size):
        older[start + 8 : start + 12] = (int.from_bytes(older[start + 8 : start + 12], "big") - 1).to_bytes(4, "big")
    assert wal_damage(content[:first] + bytes(older)) == ""


@each("content", [b"7", b"\0" * 32, b"\0" * 40_000], named=["cut", "no header", "zeros"])
def test_a_log_without_a_sound_header_is_damage(content: bytes) -> None:
    assert "header" in wal_damage(content)


@each(
    ("statement", "check"),
    [
        ("UPDATE meta SET value = 'NEURAXIR' WHERE key = 'stream'", Check.META),
        ("UPDATE meta SET value = 5 WHERE key = 'agents'", Check.META),
        ("UPDATE meta SET value = 'e' || substr(value, 2) || 'x' WHERE key = 'seal'", Check.META),
        ("DELETE FROM exchanges WHERE exchange = 'x1'", Check.MODELS),
        ("INSERT INTO exchanges (exchange, agent, session) VALUES ('x9999', '', '')", Check.MODELS),
        ("UPDATE mode_selections SET margin = margin + 1 WHERE seq = 3", Check.MODELS),
        ("PRAGMA user_version = 7", Check.SCHEMA),
        ("DROP VIEW routing_decisions", Check.SCHEMA),
        ("DROP INDEX events_exchange", Check.SCHEMA),
    ],
)
def test_what_the_chain_does_not_cover_is_checked_beside_it(
    statement: str, check: Check, sound: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = copied(sound, tmp_path_factory.mktemp("case"))
    query(path, statement)
    report = verify(path)
    assert {finding.check for finding in report.findings} == {check}


def test_a_read_model_that_is_otherwise_is_located_and_a_rebuild_mends_it(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    query(path, "UPDATE mode_selections SET margin = margin + 1 WHERE seq = 7")
    [finding] = verify(path).findings
    assert (finding.seq, finding.check) == (7, Check.MODELS)
    assert "mode_selections: margin of 7" in finding.detail
    rebuild(path)
    assert verify(path).ok
    assert everything(path) == everything(sound)


def test_read_models_of_another_release_are_not_held_against_this_ones(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    query(path, "UPDATE meta SET value = 'of old' WHERE key = 'models'")
    query(path, "DROP TABLE act_loops")
    assert verify(path).ok


def test_a_ledger_from_before_the_seal_gets_one_when_it_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, MESSAGES[:4])
    [(seal,)] = query(path, "SELECT value FROM meta WHERE key = 'seal'")
    query(path, "DELETE FROM meta WHERE key = 'seal'")
    assert verify(path).ok
    more: list[Stored] = MESSAGES[:8]
    write(path, more)
    assert query(path, "SELECT value FROM meta WHERE key = 'seal'") == [(seal,)]
    assert read(path) == more
