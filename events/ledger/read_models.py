"""Read models: tables for queries, folded from events in the transaction that stores them.

They hold nothing that ``events`` does not, and can be dropped and rebuilt. Their statements commute over an
exchange's events, so that batches of any size lead to the same rows. ``cortex_iterations``, ``alerts`` and the feedback
and reflection of ``routing_decisions`` come with the events that carry them.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from events.codec import Recorded, decode
from events.ledger.failures import explained
from events.ledger.rows import to_stored, to_text, topic_of_subject
from events.log import Stored
from schemas.envelope import LATENCY
from schemas.event import topic_of
from schemas.identity import content_hash
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Fold(msgspec.Struct, frozen=True):
    """How an event changes a table: one statement, and its parameters from the event (None: no change)."""

    statement: str
    parameters: Callable[[Recorded], tuple[Any, ...] | None]


def _timestamp(time_ns: int) -> str:
    return (_EPOCH + timedelta(microseconds=time_ns // 1000)).isoformat(timespec="microseconds")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _exchange_started(recorded: Recorded) -> tuple[Any, ...] | None:
    message = recorded.message
    if not message.exchange:
        return None
    return (
        to_text(message.exchange),
        to_text(message.agent),
        to_text(message.session),
        message.seq,
        message.time_ns,
    )


def _exchange_ended(recorded: Recorded) -> tuple[Any, ...] | None:
    message, event = recorded.message, recorded.message.event
    if not message.exchange:
        return None
    assert isinstance(event, ResponseEmitted)
    return (
        to_text(message.exchange),
        to_text(message.agent),
        to_text(message.session),
        message.seq,
        message.time_ns,
        event.stage,
        event.action,
        event.reason,
        event.mode,
        event.first_mode,
    )


def _routing_decision(recorded: Recorded) -> tuple[Any, ...]:
    message, event = recorded.message, recorded.message.event
    assert isinstance(event, ModeSelected)
    latency = recorded.stored.headers.get(LATENCY, "")
    return (
        to_text(message.id),
        message.seq,
        event.conversation_topic,
        to_text(message.exchange),
        event.selected_mode,
        event.router_confidence,
        _json(event.scores),
        event.tiebreaker_used,
        _json(event.tiebreaker_candidates),
        event.margin,
        event.effective_margin,
        _json(event.signals),
        _json(event.weights),
        int(latency) / 1000 if latency.isascii() and latency.isdigit() and len(latency) <= 15 else None,
        event.previous_mode,
        _timestamp(message.time_ns),
    )


TABLES: Mapping[str, str] = {
    "exchanges": """
        exchange TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        started_seq INTEGER,
        started_ns INTEGER,
        ended_seq INTEGER,
        ended_ns INTEGER,
        stage TEXT,
        action TEXT,
        reason TEXT,
        mode TEXT,
        first_mode TEXT,
        latency_ms REAL GENERATED ALWAYS AS ((ended_ns - started_ns) / 1e6) VIRTUAL
    """,
    "routing_decisions": """
        id TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        topic TEXT NOT NULL,
        exchange_id TEXT,
        selected_mode TEXT NOT NULL,
        router_confidence REAL,
        scores TEXT NOT NULL,
        tiebreaker_used INTEGER NOT NULL,
        tiebreaker_candidates TEXT,
        margin REAL,
        effective_margin REAL,
        signal_snapshot TEXT NOT NULL,
        weight_snapshot TEXT,
        routing_time_ms REAL,
        feedback TEXT,
        reflection TEXT,
        previous_mode TEXT,
        created_at TEXT NOT NULL
    """,
}
"""Table -> its columns. Latencies are milliseconds between server times, ``_ns`` Unix nanoseconds."""

# The first start and the first end of an exchange count: a repeated one changes nothing.
FOLDS: Mapping[str, Fold] = {
    topic_of(InputReceived): Fold(
        """
        INSERT INTO exchanges (exchange, agent, session, started_seq, started_ns) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (exchange) DO UPDATE SET agent = excluded.agent, session = excluded.session,
            started_seq = excluded.started_seq, started_ns = excluded.started_ns
        WHERE started_seq IS NULL
        """,
        _exchange_started,
    ),
    topic_of(ResponseEmitted): Fold(
        """
        INSERT INTO exchanges (exchange, agent, session, ended_seq, ended_ns, stage, action, reason, mode, first_mode)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (exchange) DO UPDATE SET
            ended_seq = excluded.ended_seq, ended_ns = excluded.ended_ns, stage = excluded.stage,
            action = excluded.action, reason = excluded.reason, mode = excluded.mode, first_mode = excluded.first_mode
        WHERE ended_seq IS NULL
        """,
        _exchange_ended,
    ),
    topic_of(ModeSelected): Fold(
        """
        INSERT INTO routing_decisions (id, seq, topic, exchange_id, selected_mode, router_confidence, scores,
            tiebreaker_used, tiebreaker_candidates, margin, effective_margin, signal_snapshot, weight_snapshot,
            routing_time_ms, previous_mode, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
        """,
        _routing_decision,
    ),
}
"""Public subject -> how its events change the tables."""

FINGERPRINT = content_hash([TABLES, {topic: fold.statement for topic, fold in FOLDS.items()}])
"""Names this release's read models; a file with another one has them rebuilt when it is opened for writing."""

_BATCH = 2_000


def changes(batch: Iterable[Stored]) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a batch does to the tables: statement -> its parameters, in stream order. Skips what is unreadable."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for stored in batch:
        fold = FOLDS.get(topic_of_subject(stored.subject))
        if fold is None:
            continue
        recorded = decode(stored)
        parameters = fold.parameters(recorded) if isinstance(recorded, Recorded) else None
        if parameters is not None:
            found[fold.statement].append(parameters)
    return found


def rebuild_within(connection: sqlite3.Connection) -> None:
    """Drop the tables and fold them again from ``events``, within the caller's transaction."""
    for table, columns in TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE TABLE {table} ({columns}) WITHOUT ROWID")
    marks = ", ".join("?" * len(FOLDS))
    rows = connection.execute(
        f"SELECT seq, time, subject, headers, data FROM events WHERE topic IN ({marks}) ORDER BY seq", tuple(FOLDS)
    )
    while batch := rows.fetchmany(_BATCH):
        for statement, parameters in changes(to_stored(*row) for row in batch).items():
            connection.executemany(statement, parameters)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'models'", (FINGERPRINT,))


def rebuild(path: Path) -> None:
    """Drop a ledger's read models and fold them again from its events, in one transaction.

    Readers see the old ones until it is done; a live projector waits.

    Raises:
        LedgerDamaged, Unavailable, Misconfigured: see ``events.ledger.failures``; the file is unchanged.
    """
    from events.ledger.schema import connect_for_writing, read_meta

    if not path.is_file():
        return
    connection = connect_for_writing(path)
    try:
        with explained(path, "rebuild the read models"):
            connection.execute("BEGIN IMMEDIATE")
            read_meta(connection, path)
            rebuild_within(connection)
            connection.execute("COMMIT")
    finally:
        connection.close()
