"""The files that SQLite keeps beside a database in WAL mode: its write-ahead log, and the log's index.

They belong to one database, by their names alone. If somebody moves or deletes only the database, they stay. SQLite
would apply them to the next database of that name, which is then damaged, without an error.
"""

import os
from pathlib import Path

SIDE_FILES = ("-wal", "-shm")
"""What the names of these files end with: the write-ahead log, and its index, which can be made anew."""


def write_ahead_log(path: Path) -> Path:
    """Return the path of a database's write-ahead log: beside the file itself, where ``path`` is a link to that."""
    return Path(os.path.realpath(path) + SIDE_FILES[0])


def side_file_left(path: Path) -> Path | None:
    """Return the file with rows that another database of this name left behind; None if there is none.

    Call it only while there is no database at ``path``.
    """
    left = path.with_name(path.name + SIDE_FILES[0])
    return left if left.exists() and left.stat().st_size else None


def clear_side_files(path: Path) -> Path | None:
    """Make way for a new database at ``path``, where there is none: rename what another one left behind.

    Returns the new name of its write-ahead log, which may hold rows that the other one lacks; None if it had no rows.
    Raises OSError.
    """
    left, kept = side_file_left(path), None
    if left is not None:
        number, kept = 1, left.with_name(f"{left.name}-left")
        while kept.exists():
            number += 1
            kept = left.with_name(f"{left.name}-left-{number}")
        left.rename(kept)
    for ending in SIDE_FILES:
        path.with_name(path.name + ending).unlink(missing_ok=True)
    return kept
