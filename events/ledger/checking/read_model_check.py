"""Checking a ledger's read models: fold them again from its events, in another file, and compare them row by row."""

import sqlite3
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Self

from events.ledger.bulk_insert import Insert, sql
from events.ledger.checking.report import Check, Findings
from events.ledger.read_models import INSERTS, add_values, is_folded
from events.ledger.rows import TOPIC, Row
from events.ledger.tables import TABLES, make

_BATCH = 4_096  # events that are folded before their rows are inserted
_REMEDY = "`neuraxis log rebuild` folds it anew"


class ReadModelCheck:
    """Folds read models from rows, given in order, into a temporary file, so that memory does not grow."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("BEGIN")
        make(self._connection)
        self._waiting: dict[Insert, list[Any]] = {insert: [] for insert in INSERTS}
        self._row_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def take(self, row: Row, headers: Mapping[str, str]) -> None:
        """Fold the next row, as it was written."""
        if not is_folded(row[TOPIC]):
            return
        add_values(self._waiting, row, headers)
        self._row_count += 1
        if self._row_count % _BATCH == 0:
            self._flush()

    def compare(self, connection: sqlite3.Connection, findings: Findings) -> None:
        """Report, for each table of a ledger, the first row that differs."""
        self._flush()
        for table in TABLES:
            self._compare(table, connection, findings)

    def _compare(self, table: str, connection: sqlite3.Connection, findings: Findings) -> None:
        statement = f"SELECT * FROM {table} ORDER BY 1"
        folded, kept = self._connection.execute(statement), connection.execute(statement)
        names = [name for name, *_ in folded.description]
        for expected, found in zip_longest(folded, kept):
            if expected != found:
                findings.add(
                    _sequence_of(names, expected or found),
                    Check.MODELS,
                    _difference_text(table, names, expected, found),
                )
                return

    def _flush(self) -> None:
        for insert, values in self._waiting.items():
            width = len(insert.columns)
            rows = (values[start : start + width] for start in range(0, len(values), width))
            self._connection.executemany(sql(insert, 1), rows)
            values.clear()


def _sequence_of(names: list[str], row: tuple[Any, ...]) -> int:
    """Return the sequence of an event that led to a row."""
    found = dict(zip(names, row, strict=True))
    sequences = (found.get(name) for name in ("seq", "started_seq", "ended_seq"))
    return next((seq for seq in sequences if isinstance(seq, int)), 0)


def _difference_text(
    table: str, names: list[str], expected: tuple[Any, ...] | None, found: tuple[Any, ...] | None
) -> str:
    if expected is None or found is None:
        (key, *_), what = (found or expected or ("",)), "missing" if found is None else "of no event"
        return f"{table}: the row of {key!r} is {what}; {_REMEDY}"
    columns = ", ".join(name for name, a, b in zip(names, expected, found, strict=True) if a != b)
    return f"{table}: {columns} of {expected[0]!r} not as the events have it; {_REMEDY}"
