"""The chain and the checks beside it notice any change to any row."""

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.ledger import Check, Verification, verify
from events.ledger.checking.chain import GENESIS, link
from events.ledger.rows import COLUMNS
from tests.events.ledger.messages import anchor, exchanges, flip, query, read, write

ROWS = 12


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    write(path, exchanges(ROWS // 4))
    return path


def checks(report: Verification) -> set[Check]:
    return {finding.check for finding in report.findings}


def changed(sound: Path, folder: Path, statement: str, *parameters: Any) -> Verification:
    path = folder / "ledger.db"
    shutil.copyfile(sound, path)
    query(path, statement, *parameters)
    return verify(path)


def test_the_record_is_what_the_docstring_says() -> None:
    frame = bytes(7) + b"\x05" + b"\xff" * 8 + b"\0\0\0\1" + b"\0\0\0\2" + b"\0\0\0\3"
    assert link(GENESIS, 5, -1, b"s", b"hh", b"ddd") == sha256(bytes(32) + frame + b"shhddd").digest()


def test_a_ledger_as_written_verifies(sound: Path) -> None:
    report = verify(sound)
    assert report.ok
    assert (report.rows, report.first_seq, report.last_seq) == (ROWS, 1, ROWS)
    assert report.head == query(sound, "SELECT hex(hash) FROM events ORDER BY seq DESC LIMIT 1")[0][0].lower()


@pytest.mark.parametrize("column", COLUMNS[1:])
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_any_single_bit_of_any_column_is_missed_by_nobody(
    column: str, sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    seq = data.draw(st.integers(1, ROWS))
    ((value,),) = query(sound, f"SELECT {column} FROM events WHERE seq = ?", seq)
    if isinstance(value, int):
        altered: Any = value ^ 1 << data.draw(st.integers(0, 62))
    else:
        raw = value.encode() if isinstance(value, str) else value
        turned = flip(raw, data.draw(st.integers(0, 8 * len(raw) - 1)))
        # CAST keeps the type that was written, whatever the bytes.
        altered = turned
    kind = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}[type(value)]
    statement = f"UPDATE events SET {column} = CAST(? AS {kind}) WHERE seq = ?"
    folder = tmp_path_factory.mktemp("changed")
    report = changed(sound, folder, statement, altered, seq)
    assert not report.ok
    assert report.findings[0].seq == seq
    expected = Check.HASH if column in ("subject", "time", "headers", "data", "hash") else Check.COLUMNS
    assert report.findings[0].check is expected


def test_one_bad_row_is_one_finding(sound: Path, tmp_path: Path) -> None:
    report = changed(sound, tmp_path, "UPDATE events SET data = x'00' WHERE seq = 5")
    assert [(finding.seq, finding.check) for finding in report.findings] == [(5, Check.HASH)]


@pytest.mark.parametrize(
    ("column", "kind"), [("headers", "BLOB"), ("subject", "BLOB"), ("data", "TEXT"), ("hash", "TEXT")]
)
def test_a_row_of_another_type_is_a_finding(column: str, kind: str, sound: Path, tmp_path: Path) -> None:
    report = changed(sound, tmp_path, f"UPDATE events SET {column} = CAST({column} AS {kind}) WHERE seq = 5")
    assert [(finding.seq, finding.check) for finding in report.findings] == [(5, Check.HASH)]


def test_a_lost_row_is_named(sound: Path, tmp_path: Path) -> None:
    report = changed(sound, tmp_path, "DELETE FROM events WHERE seq BETWEEN 5 AND 6")
    assert report.findings[0].check is Check.GAP
    assert "5 to 6" in report.findings[0].detail
    assert checks(report) == {Check.GAP, Check.HASH, Check.META}


def test_a_lost_first_row_breaks_the_chain(sound: Path, tmp_path: Path) -> None:
    report = changed(sound, tmp_path, "DELETE FROM events WHERE seq = 1")
    assert report.findings[0].check is Check.HASH
    assert report.findings[0].seq == 2


def test_rows_that_change_places_break_the_chain(sound: Path, tmp_path: Path) -> None:
    report = changed(
        sound,
        tmp_path,
        "UPDATE events SET (data, hash) = (SELECT data, hash FROM events AS e WHERE e.seq = 9 - events.seq) "
        "WHERE seq IN (4, 5)",
    )
    assert report.findings[0].seq == 4


def test_a_tail_deleted_by_hand_shows_in_the_row_count(sound: Path, tmp_path: Path) -> None:
    assert checks(changed(sound, tmp_path, "DELETE FROM events WHERE seq > 10")) == {Check.META}


def test_a_broken_index_is_a_finding(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    shutil.copyfile(sound, path)
    query(path, "PRAGMA journal_mode = DELETE")
    ((root,),) = query(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'events_exchange'")
    ((size,),) = query(path, "PRAGMA page_size")
    content = bytearray(path.read_bytes())
    content[root * size - 1] ^= 1  # the last byte of the index's page is in its first entry
    path.write_bytes(content)
    assert Check.STRUCTURE in checks(verify(path))


def test_anchors_in_the_ledger_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = exchanges(2)
    head = write(path, messages)[-1].head
    write(path, [anchor(9, head.seq, head.rows, head.hash.hex())])
    report = verify(path)
    assert report.ok
    assert report.anchors == 1


@pytest.mark.parametrize(
    ("through", "rows", "head"),
    [(8, 8, "0" * 64), (8, 7, None), (99, 99, None)],
    ids=["another hash", "another count", "no such row"],
)
def test_an_anchor_that_does_not_fit_is_a_finding(through: int, rows: int, head: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    true_head = write(path, exchanges(2))[-1].head.hash.hex()
    write(path, [anchor(9, through, rows, head or true_head)])
    report = verify(path)
    assert [(finding.seq, finding.check) for finding in report.findings] == [(9, Check.ANCHOR)]


def test_a_history_rewritten_hash_by_hash_is_exposed_by_the_anchor_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    messages = exchanges(2)
    head = write(path, messages)[-1].head
    forged = [*messages[:3], messages[3].__class__(4, 1, messages[3].subject, messages[3].headers, b"{}")]
    write(tmp_path / "forged.db", forged + messages[4:])
    assert verify(tmp_path / "forged.db").ok
    write(tmp_path / "forged.db", [anchor(9, head.seq, head.rows, head.hash.hex())])
    assert checks(verify(tmp_path / "forged.db")) == {Check.ANCHOR}


def test_the_report_lists_some_findings_and_counts_all(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    write(path, exchanges(20))
    query(path, "UPDATE events SET agent = 'eve'")
    report = verify(path)
    assert report.finding_count == 80
    assert [finding.seq for finding in report.findings] == list(range(1, 21))
    assert len(read(path)) == 80
