"""Read models: tables for queries, folded from events in the transaction that stores them.

They hold nothing that ``events`` does not, and can be dropped and rebuilt. Their statements commute over an
exchange's events, so that batches of any size lead to the same rows. ``cortex_iterations``, ``alerts`` and the feedback
and reflection of ``routing_decisions`` come with the events that carry them.
"""

import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from events.ledger.bulk import Insert, sql
from events.ledger.rows import DATA, EXCHANGE, MESSAGE_COLUMNS, TOPIC, VERSION, Row, Text, batches, to_row
from schemas.catalogue import decode_event
from schemas.envelope import LATENCY
from schemas.errors import VocabularyError
from schemas.event import Event, topic_of
from schemas.identity import content_hash
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Parameters: TypeAlias = tuple[Any, ...]


class Fold(msgspec.Struct, frozen=True):
    """How an event changes a table: an insertion, and its values from the event's row and headers."""

    insert: Insert
    values: Callable[[Row, Mapping[str, str]], Parameters]


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds").removesuffix("+00:00")


def _timestamp(time_ns: int) -> str:
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    return f"{_second(seconds)}.{nanoseconds // 1000:06d}+00:00"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _event(row: Row) -> Event:
    topic, version = row[TOPIC], row[VERSION]
    assert isinstance(topic, str), "a topic of FOLDS is plain text"
    assert version is not None, "unreadable rows change nothing"
    return decode_event(topic, row[DATA], version)


def _exchange_started(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, agent, session, exchange, _, _, time_ns, _, _ = row
    return exchange, agent, session, seq, time_ns


def _exchange_ended(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, agent, session, exchange, _, _, time_ns, _, _ = row
    event = _event(row)
    assert isinstance(event, ResponseEmitted)
    return (
        exchange,
        agent,
        session,
        seq,
        time_ns,
        event.stage,
        event.action,
        event.reason,
        event.mode,
        event.first_mode,
    )


def _routing_decision(row: Row, headers: Mapping[str, str]) -> Parameters:
    seq, id, _, _, _, _, exchange, _, _, time_ns, _, _ = row
    event = _event(row)
    assert isinstance(event, ModeSelected)
    latency = headers.get(LATENCY, "")
    return (
        seq,
        id,
        event.conversation_topic,
        exchange,
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
        _timestamp(time_ns),
    )


TABLES: Mapping[str, str] = {
    "exchanges": """(
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
    ) WITHOUT ROWID""",
    "routing_decisions": """(
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
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
    )""",
}
"""Table -> its columns. Latencies are milliseconds between server times, ``_ns`` Unix nanoseconds."""

# The first start and the first end of an exchange count: a repeated one changes nothing.
FOLDS: Mapping[Text, Fold] = {
    topic_of(InputReceived): Fold(
        Insert(
            "exchanges",
            ("exchange", "agent", "session", "started_seq", "started_ns"),
            """
            ON CONFLICT (exchange) DO UPDATE SET agent = excluded.agent, session = excluded.session,
                started_seq = excluded.started_seq, started_ns = excluded.started_ns
            WHERE started_seq IS NULL
            """,
        ),
        _exchange_started,
    ),
    topic_of(ResponseEmitted): Fold(
        Insert(
            "exchanges",
            (
                "exchange",
                "agent",
                "session",
                "ended_seq",
                "ended_ns",
                "stage",
                "action",
                "reason",
                "mode",
                "first_mode",
            ),
            """
            ON CONFLICT (exchange) DO UPDATE SET ended_seq = excluded.ended_seq, ended_ns = excluded.ended_ns,
                stage = excluded.stage, action = excluded.action, reason = excluded.reason,
                mode = excluded.mode, first_mode = excluded.first_mode
            WHERE ended_seq IS NULL
            """,
        ),
        _exchange_ended,
    ),
    topic_of(ModeSelected): Fold(
        Insert(
            "routing_decisions",
            (
                "seq",
                "id",
                "topic",
                "exchange_id",
                "selected_mode",
                "router_confidence",
                "scores",
                "tiebreaker_used",
                "tiebreaker_candidates",
                "margin",
                "effective_margin",
                "signal_snapshot",
                "weight_snapshot",
                "routing_time_ms",
                "previous_mode",
                "created_at",
            ),
        ),
        _routing_decision,
    ),
}
"""Public subject -> how its events change the tables."""

FINGERPRINT = content_hash([TABLES, {topic: fold.insert for topic, fold in FOLDS.items()}])
"""Names this release's read models; a file with another one has them rebuilt when it is opened for writing."""


def change(models: Mapping[Insert, list[Any]], row: Row, headers: Mapping[str, str]) -> None:
    """Add what an event of a topic in ``FOLDS`` does to the tables: to each insertion its values, flat.

    Events that cannot be read, and those of no exchange, change nothing.
    """
    fold = FOLDS[row[TOPIC]]
    if row[VERSION] is None or not row[EXCHANGE]:
        return
    try:
        values = fold.values(row, headers)
    except VocabularyError:
        return
    models[fold.insert].extend(values)


def rebuild_within(connection: sqlite3.Connection) -> None:
    """Drop the tables and fold them again from ``events``, within the caller's transaction."""
    for table, columns in TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE TABLE {table} {columns}")
    marks = ", ".join("?" * len(FOLDS))
    cursor = connection.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM events WHERE topic IN ({marks}) ORDER BY seq", tuple(FOLDS)
    )
    for batch in batches(cursor):
        models: dict[Insert, list[Any]] = {fold.insert: [] for fold in FOLDS.values()}
        for stored in batch:
            change(models, to_row(stored), stored.headers)
        for insert, values in models.items():
            width = len(insert.columns)
            connection.executemany(
                sql(insert, 1), (values[start : start + width] for start in range(0, len(values), width))
            )
    connection.execute("UPDATE meta SET value = ? WHERE key = 'models'", (FINGERPRINT,))
