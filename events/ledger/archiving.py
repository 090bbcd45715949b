"""Moving a ledger's oldest rows into an archive file beside it, and putting archive files together.

A ledger names its archives in its table ``meta``. Whatever opens the ledger for reading attaches them (see
``schema.attach_archives``), so all queries and the hash chain go over archives and ledger as over one file. The read
models stay in the ledger.

Nobody else may have the ledger open meanwhile: a reader that began before would not find the rows any more. The rows
leave the ledger in the transaction that names the file there. If this is killed before, the rows are still in the
ledger, and the file is written again the next time. If it is killed after, the room that they took is given back to the
disk the next time.
"""

import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from events.errors import LedgerDamaged, Misconfigured, Unavailable
from events.files.whole_files import flush
from events.ledger.checking.chain import GENESIS
from events.ledger.checking.verify import verify
from events.ledger.rows import COLUMNS, HASH, SEQ, link_row
from events.ledger.schema import (
    APPLICATION_ID,
    ARCHIVE_OF,
    EVENT_COLUMNS,
    EVENT_TABLES,
    FORMAT,
    LEDGER_TOPICS,
    MOST_ARCHIVES,
    PAGE_SIZE,
    ArchiveFile,
    archives_in,
    insert_rows_of,
    lacks_wal,
    read_meta,
)
from events.ledger.sqlite_errors import error_of_sqlite, translated_errors

_NS = 1_000_000_000  # in a second


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """What was done: the archive file, its rows and their sequences, and how many rows the ledger itself still has.

    ``joined`` are the former archive files that are part of it now, and were deleted. Without rows, nothing was to be
    archived, and only the room that rows archived before took was given back; the file is then the latest archive, or
    empty if there is none.
    """

    path: str
    rows: int
    first_seq: int
    last_seq: int
    left: int
    joined: tuple[str, ...] = ()


def archive(path: Path, before_ns: int, *, join: bool = False) -> Archived:
    """Move the rows that are older than a time (Unix nanoseconds) into a new archive file.

    The last of the ledger's rows and of its anchors stay, whatever their age: its writer goes on from them.

    Args:
        path: The ledger.
        before_ns: The time; the first row that is not older stays, and so do all rows after it.
        join: Put the archive files that there are into the new one, too, and delete them.

    Raises:
        Misconfigured: there are too many archives, or one of them is not there.
        LedgerDamaged: the ledger is not sound; nothing was changed.
        Unavailable: another process has the ledger open, or the disk is full. The message says if rows were archived.
    """
    found = verify(path)
    if not found.ok:
        raise LedgerDamaged(f"{path} is not sound: `neuraxis log verify --log {path}` tells; nothing was archived")
    with closing(_opened_alone(path)) as ledger:
        with translated_errors(path, "archive rows"):
            done = _archive(ledger, path, before_ns, join)
        for name in done.joined:
            path.with_name(name).unlink(missing_ok=True)
        with translated_errors(path, f"give back the room of rows that are archived in {Path(done.path).name}"):
            ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if ledger.execute("PRAGMA freelist_count").fetchone() != (0,):
                ledger.execute("VACUUM")
    return done


def _opened_alone(path: Path) -> sqlite3.Connection:
    """Open a ledger that no other connection has open, and let none open it."""
    in_use = f"{path} is in use: stop the set, and what else reads the ledger, and run this again; nothing was archived"
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=1.0)
    try:
        # Before the first access: then it fails if anybody has the file open, and keeps its lock until it is closed.
        # In WAL mode, as always: no reader could roll back what a killed process leaves of another kind of journal.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = FULL")
        if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise Unavailable(in_use)
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError as wrong:
        connection.close()
        if "locked" in str(wrong):
            raise Unavailable(in_use) from wrong
        raise error_of_sqlite(path, "archive rows", wrong) from wrong
    except BaseException:
        connection.close()
        raise
    return connection


def _archive(ledger: sqlite3.Connection, path: Path, before_ns: int, join: bool) -> Archived:
    meta = read_meta(ledger, path)
    if lacks_wal(meta, path):
        raise LedgerDamaged(
            f"{path} was itself copied without {path.name}-wal, and may lack its last rows: archive those of the "
            f"original; where there is none, `neuraxis log rebuild --log {path}` declares it whole as it is"
        )
    former = archives_in(meta, path)
    joined = former if join else ()
    last = _last_to_move(ledger, before_ns)
    first = ledger.execute("SELECT min(seq) FROM events").fetchone()[0]
    if first is None or last < first:
        return _nothing_archived(ledger, path, former)
    if len(former) - len(joined) >= MOST_ARCHIVES:
        raise Misconfigured(
            f"{path} has {len(former)} archives, and SQLite reads no more at a time: put them into the new one with "
            "--join"
        )
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        draft = Path(folder) / "archive.db"
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _write(ledger, path, draft, joined, last)
        made = _checked(draft, path, former[-1].head if former and not joined else "")
        made = msgspec.structs.replace(made, name=_own_name(path, made.name))
        flush(draft)
        draft.replace(path.with_name(made.name))
        flush(path.parent)
    # From here on the file is complete under its name, and the ledger forgets the rows and names the file at once.
    listed = [*(each for each in former if each not in joined), made]
    ledger.execute("BEGIN IMMEDIATE")
    try:
        ledger.execute("INSERT OR REPLACE INTO meta VALUES ('archives', ?)", (msgspec.json.encode(listed).decode(),))
        ledger.execute("DELETE FROM events WHERE seq <= ?", (last,))
        ledger.execute("COMMIT")
    except BaseException:
        if ledger.in_transaction:  # on a full disk SQLite has rolled back already
            ledger.execute("ROLLBACK")
        raise
    names = tuple(each.name for each in joined if each.name != made.name)
    return Archived(
        path=str(path.with_name(made.name)),
        rows=made.rows,
        first_seq=made.first_seq,
        last_seq=made.last_seq,
        left=_count(ledger),
        joined=names,
    )


def _nothing_archived(ledger: sqlite3.Connection, path: Path, former: Sequence[ArchiveFile]) -> Archived:
    """Return the result where no row is old enough that is not archived; room may still be there to be given back."""
    left = _count(ledger)
    if not former:
        return Archived(path="", rows=0, first_seq=0, last_seq=0, left=left)
    latest = former[-1]
    return Archived(
        path=str(path.with_name(latest.name)), rows=0, first_seq=latest.first_seq, last_seq=latest.last_seq, left=left
    )


def _count(ledger: sqlite3.Connection) -> int:
    return int(ledger.execute("SELECT count(*) FROM events").fetchone()[0])


def _last_to_move(ledger: sqlite3.Connection, before_ns: int) -> int:
    """Return the last sequence that may be moved: the one before the first row that has to stay."""
    younger = ledger.execute("SELECT min(seq) FROM events WHERE time >= ?", (before_ns,)).fetchone()[0]
    ends = [
        ledger.execute("SELECT max(seq) FROM events").fetchone()[0],
        ledger.execute(f"SELECT max(seq) FROM events WHERE NOT ({LEDGER_TOPICS})").fetchone()[0],
        ledger.execute(f"SELECT max(seq) FROM events WHERE {LEDGER_TOPICS}").fetchone()[0],
        younger,
    ]
    return min((each for each in ends if each is not None), default=1) - 1


def _write(ledger: sqlite3.Connection, path: Path, draft: Path, joined: Sequence[ArchiveFile], last: int) -> None:
    """Write the rows of former archives and of the ledger, up to a sequence, to a new file."""
    with closing(sqlite3.connect(draft, isolation_level=None)) as new:
        new.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        new.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for statement in EVENT_TABLES:
            new.execute(statement)
        meta = {"format": FORMAT, ARCHIVE_OF: path.name, "stream": read_meta(ledger, path).stream}
        new.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        for each in joined:
            insert_rows_of(new, path.with_name(each.name))
    ledger.execute("ATTACH ? AS archive", (str(draft),))
    try:
        ledger.execute(
            f"INSERT INTO archive.events SELECT {EVENT_COLUMNS} FROM main.events WHERE seq <= ? ORDER BY seq", (last,)
        )
    finally:
        ledger.execute("DETACH archive")


def _checked(draft: Path, path: Path, previous: str) -> ArchiveFile:
    """Check a new archive, and return what the ledger notes of it; ``previous`` is the hash (hex) before its chain."""
    digest = bytes.fromhex(previous) or GENESIS
    rows = first = last = first_ns = last_ns = 0
    with closing(sqlite3.connect(draft)) as new:
        for row in new.execute(f"SELECT {EVENT_COLUMNS} FROM events ORDER BY seq"):
            digest = link_row(digest, row[:HASH])
            if digest != row[HASH]:
                raise LedgerDamaged(f"row {row[SEQ]} was not copied as it is: nothing was archived; look at the disk")
            rows, last, last_ns = rows + 1, row[SEQ], row[COLUMNS.index("time")]
            first, first_ns = first or last, first_ns or last_ns
    name = f"{path.stem}-{_day(first_ns)}-to-{_day(last_ns)}-{last:09d}{path.suffix}"
    return ArchiveFile(name=name, rows=rows, first_seq=first, last_seq=last, head=digest.hex())


def _own_name(path: Path, name: str) -> str:
    """Return a name for an archive that no other ledger in the folder uses for one of its archives.

    A ledger that was set aside, since the stream had lost messages, has archives of the same days and sequences.
    """
    taken: set[str] = set()
    # A damaged ledger cannot tell which archives it has: any file may be one of them.
    is_damaged = any(path.parent.glob(f"{path.stem}-damaged*{path.suffix}"))
    for other in path.parent.glob(f"{path.stem}-*{path.suffix}"):
        address = f"{other.resolve().as_uri()}?mode=ro"
        errors = suppress(LedgerDamaged, Misconfigured, Unavailable, sqlite3.Error)
        with errors, closing(sqlite3.connect(address, uri=True)) as file:
            taken |= {each.name for each in archives_in(read_meta(file, other), other)}
    stem, number, free = Path(name).stem, 1, name
    while free in taken or (is_damaged and path.with_name(free).exists()):
        number += 1
        free = f"{stem}-{number}{path.suffix}"
    return free


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / _NS, UTC).strftime("%Y%m%d")
