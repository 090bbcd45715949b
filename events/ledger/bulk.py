"""Inserting many rows with few statements.

SQLite gives up Python's lock at every step of a statement, and a step is a statement's whole work unless it returns
rows. Inserting row by row beside a busy event loop therefore waits for that lock once a row (measured: 1,600 rows/s
instead of 74,000), which is why ``executemany`` is not used here.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

_MOST_ROWS = 128
"""Rows of one statement. SQLite takes 32,766 parameters; more rows than this gain nothing."""


class Insert(msgspec.Struct, frozen=True):
    """An insertion into some of a table's columns; ``conflict`` is its ON CONFLICT clause, if any."""

    table: str
    columns: tuple[str, ...]
    conflict: str = ""


@lru_cache(maxsize=1024)
def _sql(insert: Insert, rows: int) -> str:
    values = f"({', '.join('?' * len(insert.columns))})"
    columns = ", ".join(insert.columns)
    return f"INSERT INTO {insert.table} ({columns}) VALUES {', '.join([values] * rows)} {insert.conflict}"


def statements(insert: Insert, parameters: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Return the statements that insert rows, given flat (row after row), each with its parameters."""
    width = len(insert.columns)
    for start in range(0, len(parameters), _MOST_ROWS * width):
        part = parameters[start : start + _MOST_ROWS * width]
        yield _sql(insert, len(part) // width), part
