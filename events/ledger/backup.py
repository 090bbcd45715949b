"""Copying a ledger, even while it is written to, and verifying the copy."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from events.errors import LedgerDamaged, Misconfigured, Unavailable
from events.files.sqlite_side_files import side_file_left, write_ahead_log
from events.files.whole_files import flush
from events.ledger.checking.report import Verification
from events.ledger.checking.verify import verify
from events.ledger.checking.wal_damage import wal_damage
from events.ledger.schema import AT_REST, archives_in, connect_read_only, insert_rows_of, lacks_wal, read_meta
from events.ledger.sqlite_errors import translated_errors

_PAGES = 2048
"""Pages (32 MB) that are copied in one step; in between, SQLite can make a checkpoint of a writer's write-ahead log."""


def back_up(path: Path, copy: Path) -> Verification:
    """Copy a ledger as of one moment, its write-ahead log included; return the verification of the copy.

    The copy is a single complete file that only its owner can read. It gets its name once it is verified.

    Raises:
        Misconfigured: there is no ledger; or ``copy`` exists; or a write-ahead log of another file of that name does.
        LedgerDamaged: the ledger is not sound, or lacks rows; nothing is left behind.
        Unavailable: the copy cannot be written.
    """
    if copy.exists():
        raise Misconfigured(f"{copy} exists: name another file, or delete it")
    if (left := side_file_left(copy)) is not None:  # SQLite would apply it to the copy
        raise Misconfigured(
            f"{left} is of a ledger that was there, and holds rows of it: name another file, or move it"
        )
    try:
        # Private from the first byte on, and in the copy's own folder, so that a rename can put it in place.
        with tempfile.TemporaryDirectory(prefix=f".{copy.name}-", dir=copy.parent) as folder:
            draft = Path(folder) / "ledger.db"
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            _copy(path, draft, copy)
            found = verify(draft)
            if not found.ok:
                first = found.findings[0]
                raise LedgerDamaged(
                    f"{path}: not copied, since it is not sound: {first.check} at sequence {first.seq}: {first.detail};"
                    " `neuraxis log verify` lists all"
                )
            _put_in_place(draft, copy)
    except FileExistsError as there:
        raise Misconfigured(f"{copy} exists: name another file, or delete it") from there
    except OSError as wrong:
        raise Unavailable(f"{copy} cannot be written: {wrong.strerror or wrong}") from wrong
    return found


def _copy(path: Path, draft: Path, copy: Path) -> None:
    with closing(connect_read_only(path)) as source, translated_errors(path, "copy the ledger"):
        wal = write_ahead_log(path)
        if damage := wal_damage(wal.read_bytes() if wal.exists() else b""):
            raise LedgerDamaged(f"{path}: not copied, since {wal.name} is damaged: {damage}")
        if lacks_wal(read_meta(source, path), path):
            raise LedgerDamaged(
                f"{path} was itself copied without {wal.name}, and may lack its last rows: copy the original; where "
                f"there is none, `neuraxis log rebuild --log {path}` declares it whole as it is"
            )
        # One read transaction: without it SQLite would start the copy again each time a writer commits.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM meta").fetchone()
        with closing(sqlite3.connect(draft, isolation_level=None)) as target, _full_disk_of(copy):
            target.execute("PRAGMA temp_store = MEMORY")
            source.backup(target, pages=_PAGES)
            _include_archives(target, path)
            target.execute("UPDATE meta SET value = ? WHERE key = 'state'", (AT_REST,))


@contextmanager
def _full_disk_of(copy: Path) -> Iterator[None]:
    """Turn SQLite's error on a full disk into one that names the copy: the ledger is only read."""
    try:
        yield
    except sqlite3.Error as wrong:
        if wrong.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise
        full = "its disk (or the file's size limit) is full: free some space, or name another place"
        raise Unavailable(f"{copy} cannot be written: {full}") from wrong


def _include_archives(target: sqlite3.Connection, path: Path) -> None:
    """Put the rows of a ledger's archives into its copy, which is complete by itself."""
    for archive in archives_in(read_meta(target, path), path):
        insert_rows_of(target, path.with_name(archive.name))
    target.execute("UPDATE meta SET value = '' WHERE key = 'archives'")


def _put_in_place(draft: Path, copy: Path) -> None:
    flush(draft)
    os.link(draft, copy)
    flush(copy.parent)
