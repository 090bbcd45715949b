"""The ledger: appending and reading, compared with raw sqlite3, aiosqlite row by row and ``eventsourcing``.

Raw sqlite3 is the ceiling: no ledger in SQLite can be faster. Every writer is durable at each commit (WAL,
synchronous=FULL). The peers do less: none hashes, keeps the message exactly, or folds read models; ``eventsourcing``
stores an id, a version, a type and the body. Cases of one table run in turns, and the median round counts, so that a
noisy machine affects all of them equally. Run it with ``python -m bench.storage.ledger [EVENTS]``.
"""

import asyncio
import gc
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiosqlite
import msgspec
from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from bench.harness.table import is_brief, record
from events.ledger import LedgerReader, LedgerWriter, verify
from events.ledger.rows import encode_header_text
from events.log import Stored
from schemas.catalogue import CATALOGUE, entry_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import Partitions, stored_subject

EVENTS = 100_000
"""Events that each case appends or reads, by default."""

ROUNDS = 1 if is_brief() else 3
BATCH = 5_000
"""Events of a transaction."""

ROWS_SINGLY = 2_000
"""Events of the row-by-row case, which is slow."""

PARTITIONS = Partitions()
START_NS = 1_750_000_000_000_000_000
"""When the log begins, Unix nanoseconds."""

# One exchange that reaches an answer, as the gateway and the actors record it.
EXCHANGE = tuple(
    CATALOGUE[f"forged_id.{name}"].sample
    for name in ("input.received", "reflex.passed", "router.mode_selected", "response.emitted")
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case: the median round's events a second, and that rate over the named peer's from the same rounds."""

    case: str
    events_per_s: int
    ratios: dict[str, float]


def messages(count: int) -> list[Stored]:
    """Return the messages of exchanges one after another, some 20 of them in every second."""
    return [_message(seq, EXCHANGE[(seq - 1) % len(EXCHANGE)]) for seq in range(1, count + 1)]


def _message(seq: int, event: Event) -> Stored:
    number, index = divmod(seq - 1, len(EXCHANGE))
    time_ns = START_NS + number * 50_000_000 + index * 2_000_000
    topic, agent, session = topic_of(event), f"agent-{number % 7}", f"session-{number % 499}"
    exchange = f"{time_ns // 1_000_000:012x}{event_id('exchange', 'bench', number)[:20]}"
    envelope = Envelope(
        id=event_id(str(seq - 1), entry_of(event).owner, 0),
        topic=topic,
        source=f"neuraxis/{entry_of(event).owner}",
        time="2025-06-15T15:06:40.000000Z",
        agent=agent,
        session=session,
        exchange=exchange,
        cause=event_id(str(seq - 2), "bench", 0),
        cause_seq=seq - 1,
        build="0.1.0+0123456789abcdef",
        traceparent=f"00-{exchange}-{exchange[:16]}-01",
    )
    subject = stored_subject(topic, PARTITIONS.agent_token(agent), PARTITIONS.session_token(session))
    return Stored(seq, time_ns, subject, encode_headers(envelope), encode_event(event))


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


async def _append(path: Path, stored: Sequence[Stored], size: int) -> float:
    async with await LedgerWriter.open(path, "BENCH", PARTITIONS) as writer:
        start = time.perf_counter()
        for batch in _batches(stored, size):
            await writer.append(batch, anchor_every=10_000)
        return len(stored) / (time.perf_counter() - start)


async def _append_beside_work(path: Path, stored: Sequence[Stored]) -> float:
    """Append while another task keeps the same event loop busy for half of the time."""

    async def work() -> None:
        while True:
            until = time.perf_counter() + 0.002
            while time.perf_counter() < until:
                json.dumps({"busy": list(range(50))})
            await asyncio.sleep(0.002)

    busy = asyncio.create_task(work())
    try:
        return await _append(path, stored, BATCH)
    finally:
        busy.cancel()


def _raw_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(_RAW_TABLE)
    return connection


_RAW_TABLE = "CREATE TABLE events (seq INTEGER PRIMARY KEY, time INTEGER, subject TEXT, headers TEXT, data BLOB)"
_RAW_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?)"


def _raw_rows(stored: Sequence[Stored]) -> list[tuple[Any, ...]]:
    return [(each.seq, each.time_ns, each.subject, encode_header_text(each.headers), each.data) for each in stored]


def _append_raw(path: Path, stored: Sequence[Stored]) -> float:
    connection = _raw_connection(path)
    start = time.perf_counter()
    for batch in _batches(stored, BATCH):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_RAW_INSERT, _raw_rows(batch))
        connection.execute("COMMIT")
    rate = len(stored) / (time.perf_counter() - start)
    connection.close()
    return rate


async def _append_singly(path: Path, stored: Sequence[Stored]) -> float:
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = FULL")
        await connection.execute(_RAW_TABLE)
        start = time.perf_counter()
        for row in _raw_rows(stored):
            await connection.execute(_RAW_INSERT, row)
            await connection.commit()
        return len(stored) / (time.perf_counter() - start)


def _recorder(path: Path) -> SQLiteApplicationRecorder:
    return SQLiteApplicationRecorder(SQLiteDatastore(str(path), originator_id_type="text"))


def _append_eventsourcing(path: Path, stored: Sequence[Stored]) -> float:
    recorder = _recorder(path)
    recorder.create_table()
    start = time.perf_counter()
    for batch in _batches(stored, BATCH):
        recorder.insert_events(
            [StoredEvent(each.headers["ce-exchange"], each.seq, each.headers["ce-type"], each.data) for each in batch]
        )
    rate = len(stored) / (time.perf_counter() - start)
    recorder.datastore.close()
    return rate


def _read(path: Path, count: Callable[[LedgerReader], int]) -> float:
    """Return how many events a second are read by a function that counts them."""
    with LedgerReader(path) as reader:
        start = time.perf_counter()
        return count(reader) / (time.perf_counter() - start)


def _verify(path: Path) -> float:
    start = time.perf_counter()
    return verify(path).rows / (time.perf_counter() - start)


def _fold_raw(path: Path) -> float:
    decoders = {topic: msgspec.json.Decoder(entry.event) for topic, entry in CATALOGUE.items()}
    connection = sqlite3.connect(path)
    start = time.perf_counter()
    count = 0
    for topic, data in connection.execute("SELECT topic, data FROM events ORDER BY seq"):
        decoders[topic].decode(data)
        count += 1
    rate = count / (time.perf_counter() - start)
    connection.close()
    return rate


def _fold_eventsourcing(path: Path) -> float:
    recorder = _recorder(path)
    start = time.perf_counter()
    count = 0
    while page := recorder.select_notifications(start=count + 1, limit=BATCH):
        for notification in page:
            json.loads(notification.state)
            count += 1
    rate = count / (time.perf_counter() - start)
    recorder.datastore.close()
    return rate


def _table(cases: dict[str, Callable[[], float]], peers: Sequence[str]) -> list[Row]:
    rates: dict[str, list[float]] = {case: [] for case in cases}
    for _ in range(ROUNDS):
        for case, measure in cases.items():
            rates[case].append(measure())
    medians = {case: statistics.median(found) for case, found in rates.items()}
    return [
        Row(
            case=case,
            events_per_s=round(rate),
            ratios={peer: round(rate / medians[peer], 2) for peer in peers if peer != case},
        )
        for case, rate in medians.items()
    ]


def run(count: int = EVENTS) -> list[Row]:
    """Measure every case over ``count`` events."""
    stored = messages(count)
    # A real projector never holds a hundred thousand messages, so the garbage collector must not scan these each time.
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count_of_files = 0

        def fresh() -> Path:
            nonlocal count_of_files
            count_of_files += 1
            return folder / f"{count_of_files}.db"

        singly, raw, peer = "aiosqlite row by row", "raw sqlite3 executemany", "eventsourcing, batched"
        appended = _table(
            {
                f"ledger append, batches of {BATCH}": lambda: asyncio.run(_append(fresh(), stored, BATCH)),
                "ledger append, batches of 500": lambda: asyncio.run(_append(fresh(), stored, 500)),
                "ledger append, busy event loop": lambda: asyncio.run(_append_beside_work(fresh(), stored)),
                raw: lambda: _append_raw(fresh(), stored),
                peer: lambda: _append_eventsourcing(fresh(), stored),
                singly: lambda: asyncio.run(_append_singly(fresh(), stored[:ROWS_SINGLY])),
            },
            (raw, peer, singly),
        )
        ledger, other = fresh(), fresh()
        asyncio.run(_append(ledger, stored, BATCH))
        _append_eventsourcing(other, stored)
        ceiling, peer = "raw sqlite3 and msgspec", "eventsourcing and json"
        read = _table(
            {
                "ledger counting fold": lambda: _read(ledger, lambda it: it.fold_bodies(lambda n, _: n + 1, 0).state),
                "ledger history": lambda: _read(ledger, lambda it: sum(map(len, it.history()))),
                "ledger verify": lambda: _verify(ledger),
                ceiling: lambda: _fold_raw(ledger),
                peer: lambda: _fold_eventsourcing(other),
            },
            (ceiling, peer),
        )
    return appended + read


def main() -> None:
    """Print the rows as a table."""
    rows = run(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
    record(rows)
    width = max(len(row.case) for row in rows)
    for row in rows:
        ratios = ", ".join(f"{ratio:g} x {peer}" for peer, ratio in row.ratios.items())
        print(f"{row.case.ljust(width)}  {row.events_per_s:>9,} events/s  {ratios}")


if __name__ == "__main__":
    main()
