"""Renaming a ledger file that is damaged, or that holds messages which its stream has lost.

A file that was renamed is never overwritten: it may be the only copy left of acknowledged messages.
"""

import contextlib
import sqlite3
from pathlib import Path

from events.errors import Unavailable
from events.files.sqlite_side_files import SIDE_FILES, clear_side_files
from events.files.whole_files import flush
from events.ledger.schema import PAGE_SIZE
from events.ledger.sqlite_errors import translated_errors

_SQLITE_MAGIC = b"SQLite format 3\0"
_LEDGER_TABLES = {"meta", "events"}


def path_aside(path: Path, first_lost: int | None) -> Path:
    """Return a free name in the same folder for a ledger to be set aside.

    ``first_lost`` is the first sequence that the stream has lost; None: the ledger is damaged.
    """
    stem = f"{path.stem}-damaged" if first_lost is None else f"{path.stem}-before-loss-{first_lost}"
    number, kept = 1, path.with_name(f"{stem}{path.suffix}")
    while kept.exists():
        number += 1
        kept = path.with_name(f"{stem}-{number}{path.suffix}")
    return kept


def put_aside(path: Path, kept: Path, *, damaged: bool = False) -> None:
    """Rename a ledger file that no process writes, and the files beside it. The content of a damaged one is not
    changed.

    Every command can still read it as a ledger: ``neuraxis log tail --log FILE --since SEQUENCE``.

    Raises:
        Unavailable: the folder cannot be written now.
        LedgerDamaged, Misconfigured: see ``events.ledger.sqlite_errors``.
    """
    if not damaged:
        with (
            translated_errors(path, "fold the ledger's journal in"),
            contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try:
        path.rename(kept)
        for ending in SIDE_FILES:
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + ending).rename(kept.with_name(kept.name + ending))
        flush(path.parent)
    except OSError as error:
        raise Unavailable(f"{path}: cannot be put aside as {kept.name}: {error}; grant the right to write") from error


def put_in_place(whole: Path, path: Path) -> None:
    """Rename a whole ledger that no process has open, without files beside it, to ``path``, where there is none.

    Raises Unavailable: the folder cannot be written now.
    """
    try:
        # Those of the ledger that was set aside: a process may have been killed before it renamed them, too.
        clear_side_files(path)
        whole.rename(path)
        flush(path.parent)
    except OSError as error:
        raise Unavailable(f"{whole}: cannot be renamed {path.name}: {error}; grant the right to write") from error


def delete_draft(path: Path) -> None:
    """Delete a ledger that was never whole, if there is one, and the files beside it; raises Unavailable."""
    try:
        for ending in ("", *SIDE_FILES):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"{path}: cannot be deleted: {error}; grant the right to write") from error


def is_no_ledger(path: Path) -> bool:
    """Whether a file cannot be a ledger, not even a damaged one: a ledger's size is always a number of whole pages."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_MAGIC))
        size = path.stat().st_size
    except OSError:
        return False  # opening it will raise an error that says more
    return size > 0 and start != _SQLITE_MAGIC and size % PAGE_SIZE != 0


def belongs_to_other_program(path: Path) -> bool:
    """Whether a file belongs to another program: it is no database, or a sound database with other tables."""
    if is_no_ledger(path):
        return True
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return bool(names) and not names >= _LEDGER_TABLES
