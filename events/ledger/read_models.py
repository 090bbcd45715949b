"""Read models: tables for queries, folded from events in the transaction that stores them.

They hold nothing that ``events`` does not, and can be dropped and rebuilt. Their statements commute over an
exchange's events, so that batches of any size lead to the same rows. What people said is in them as it is in
``events``. ``alerts`` has a row for each outbreak that was announced, as its latest announcement tells of it.
``changes`` has what outlasts an exchange: a session's breaker, a router's weights, an agent's review of itself.
"""

import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from events.ledger.bulk import Insert, sql
from events.ledger.failures import DamagedRow
from events.ledger.rows import (
    DATA,
    EXCHANGE,
    MESSAGE_COLUMNS,
    SEQ,
    TOPIC,
    VERSION,
    Row,
    Text,
    batches,
    from_text,
    to_row,
)
from events.ledger.tables import INDEXES, TABLES, VIEWS, make
from schemas.catalogue import ALERTS, CATALOGUE, decode_event
from schemas.envelope import LATENCY
from schemas.errors import VocabularyError
from schemas.event import Event, topic_of
from schemas.identity import content_hash
from schemas.vocabulary.act import ActFinished, ActIterated
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflection import ReflectionConcluded
from schemas.vocabulary.regulator import Adjusted, Confirmed, Reverted
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import FeedbackObserved, ModeSelected
from schemas.vocabulary.self_review import SelfReviewTriggered

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Parameters: TypeAlias = tuple[Any, ...]


class Fold(msgspec.Struct, frozen=True):
    """How an event changes a table: an insertion, and its values from the event's row and headers.

    Of several rows the values follow each other. ``of_exchange``: only events that belong to an exchange do so.
    """

    insert: Insert
    values: Callable[[Row, Mapping[str, str]], Parameters]
    of_exchange: bool = True


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec="seconds").removesuffix("+00:00")


def timestamp(time_ns: int) -> str:
    """Return a time as the tables have it: of all times as long, so that they sort as text."""
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
        event.terminal_mode,
        event.rerouted,
        event.router_confidence,
        _json(event.scores),
        event.tiebreaker_used,
        _json(event.tiebreaker_candidates),
        event.tiebreaker_outcome,
        event.margin,
        event.effective_margin,
        _json(event.signals),
        _json(event.weights),
        int(latency) / 1000 if latency.isascii() and latency.isdigit() and len(latency) <= 15 else None,
        event.previous_mode,
        event.reason,
        timestamp(time_ns),
    )


def _routing_feedback(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, _, _, exchange, _, _, _, _, _ = row
    event = _event(row)
    assert isinstance(event, FeedbackObserved)
    said = {"feedback": event.feedback, "signal": event.signal, "mode": event.mode, "observed_in": from_text(exchange)}
    return event.of_exchange, seq, _json(said)


def _routing_reflections(row: Row, _headers: Mapping[str, str]) -> Parameters:
    event = _event(row)
    assert isinstance(event, ReflectionConcluded)
    return tuple(value for each in event.insights for value in (each.exchange, row[SEQ], _json(each)))


def _alert(row: Row, _headers: Mapping[str, str]) -> Parameters:
    _, _, _, _, _, _, _, _, _, time_ns, _, _ = row
    event = _event(row)
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
        _json(event.figures),
        event.status,
        event.count,
        event.first_seq,
        event.cause_seq,
        timestamp(event.since_ns),
        timestamp(event.last_ns),
        timestamp(time_ns) if over else None,
        event.resolved_by if over else None,
    )


def _breaker_change(row: Row, _headers: Mapping[str, str]) -> Parameters:
    # Of an operator's order what it came to alone: who gave it, and why, are words.
    standing = msgspec.structs.asdict(_event(row))["standing"]
    return _change(row, "breaker", standing.state, standing)


def _regulator_change(row: Row, _headers: Mapping[str, str]) -> Parameters:
    return _change(row, "regulator", "", _event(row))


def _self_review(row: Row, _headers: Mapping[str, str]) -> Parameters:
    return _change(row, "self_review", "", _event(row))


def _change(row: Row, owner: str, state: str, figures: msgspec.Struct) -> Parameters:
    seq, _, topic, _, agent, session, _, _, _, time_ns, _, _ = row
    return seq, owner, topic, agent, session, state, _json(figures), timestamp(time_ns)


def _act_iteration(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, id, _, _, _, session, exchange, _, _, time_ns, _, _ = row
    event = _event(row)
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
        _json(event.performed),
        len(event.performed),
        sum(each.ok for each in event.performed),
        event.elapsed_ms,
        timestamp(time_ns),
    )


def _act_loop(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, _, _, _, _, exchange, _, _, _, _, _ = row
    event = _event(row)
    assert isinstance(event, ActFinished)
    return (
        exchange,
        seq,
        event.termination,
        event.iterations,
        event.productive,
        event.elapsed_ms,
        len(event.findings),
    )


_ALERTS = Insert(
    "alerts",
    (
        "id",
        "severity",
        "source",
        "topic",
        "agent",
        "session",
        "exchange",
        "detail",
        "figures",
        "status",
        "count",
        "first_seq",
        "last_seq",
        "since",
        "last",
        "resolved_at",
        "resolved_by",
    ),
    # An outbreak only grows, and its end has the last word: whatever the order in a batch, the latest stands.
    """
    ON CONFLICT (id, first_seq) DO UPDATE SET exchange = excluded.exchange, figures = excluded.figures,
        status = excluded.status, count = excluded.count, last_seq = excluded.last_seq, last = excluded.last,
        resolved_at = excluded.resolved_at, resolved_by = excluded.resolved_by
    WHERE alerts.status = 'firing' AND excluded.count >= alerts.count
    """,
)

_OF_A_BREAKER = tuple(
    entry.event
    for entry in CATALOGUE.values()
    if entry.owner == "breaker"
    and "standing" in entry.event.__struct_fields__
    and entry.event is not BreakerCleared  # nothing changed, and every input that is answered has one
)
"""The events that say where a session's breaker stands."""

_CHANGES = Insert("changes", ("seq", "owner", "topic", "agent", "session", "state", "figures", "created_at"))

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
            "mode_selections",
            (
                "seq",
                "id",
                "topic",
                "exchange_id",
                "selected_mode",
                "terminal_mode",
                "rerouted",
                "router_confidence",
                "scores",
                "tiebreaker_used",
                "tiebreaker_candidates",
                "tiebreaker_outcome",
                "margin",
                "effective_margin",
                "signal_snapshot",
                "weight_snapshot",
                "routing_time_ms",
                "previous_mode",
                "reason",
                "created_at",
            ),
        ),
        _routing_decision,
    ),
    topic_of(FeedbackObserved): Fold(
        Insert(
            "routing_feedback",
            ("exchange_id", "seq", "feedback"),
            "ON CONFLICT (exchange_id) DO NOTHING",
        ),
        _routing_feedback,
    ),
    topic_of(ReflectionConcluded): Fold(
        Insert(
            "routing_reflections",
            ("exchange_id", "seq", "reflection"),
            "ON CONFLICT (exchange_id) DO NOTHING",
        ),
        _routing_reflections,
        of_exchange=False,
    ),
    topic_of(ActIterated): Fold(
        Insert(
            "act_iterations",
            (
                "seq",
                "id",
                "session_id",
                "exchange_id",
                "iteration_number",
                "planner",
                "productive",
                "reason",
                "actions_executed",
                "action_count",
                "action_success_count",
                "elapsed_ms",
                "completed_at",
            ),
        ),
        _act_iteration,
    ),
    topic_of(ActFinished): Fold(
        Insert(
            "act_loops",
            ("exchange_id", "seq", "termination", "iterations", "productive", "elapsed_ms", "finding_count"),
            "ON CONFLICT (exchange_id) DO NOTHING",
        ),
        _act_loop,
    ),
    **{topic_of(kind): Fold(_CHANGES, _breaker_change, of_exchange=False) for kind in _OF_A_BREAKER},
    **{
        topic_of(kind): Fold(_CHANGES, _regulator_change, of_exchange=False) for kind in (Adjusted, Confirmed, Reverted)
    },
    topic_of(SelfReviewTriggered): Fold(_CHANGES, _self_review, of_exchange=False),
    **{topic_of(kind): Fold(_ALERTS, _alert, of_exchange=False) for kind in ALERTS.values()},
}
"""Public subject -> how its events change the tables."""

FINGERPRINT = content_hash([TABLES, INDEXES, VIEWS, {topic: fold.insert for topic, fold in FOLDS.items()}])
"""Names this release's read models; a file with another one has them rebuilt when it is opened for writing."""


def change(models: Mapping[Insert, list[Any]], row: Row, headers: Mapping[str, str]) -> None:
    """Add what an event of a topic in ``FOLDS`` does to the tables: to each insertion its values, flat.

    Events that cannot be read change nothing, nor do those of no exchange where one is asked for.
    """
    fold = FOLDS[row[TOPIC]]
    if row[VERSION] is None or (fold.of_exchange and not row[EXCHANGE]):
        return
    try:
        values = fold.values(row, headers)
    except VocabularyError:
        return
    models[fold.insert].extend(values)


def rebuild_within(connection: sqlite3.Connection) -> None:
    """Drop the tables and fold them again from ``events``, within the caller's transaction.

    Raises:
        DamagedRow: a row is not what was written, so that nobody knows what to fold.
    """
    make(connection)
    marks = ", ".join("?" * len(FOLDS))
    cursor = connection.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM events WHERE topic IN ({marks}) ORDER BY seq", tuple(FOLDS)
    )
    for batch in batches(cursor):
        models: dict[Insert, list[Any]] = {fold.insert: [] for fold in FOLDS.values()}
        for stored in batch:
            row = to_row(stored)
            if row[TOPIC] not in FOLDS:
                raise DamagedRow(f"row {stored.seq} is found under another topic than its subject says")
            change(models, row, stored.headers)
        for insert, values in models.items():
            width = len(insert.columns)
            connection.executemany(
                sql(insert, 1), (values[start : start + width] for start in range(0, len(values), width))
            )
    connection.execute("UPDATE meta SET value = ? WHERE key = 'models'", (FINGERPRINT,))
