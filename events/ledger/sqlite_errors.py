"""Translates SQLite's errors into those of ``events.errors``, which say what a caller can do."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from events.errors import LedgerDamaged, LogError, Misconfigured, Unavailable
from events.exhaustion import exhausted

RECOVERY = "move the file aside and let the projector write a new one from the stream, or restore a copy"

# Errors that may pass, with their remedy, and those that need a person.
_MAY_PASS = {
    sqlite3.SQLITE_FULL: "the disk (or the file's size limit) is full: free some space",
    sqlite3.SQLITE_BUSY: "another process holds the file's lock",
    sqlite3.SQLITE_LOCKED: "another connection holds a table's lock",
    sqlite3.SQLITE_IOERR: "the disk reports an input/output error",
    sqlite3.SQLITE_NOMEM: "out of memory",
    sqlite3.SQLITE_PROTOCOL: "another process holds the file's lock",
    sqlite3.SQLITE_INTERRUPT: "interrupted",
    sqlite3.SQLITE_CANTOPEN: "the file, or one beside it, cannot be opened: look at the folder's permissions",
}
_NEEDS_PERSON = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}

_READ_ONLY = "the disk is mounted read-only: have it mounted for writing again"
_ROOM_BESIDE = 64 * 1024
"""Bytes. The index of a write-ahead log takes 32 KB at once, and the log some pages."""


def error_of_sqlite(path: Path, doing: str, error: sqlite3.Error) -> LogError:
    """Return what an SQLite error means: LedgerDamaged, Unavailable (nothing stored, try later) or Misconfigured."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and _is_read_only(path):
        return Unavailable(f"{path}: cannot {doing} now: {_READ_ONLY} ({error})")
    if primary == sqlite3.SQLITE_IOERR and path.is_file() and not os.access(path, os.W_OK):
        primary = sqlite3.SQLITE_READONLY  # what cannot be opened for writing is opened for reading, and fails later
    if primary == sqlite3.SQLITE_IOERR and _is_full(path):
        primary = sqlite3.SQLITE_FULL
    if primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and (what := _lacking()):
        return Unavailable(f"{path}: cannot {doing} now: this process has run out of {what} ({error})")
    if primary in _MAY_PASS:
        return Unavailable(f"{path}: cannot {doing} now: {_MAY_PASS[primary]} ({error})")
    if primary in _NEEDS_PERSON:
        return Misconfigured(f"{path}: cannot {doing}: {error}; give this user the right to write the file")
    return LedgerDamaged(f"{path}: cannot {doing}: {error}; {RECOVERY}")


def _lacking() -> str:
    """Return what this process has run out of, so that SQLite cannot open a file; empty if nothing."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as wrong:
        return exhausted(wrong)
    return ""


def _is_full(path: Path) -> bool:
    """Whether a file's disk has no room for the files that SQLite keeps beside it: it calls that an I/O error."""
    try:
        found = _disk_of(path)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _ROOM_BESIDE


def _is_read_only(path: Path) -> bool:
    """Whether a file's disk is mounted read-only, for which SQLite raises one of several errors."""
    try:
        return bool(_disk_of(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _disk_of(path: Path) -> os.statvfs_result:
    # SQLite writes beside the file itself, not beside a link to it.
    return os.statvfs(os.path.dirname(os.path.realpath(path)))


class DamagedRow(ValueError):
    """A row whose columns have changed since they were written."""


@contextmanager
def translated_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn SQLite's errors and damaged rows within the block into errors of ``events.errors`` that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise error_of_sqlite(path, doing, error) from error
    except DamagedRow as error:
        raise LedgerDamaged(f"{path}: cannot {doing}: {error}; {RECOVERY}") from error
