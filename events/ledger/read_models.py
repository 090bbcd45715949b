"""Read models: tables for queries, folded from events in the transaction that stores them.

They hold nothing that ``events`` does not, and can be dropped and rebuilt. The events of an exchange may be folded in
any order, so that batches of any size lead to the same rows. People's words are in them as they are in ``events``.
``alerts`` has a row for each outbreak (a group of alerts from firing to resolved), as of its latest alert. ``changes``
holds what lasts longer than an exchange: a session's breaker, a router's weights, an agent's self-review. ``unread``
holds the events that are missing from the others, since this release cannot read them.
"""

import sqlite3
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import msgspec

from events.ledger.bulk_insert import Fold, Insert, Parameters, sql
from events.ledger.changes import CHANGES
from events.ledger.rows import (
    EXCHANGE,
    MESSAGE_COLUMNS,
    SEQ,
    TOPIC,
    VERSION,
    Row,
    Text,
    batches,
    event_of,
    from_text,
    is_int64,
    json_of,
    timestamp,
    to_row,
)
from events.ledger.sqlite_errors import DamagedRow
from events.ledger.tables import INDEXES, TABLES, VIEWS, columns_of, make
from schemas.catalogue import ALERTS, CATALOGUE
from schemas.envelope import LATENCY
from schemas.errors import VocabularyError
from schemas.event import ROOT, encode_event, topic_of
from schemas.identity import content_hash
from schemas.vocabulary.act import ActFinished, ActIterated
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflection import ReflectionConcluded
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import FeedbackObserved, ModeSelected


def _exchange_started(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, agent, session, exchange, _, _, time_ns, _, _ = row
    return exchange, agent, session, seq, time_ns


def _exchange_ended(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, agent, session, exchange, _, _, time_ns, _, _ = row
    event = event_of(row)
    assert isinstance(event, ResponseEmitted)
    end = event.stage, event.action, event.reason, event.mode, event.first_mode
    return exchange, agent, session, seq, time_ns, *end


def _unreadable_end(row: Row) -> Parameters:
    seq, _, _, _, agent, session, exchange, _, _, time_ns, _, _ = row
    return exchange, agent, session, seq, time_ns, None, None, None, None, None


def _routing_decision(row: Row, headers: Mapping[str, str]) -> Parameters:
    seq, id, _, _, _, _, exchange, _, _, time_ns, _, _ = row
    event = event_of(row)
    assert isinstance(event, ModeSelected)
    latency = headers.get(LATENCY, "")
    return (
        seq,
        id,
        event.conversation_topic,
        exchange,
        event.selected_mode,
        event.terminal_mode,
        event.rerouted,
        event.router_confidence,
        json_of(event.scores),
        event.tiebreaker_used,
        json_of(event.tiebreaker_candidates),
        event.tiebreaker_outcome,
        event.margin,
        event.effective_margin,
        json_of(event.signals),
        json_of(event.weights),
        int(latency) / 1000 if latency.isascii() and latency.isdigit() and len(latency) <= 15 else None,
        event.previous_mode,
        event.reason,
        timestamp(time_ns),
    )


def _routing_feedback(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, _, _, exchange, _, _, _, _, _ = row
    event = event_of(row)
    assert isinstance(event, FeedbackObserved)
    feedback = {
        "feedback": event.feedback,
        "signal": event.signal,
        "mode": event.mode,
        "observed_in": from_text(exchange),
    }
    return event.of_exchange, seq, json_of(feedback)


def _routing_reflections(row: Row, _headers: Mapping[str, str]) -> Parameters:
    event = event_of(row)
    assert isinstance(event, ReflectionConcluded)
    return tuple(value for each in event.insights for value in (each.exchange, row[SEQ], json_of(each)))


def _alert(row: Row, _headers: Mapping[str, str]) -> Parameters:
    _, _, _, _, _, _, _, _, _, time_ns, _, _ = row
    event = event_of(row)
    assert isinstance(event, Alert)
    over = event.status == "resolved"
    return (
        event.alert,
        event.severity,
        event.source,
        event.event,
        event.agent,
        event.session,
        event.exchange,
        event.detail,
        json_of(event.figures),
        event.status,
        event.count,
        event.first_seq,
        event.cause_seq,
        timestamp(event.since_ns),
        timestamp(event.last_ns),
        timestamp(time_ns) if over else None,
        event.resolved_by if over else None,
    )


def _act_iteration(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, id, _, _, _, session, exchange, _, _, time_ns, _, _ = row
    event = event_of(row)
    assert isinstance(event, ActIterated)
    return (
        seq,
        id,
        session,
        exchange,
        event.iteration,
        event.planner,
        event.productive,
        event.reason,
        json_of(event.performed),
        len(event.performed),
        sum(each.ok for each in event.performed),
        event.elapsed_ms,
        timestamp(time_ns),
    )


def _act_loop(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, _, _, exchange, _, _, _, _, _ = row
    event = event_of(row)
    assert isinstance(event, ActFinished)
    return exchange, seq, event.termination, event.iterations, event.productive, event.elapsed_ms, len(event.findings)


_ALERTS = Insert(
    "alerts",
    columns_of("alerts"),
    # An outbreak's count only grows, and its end is final: so the latest state is kept, whatever the order in a batch.
    """
    ON CONFLICT (id, first_seq) DO UPDATE SET exchange = excluded.exchange, figures = excluded.figures,
        status = excluded.status, count = excluded.count, last_seq = excluded.last_seq, last = excluded.last,
        resolved_at = excluded.resolved_at, resolved_by = excluded.resolved_by
    WHERE alerts.status = 'firing' AND excluded.count >= alerts.count
    """,
)

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
            WHERE ended_seq IS NULL OR (stage IS NULL AND excluded.stage IS NOT NULL)
            """,
        ),
        _exchange_ended,
        unread=_unreadable_end,
    ),
    topic_of(ModeSelected): Fold(
        Insert("mode_selections", columns_of("mode_selections")),
        _routing_decision,
    ),
    topic_of(FeedbackObserved): Fold(
        Insert("routing_feedback", columns_of("routing_feedback"), "ON CONFLICT (exchange_id) DO NOTHING"),
        _routing_feedback,
    ),
    topic_of(ReflectionConcluded): Fold(
        Insert("routing_reflections", columns_of("routing_reflections"), "ON CONFLICT (exchange_id) DO NOTHING"),
        _routing_reflections,
        of_exchange=False,
    ),
    topic_of(ActIterated): Fold(
        Insert("act_iterations", columns_of("act_iterations")),
        _act_iteration,
    ),
    topic_of(ActFinished): Fold(
        Insert("act_loops", columns_of("act_loops"), "ON CONFLICT (exchange_id) DO NOTHING"),
        _act_loop,
    ),
    **CHANGES,
    **{topic_of(kind): Fold(_ALERTS, _alert, of_exchange=False) for kind in ALERTS.values()},
}
"""Public subject -> how its events change the tables."""

UNREAD = Insert("unread", columns_of("unread"))
"""What an event inserts that would have changed a table, and cannot be read."""

INSERTS = (*dict.fromkeys(fold.insert for fold in FOLDS.values()), UNREAD)
"""All insertions into the tables."""

_OWNERS = frozenset(from_text(topic).split(".")[1] for topic in FOLDS)
_KNOWN = frozenset(topic for topic in CATALOGUE if topic.split(".")[1] in _OWNERS)


@lru_cache(maxsize=4096)
def is_folded(topic: object) -> bool:
    """Whether events of a public subject may change a table.

    These are the subjects in ``FOLDS``, and unknown subjects of the same owners: a later release may have further
    alerts, or further states of a breaker.
    """
    if topic in FOLDS:
        return True
    if not isinstance(topic, str):  # no subject of ours, or a damaged column
        return False
    tokens = topic.split(".")
    return len(tokens) > 2 and tokens[0] == ROOT and tokens[1] in _OWNERS and topic not in _KNOWN


@cache
def fingerprint() -> str:
    """Return what identifies this release's read models: 64 hex digits.

    A file with another one has them rebuilt when a writer opens it. It covers the tables, which events are folded into
    them, and what the folds make of these: tables hold whole structs as JSON, so that a field which is added to an
    event changes their rows. The catalogue's samples stand for all events.
    """
    return content_hash(
        [
            TABLES,
            INDEXES,
            VIEWS,
            {topic: [fold.insert, *_folded_shape(topic, fold)] for topic, fold in FOLDS.items()},
            sorted(_KNOWN),
        ]
    )


def _folded_shape(topic: Text, fold: Fold) -> tuple[int, Any, Any]:
    """Return an event's version, the fields of its body at every depth, and the values folded of its sample."""
    entry = CATALOGUE[from_text(topic)]
    key = "sample"
    row: Row = (1, key, topic, "", key, key, key, 0, entry.version, 0, "{}", encode_event(entry.sample))
    return entry.version, _without_prose(msgspec.json.schema(entry.event)), fold.values(row, {})


def _without_prose(schema: Any) -> Any:
    """Return a JSON Schema without its descriptions and titles: a change of wording changes no table."""
    if isinstance(schema, dict):
        prose = ("description", "title") if "type" in schema else ()
        return {name: _without_prose(inner) for name, inner in schema.items() if name not in prose}
    return [_without_prose(inner) for inner in schema] if isinstance(schema, list) else schema


def add_values(collected: Mapping[Insert, list[Any]], row: Row, headers: Mapping[str, str]) -> None:
    """Add what an event inserts into the tables to ``collected``, as flat values. :func:`is_folded` knows its topic.

    Events of no exchange change nothing, if the fold needs one. Events that cannot be read are noted as unread, and so
    are those with a number too large for a column or a date: one of them would end the ledger at every start.
    """
    fold = FOLDS.get(row[TOPIC])
    if fold is not None and row[VERSION] is not None:
        if fold.of_exchange and not row[EXCHANGE]:
            return
        try:
            values = fold.values(row, headers)
        except (VocabularyError, OverflowError):
            if fold.unread is not None:
                collected[fold.insert].extend(fold.unread(row))
        else:
            if all(type(value) is not int or is_int64(value) for value in values):
                collected[fold.insert].extend(values)
                return
    seq, _, topic, _, agent, session, exchange, _, version, _, _, _ = row
    collected[UNREAD].extend((seq, topic, agent, session, exchange, version))


def rebuild_within(connection: sqlite3.Connection) -> None:
    """Drop the tables and fold them again from ``events``, within the caller's transaction.

    Raises:
        DamagedRow: a row has changed since it was written, so that it cannot be folded.
    """
    make(connection)
    connection.create_function("is_folded", 1, is_folded, deterministic=True)
    cursor = connection.execute(f"SELECT {MESSAGE_COLUMNS} FROM events WHERE is_folded(topic) ORDER BY seq")
    for batch in batches(cursor):
        collected: dict[Insert, list[Any]] = {insert: [] for insert in INSERTS}
        for stored in batch:
            row = to_row(stored)
            if not is_folded(row[TOPIC]):
                raise DamagedRow(f"row {stored.seq} is found under another topic than its subject says")
            add_values(collected, row, stored.headers)
        for insert, values in collected.items():
            width = len(insert.columns)
            connection.executemany(
                sql(insert, 1), (values[start : start + width] for start in range(0, len(values), width))
            )
    connection.execute("UPDATE meta SET value = ? WHERE key = 'models'", (fingerprint(),))
