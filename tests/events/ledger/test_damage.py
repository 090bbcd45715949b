"""Damaged files: a clear error or a finding, never a raw error of SQLite, never a silent change."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import LedgerDamaged, LogError, Misconfigured
from events.ledger import Check, LedgerReader, LedgerWriter, exchange_result, rebuild, verify
from tests.each import each
from tests.events.ledger.messages import PARTITIONS, STREAM, exchanges, flip, query, read, write


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    write(path, exchanges(60))
    assert path.stat().st_size > 10 * 16384
    return path


def open_writer(path: Path) -> None:
    async def main() -> None:
        await (await LedgerWriter.open(path, STREAM, PARTITIONS)).close()

    asyncio.run(main())


@each("tenths", range(1, 10))
@each("off", [0, 1, -1, 16384 // 2], named=["page", "one more", "one less", "half a page"])
def test_a_file_cut_anywhere_is_damage_by_name(
    tenths: int, off: int, sound: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("case") / "ledger.db"
    pages = sound.stat().st_size // 16384
    path.write_bytes(sound.read_bytes()[: max(1, pages * tenths // 10) * 16384 + off])
    for check in (verify, read, rebuild, open_writer):
        with pytest.raises(LedgerDamaged, match=r"ledger\.db: .*; move the file aside"):
            check(path)


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be one? " * 40, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_damage(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    for check in (verify, read, rebuild, open_writer):
        with pytest.raises(LedgerDamaged, match=r"ledger\.db: "):
            check(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    query(path, "CREATE TABLE events (seq INTEGER PRIMARY KEY)")
    content = path.read_bytes()
    for check in (verify, read, rebuild, open_writer):
        with pytest.raises(LedgerDamaged, match="is not a ledger"):
            check(path)
    assert path.read_bytes() == content


def test_an_empty_file_is_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    for check in (verify, read, rebuild, open_writer):
        with pytest.raises(LedgerDamaged, match="is not a ledger"):
            check(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    for check in (verify, read, rebuild):
        with pytest.raises(Misconfigured, match="no ledger is here"):
            check(tmp_path / "ledger.db")
    with pytest.raises(Misconfigured, match="no ledger is here"):
        asyncio.run(exchange_result(tmp_path / "ledger.db", "x1"))
    assert list(tmp_path.iterdir()) == []


@given(bits=st.lists(st.integers(0, 2**40), min_size=1, max_size=200))
@settings(max_examples=60, deadline=None)
def test_a_badly_damaged_file_raises_nothing_but_the_logs_errors(
    bits: list[int], sound: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("bits") / "ledger.db"
    content = sound.read_bytes()
    for bit in bits:
        content = flip(content, bit % (8 * len(content)))
    told: list[str] = []
    for use in (verify, read, fold, rows, look_up, rebuild, open_writer):
        path.write_bytes(content)
        for leftover in path.parent.glob("ledger.db-*"):
            leftover.unlink()
        try:
            use(path)
        except LogError as error:
            told.append(str(error))
    assert all(str(path) in message for message in told)


def fold(path: Path) -> None:
    with LedgerReader(path) as reader:
        reader.fold_bodies(lambda count, _: count + 1, 0)


def rows(path: Path) -> None:
    with LedgerReader(path) as reader:
        reader.info()
        reader.head()


def look_up(path: Path) -> None:
    with LedgerReader(path) as reader:
        reader.exchange("x7")
        reader.at(77)
        reader.hash_at(77)


@each("headers", ["5", "[]", '{"ce-id": 5}', '{"ce-id": "a"', "", b"", b"\xff"])
def test_headers_that_are_no_headers_are_damage_by_row(
    headers: object, sound: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("case") / "ledger.db"
    shutil.copyfile(sound, path)
    query(path, "UPDATE events SET headers = ? WHERE seq = 9", headers)
    with pytest.raises(LedgerDamaged, match=r"ledger\.db: .*row"):
        read(path)
    report = verify(path)
    assert [(finding.seq, finding.check) for finding in report.findings] == [(9, Check.HASH)]


def test_a_format_of_a_later_release_is_refused_by_name(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    shutil.copyfile(sound, path)
    query(path, "UPDATE meta SET value = 99 WHERE key = 'format'")
    for check in (verify, read, open_writer):
        with pytest.raises(Misconfigured, match="ledger format 99"):
            check(path)


LOOKS: dict[str, Callable[[LedgerReader], object]] = {
    "history": lambda reader: list(reader.history()),
    "history of a few": lambda reader: list(reader.history(("log.*.*.nobody.>",))),
    "history up to there": lambda reader: list(reader.history(after=ROTTEN - 1, upto=ROTTEN)),
    "extent": lambda reader: reader.extent(("log.>",)),
    "at": lambda reader: reader.at(ROTTEN),
    "last up to there": lambda reader: reader.last_upto(ROTTEN),
}
ROTTEN = 30


@each("look", LOOKS)
@each("column", ["data", "headers", "subject", "time", "hash"])
def test_a_row_that_is_not_what_was_written_is_an_error_to_whoever_reads_it(
    column: str, look: str, sound: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("case") / "ledger.db"
    shutil.copy(sound, path)
    other = {"data": "x'7b7d'", "headers": "'{}'", "subject": "'log.00.00.x.y'", "time": "time + 1", "hash": "x'00'"}
    query(path, f"UPDATE events SET {column} = {other[column]} WHERE seq = ?", ROTTEN)
    with LedgerReader(path) as reader, pytest.raises(LedgerDamaged, match=f"row {ROTTEN} is not what was written"):
        LOOKS[look](reader)
    heard: list[int] = []
    with LedgerReader(path, heard.append) as reader:
        LOOKS[look](reader)
    assert heard[0] == ROTTEN
    with LedgerReader(path) as reader:  # nobody pays for rows that he does not read
        assert reader.at(ROTTEN - 1) is not None
        assert sum(map(len, reader.history(upto=ROTTEN - 1))) == ROTTEN - 1


def test_an_end_that_is_not_what_was_written_is_handed_to_nobody(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    shutil.copy(sound, path)
    exchange = read(path)[0].headers["ce-exchange"]
    assert asyncio.run(exchange_result(path, exchange)) is not None
    query(path, "UPDATE events SET data = replace(data, ':', ': ') WHERE exchange = ?", exchange)
    with pytest.raises(LedgerDamaged, match=r"does not hold the types|not what was written"):
        asyncio.run(exchange_result(path, exchange))
