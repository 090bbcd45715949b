"""Writing the ledger: one durable transaction for each batch, with the hash chain and the read models in it.

SQLite runs in a thread of its own, so that the event loop stays free. A whole transaction is one call of that thread:
each switch between the two wakes a thread, which costs more than most statements.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import aiosqlite
import msgspec

from events.ledger.bulk_insert import MAX_ROWS, Insert, split, sql
from events.ledger.checking.chain import GENESIS, Head
from events.ledger.read_models import INSERTS, add_values, is_folded
from events.ledger.rows import COLUMNS, MESSAGE_COLUMNS, TOPIC, link_row, to_row, to_stored
from events.ledger.schema import AT_REST, AT_WORK, BUSY_TIMEOUT_MS, LEDGER_TOPICS, PRAGMAS, prepare
from events.ledger.sqlite_errors import translated_errors
from events.log import Stored
from schemas.subjects import Partitions

T = TypeVar("T")

_INSERT = Insert("events", COLUMNS)
# The state is written with each batch, since another writer may have closed the file and set AT_REST.
_UPDATE_META = "UPDATE meta SET value = iif(key = 'rows', ?, ?) WHERE key IN ('rows', 'state')"


class Written(msgspec.Struct, frozen=True):
    """The result of an append: the chain's head after it, the number of new rows, the heads to be anchored."""

    head: Head
    added: int
    heads_to_anchor: tuple[Head, ...] = ()


class LedgerWriter:
    """A ledger file open for appending. Two writers on one file are harmless: each row is stored once."""

    def __init__(self, path: Path, connection: "_Connection") -> None:
        """Use ``open`` instead."""
        self._path = path
        self._connection = connection
        self._identity = _identity(path)

    @classmethod
    async def open(cls, path: Path, stream: str, partitions: Partitions) -> Self:
        """Open the ledger of a stream, making the file when there is none.

        Raises:
            Misconfigured, LedgerDamaged, Unavailable: see ``events.ledger.schema.prepare``.
        """
        await asyncio.to_thread(prepare, path, stream, partitions)
        connection = _Connection(path)
        with translated_errors(path, "open the ledger"):
            await connection
            try:
                await connection.call(_begin)
            except BaseException:
                await connection.close()
                raise
        return cls(path, connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def is_in_place(self) -> bool:
        """Return whether the file is where it was opened.

        SQLite goes on writing to one that was moved or deleted meanwhile, without an error.
        """
        return self._identity is not None and await asyncio.to_thread(_identity, self._path) == self._identity

    async def close(self) -> None:
        """Close the file and record that it is complete; the last writer's close makes SQLite's final checkpoint."""
        try:
            with suppress(sqlite3.Error, ValueError):  # on a full disk or a closed connection it cannot be recorded
                await self._connection.execute("UPDATE meta SET value = ? WHERE key = 'state'", (AT_REST,))
                if not await self.is_in_place():
                    # SQLite would leave its last rows in the write-ahead log, at the old place.
                    await self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:  # also where the caller is cancelled meanwhile
            await self._connection.close()

    async def head(self) -> Head:
        """Return the chain's head."""
        with translated_errors(self._path, "read the ledger's head"):
            return await self._connection.call(_head)

    async def last_own(self) -> Stored | None:
        """Return the last of the ledger's own events, such as an anchor, or None."""
        with translated_errors(self._path, "read the ledger's anchors"):
            row = await self._one(
                f"SELECT {MESSAGE_COLUMNS} FROM events WHERE seq = (SELECT max(seq) FROM events WHERE {LEDGER_TOPICS})"
            )
            return None if row is None else to_stored(*row)

    async def last_foreign(self) -> int:
        """Return the sequence of the last event that is not the ledger's own, 0 when there is none."""
        with translated_errors(self._path, "read the ledger's last row"):
            row = await self._one(f"SELECT seq FROM events WHERE NOT ({LEDGER_TOPICS}) ORDER BY seq DESC LIMIT 1")
        return 0 if row is None else int(row[0])

    async def append(self, batch: Sequence[Stored], anchor_every: int = 0) -> Written:
        """Store a batch of messages, in stream order, in one transaction; those stored already are skipped.

        With ``anchor_every``, the heads at multiples of that many rows are returned. Which heads these are depends on
        the stream alone, not on the size of batches. Cancelled, it may still store the batch.

        Raises:
            Unavailable: nothing was stored (disk full, file locked); the same batch may be tried again.
            LedgerDamaged, Misconfigured: see ``events.ledger.sqlite_errors``; nothing was stored.
        """
        with translated_errors(self._path, f"append {len(batch)} rows"):
            return await self._connection.call(partial(_append, batch=batch, anchor_every=anchor_every))

    async def _one(self, statement: str) -> sqlite3.Row | None:
        return next(iter(await self._connection.execute_fetchall(statement)), None)


class _Connection(aiosqlite.Connection):
    """A connection that also runs functions in its thread; the library runs one statement per call."""

    def __init__(self, path: Path) -> None:
        connect = partial(sqlite3.connect, path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
        super().__init__(connect, iter_chunk_size=64)

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in the connection's thread; it goes on to its end even if the caller is cancelled."""
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]  # it annotates no types
        return result


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what distinguishes the file at a path from any other; None if there is none, or it cannot be seen."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _begin(connection: sqlite3.Connection) -> None:
    for pragma in PRAGMAS:
        connection.execute(pragma)
    # prepare() has written the state into the file. Written again here, it makes the first frame of the write-ahead
    # log: by a log that is not empty, a reader distinguishes a file in use from a copy.
    connection.execute("UPDATE meta SET value = ? WHERE key = 'state'", (AT_WORK,))


def _append(connection: sqlite3.Connection, batch: Sequence[Stored], anchor_every: int) -> Written:
    try:
        connection.execute("BEGIN IMMEDIATE")
        before = _head(connection)
        fresh = [stored for stored in batch if stored.seq > before.seq]
        written = _store(connection, before, fresh, anchor_every)
        connection.execute(_UPDATE_META, (written.head.rows, AT_WORK))
        connection.execute("COMMIT")
    except BaseException:
        # After a full disk SQLite may have rolled back by itself; then this does nothing.
        connection.rollback()
        raise
    return written


def _store(connection: sqlite3.Connection, before: Head, batch: Sequence[Stored], anchor_every: int) -> Written:
    chain = _RowChain(before, anchor_every)
    parts, rest = split(batch)
    connection.executemany(sql(_INSERT, MAX_ROWS), map(chain.values, parts))
    if rest:
        connection.execute(sql(_INSERT, len(rest)), chain.values(rest))
    for insert, values in chain.read_models.items():
        if values:
            _insert(connection, insert, values)
    return Written(chain.head, chain.head.rows - before.rows, tuple(chain.heads_to_anchor))


def _insert(connection: sqlite3.Connection, insert: Insert, values: Sequence[Any]) -> None:
    width = len(insert.columns)
    parts, rest = split(values, width)
    connection.executemany(sql(insert, MAX_ROWS), parts)
    if rest:
        connection.execute(sql(insert, len(rest) // width), rest)


def _head(connection: sqlite3.Connection) -> Head:
    found = connection.execute(
        "SELECT seq, (SELECT value FROM meta WHERE key = 'rows'), hash FROM events ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return Head(0, 0, GENESIS) if found is None else Head(*found)


class _RowChain:
    """Makes rows of messages and chains them to a head; collects the values that they insert into the read models."""

    def __init__(self, head: Head, anchor_every: int) -> None:
        self.head = head
        self.heads_to_anchor: list[Head] = []
        self.read_models: dict[Insert, list[Any]] = {insert: [] for insert in INSERTS}
        self._anchor_every = anchor_every

    def values(self, part: Sequence[Stored]) -> list[Any]:
        """Chain the next messages; return their rows' values, flat."""
        count, digest = self.head.rows, self.head.hash
        values: list[Any] = []
        for stored in part:
            row = to_row(stored)
            digest = link_row(digest, row)
            count += 1
            values += row
            values.append(digest)
            if self._anchor_every and count % self._anchor_every == 0:
                self.heads_to_anchor.append(Head(stored.seq, count, digest))
            if is_folded(row[TOPIC]):
                add_values(self.read_models, row, stored.headers)
        self.head = Head(part[-1].seq, count, digest)
        return values
