"""The state of a set at a point of its log, from a ledger's read models: outcomes of exchanges, alerts, changes."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from math import ceil, inf
from pathlib import Path
from typing import Any

import msgspec

from events.ledger.exchange_list import LogPosition, check_written
from events.ledger.reader import END
from events.ledger.rows import Text, from_text, timestamp
from events.ledger.schema import connect_read_only
from events.ledger.sqlite_errors import translated_errors
from events.ledger.time_limit import ended_after
from schemas.intake.timestamps import to_milliseconds

LATEST = 1_000
"""How many of the latest exchanges are counted. The limit keeps the query as fast on a long log as on a short one."""

DECISIONS = 200
"""How many routing decisions have their modes counted: as many as the monitor's window has."""

DECISIONS_SEEN = 2_000
"""How many of the latest routing decisions are read to find each agent's latest :data:`DECISIONS`."""

AGENTS = 20
"""How many agents have their modes shown: those with the most decisions."""

SHOWN = 50
"""How many alerts, and how many sessions with open breakers, are listed at most."""

CHANGES = 10
"""How many changes of each kind are shown, the latest first."""


class PointRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a point of the log: ``at`` is a sequence, 0 the end."""

    at: LogPosition = 0


class EndCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the latest exchanges one stage ended with one action."""

    stage: str
    action: str
    count: int


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A mode's share of the latest routing decisions, and the range in which it is healthy."""

    mode: str
    count: int
    share: float
    low: float
    high: float


class AgentModes(msgspec.Struct, frozen=True, kw_only=True):
    """How often an agent's latest routing decisions chose each mode, the most frequent first."""

    agent: str
    decisions: int
    modes: dict[str, int]


class FiringAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that fires at the point. ``count`` is the number of its events; None if some came after the point.

    ``since`` is when its first event was stored, ``detail`` what else distinguishes it from others of its ``event``.
    ``figures`` are the numbers and codes of its latest event, by the names of their fields.
    """

    alert: str
    severity: str
    event: str
    agent: str
    session: str
    exchange: str
    detail: str
    figures: dict[str, str]
    since: str
    count: int | None


class BreakerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session whose breaker (the circuit breaker over trust in it) is not in NORMAL, as of its latest event.

    ``seq`` is that event's sequence.
    """

    agent: str
    session: str
    state: str
    trust: float
    stance: str
    violations: int
    seq: int
    time: str


class ChangeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A change by an actor that lasts longer than an exchange: the event's subject, and its numbers."""

    seq: int
    time: str
    topic: str
    agent: str
    figures: dict[str, Any]


class UnreadCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many events of a subject this release cannot read, and the sequence of the latest."""

    topic: str
    count: int
    last_seq: int


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a set at a point of its log, without people's words.

    Attributes:
        at: The sequence of the latest event at that point; 0 in a ledger without events.
        time: The server's time of that event (RFC 3339).
        head: The sequence up to which the ledger is written.
        exchanges: How many of the latest exchanges are counted, open ones included.
        open: How many of them had not ended.
        ended_unread: How many of them have ended in a way that this release cannot read.
        ended: The outcomes of the others, the most frequent first.
        p50_ms: Median latency; None if none had ended.
        p99_ms: 99th percentile of the latency; None if none had ended.
        decisions: How many routing decisions are counted, of all agents together.
        modes: The shares of the modes.
        modes_by_agent: How often each agent's latest decisions chose each mode.
        alerts: Alerts that fire, the most severe first; at most :data:`SHOWN`.
        alerts_firing: How many alerts fire.
        breakers: Sessions whose breaker is not in NORMAL, the latest first; at most :data:`SHOWN`.
        breakers_open: How many such sessions there are.
        adjustments: The latest changes of routers' weights.
        reviews: The latest self-reviews of agents.
        unread: Events that are missing from all of this, since this release cannot read them: those of the subjects
            with the most, at most :data:`SHOWN` of these. There may be more alerts that fire, for instance.
    """

    at: int
    time: str
    head: int
    exchanges: int
    open: int
    ended_unread: int = 0
    ended: tuple[EndCount, ...]
    p50_ms: float | None
    p99_ms: float | None
    decisions: int
    modes: tuple[Share, ...]
    modes_by_agent: tuple[AgentModes, ...]
    alerts: tuple[FiringAlert, ...]
    alerts_firing: int
    breakers: tuple[BreakerRow, ...]
    breakers_open: int
    adjustments: tuple[ChangeRow, ...]
    reviews: tuple[ChangeRow, ...]
    unread: tuple[UnreadCount, ...] = ()


def overview_at(path: Path, at: int, healthy: Mapping[str, tuple[float, float]], *, most_s: float = inf) -> Overview:
    """Return how the set of a ledger file was at a point of the log; 0: at its end.

    Args:
        path: The ledger.
        at: The point, a sequence.
        healthy: Mode -> the lowest and highest healthy share of the decisions, in the order of the answer.
        most_s: Seconds that this may take.

    Raises:
        BadInput: the point lies behind the end of the ledger.
        Unavailable: it would take longer than ``most_s``.
        LedgerDamaged, Misconfigured, Unavailable: see ``LedgerReader``.
    """
    with (
        closing(connect_read_only(path)) as ledger,
        translated_errors(path, "look it over"),
        ended_after(most_s, ledger),
    ):
        # One transaction, so that all answers are of the same moment.
        ledger.execute("BEGIN")
        head = check_written(ledger, "at", at)
        last = ledger.execute(
            "SELECT seq, time FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (at or END,)
        ).fetchone()
        seq, time_ns = last or (0, 0)
        now = to_milliseconds(time_ns) if last else ""
        exchanges = ledger.execute(
            "SELECT ended_seq <= ?, stage, action, latency_ms FROM exchanges WHERE started_seq <= ? "
            "ORDER BY started_seq DESC LIMIT ?",
            (seq, seq, LATEST),
        ).fetchall()
        selected = ledger.execute(
            # As the monitor counts: ACT if a loop ran, and not the mode that was selected after it.
            "SELECT ifnull(terminal_mode, 'ACT'), ifnull(agent, '') FROM mode_selections "
            "LEFT JOIN exchanges ON exchange = exchange_id WHERE NOT rerouted AND seq <= ? ORDER BY seq DESC LIMIT ?",
            (seq, DECISIONS_SEEN),
        ).fetchall()
        alerts, alerts_firing = _alerts(ledger, seq, time_ns)
        breakers, breakers_open = _breakers(ledger, seq)
        adjustments, reviews = (_changes(ledger, owner, seq) for owner in ("regulator", "self_review"))
        unread = _unread(ledger, seq)
    ended = [(from_text(stage), from_text(action)) for over, stage, action, _ in exchanges if over and stage]
    ended_unread = sum(bool(over) and stage is None for over, stage, _, _ in exchanges)
    modes = [str(mode) for mode, _ in selected[:DECISIONS]]
    latencies = sorted(latency for over, _, _, latency in exchanges if over and latency is not None)
    return Overview(
        at=seq,
        time=now,
        head=head,
        exchanges=len(exchanges),
        open=len(exchanges) - len(ended) - ended_unread,
        ended_unread=ended_unread,
        ended=tuple(
            EndCount(stage=stage, action=action, count=count) for (stage, action), count in Counter(ended).most_common()
        ),
        p50_ms=_rank(latencies, 0.5),
        p99_ms=_rank(latencies, 0.99),
        decisions=len(modes),
        modes=tuple(_share(mode, modes, low, high) for mode, (low, high) in healthy.items()),
        modes_by_agent=tuple(_by_agent(selected)),
        alerts=alerts,
        alerts_firing=alerts_firing,
        breakers=breakers,
        breakers_open=breakers_open,
        adjustments=adjustments,
        reviews=reviews,
        unread=unread,
    )


def _unread(ledger: sqlite3.Connection, seq: int) -> tuple[UnreadCount, ...]:
    rows = ledger.execute(
        "SELECT topic, count(*), max(seq) FROM unread WHERE seq <= ? GROUP BY topic ORDER BY 2 DESC, 1 LIMIT ?",
        (seq, SHOWN),
    )
    return tuple(UnreadCount(topic=from_text(topic), count=count, last_seq=last) for topic, count, last in rows)


def _share(mode: str, modes: Sequence[str], low: float, high: float) -> Share:
    count = modes.count(mode)
    return Share(mode=mode, count=count, share=round(count / len(modes), 6) if modes else 0.0, low=low, high=high)


def _by_agent(selected: Sequence[tuple[str, Text]]) -> Iterator[AgentModes]:
    """Yield each agent's modes, from the mode and agent of each decision, the latest first."""
    latest: dict[Text, list[str]] = {}
    for mode, agent in selected:
        chosen = latest.setdefault(agent, [])
        if len(chosen) < DECISIONS:
            chosen.append(str(mode))
    for agent, chosen in sorted(latest.items(), key=lambda each: -len(each[1]))[:AGENTS]:
        yield AgentModes(agent=from_text(agent), decisions=len(chosen), modes=dict(Counter(chosen).most_common()))


def _rank(ordered: Sequence[float], share: float) -> float | None:
    """Return the lowest value that ``share`` of all values do not exceed."""
    return round(ordered[max(0, ceil(share * len(ordered)) - 1)], 3) if ordered else None


_MOST_SEVERE_FIRST = "CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END"


def _alerts(ledger: sqlite3.Connection, seq: int, time_ns: int) -> tuple[tuple[FiringAlert, ...], int]:
    """Return the alerts that fire, :data:`SHOWN` at most, and how many there are."""
    rows = ledger.execute(
        "SELECT id, severity, topic, agent, session, exchange, detail, figures, since, "
        "iif(last_seq <= ?, count, NULL) FROM alerts "
        "WHERE first_seq <= ? AND (resolved_at IS NULL OR resolved_at > ?) "
        f"ORDER BY {_MOST_SEVERE_FIRST}, first_seq DESC",
        (seq, seq, timestamp(time_ns)),
    ).fetchall()
    shown = tuple(
        FiringAlert(
            alert=id,
            severity=severity,
            event=topic,
            agent=from_text(agent),
            session=from_text(session),
            exchange=from_text(exchange),
            detail=from_text(detail),
            figures=msgspec.json.decode(figures, type=dict[str, str]),
            since=since,
            count=count,
        )
        for id, severity, topic, agent, session, exchange, detail, figures, since, count in rows[:SHOWN]
    )
    return shown, len(rows)


class _Figures(msgspec.Struct):
    trust: float
    stance: str
    violations: int


def _breakers(ledger: sqlite3.Connection, seq: int) -> tuple[tuple[BreakerRow, ...], int]:
    """Return the latest sessions whose breaker is open, :data:`SHOWN` at most, and how many there are."""
    # With max(), SQLite takes the state from the row that holds the maximum. An attack may leave very many sessions.
    found = ledger.execute(
        "SELECT max(seq) AS latest FROM changes WHERE owner = 'breaker' AND seq <= ? "
        "GROUP BY session, agent HAVING state <> 'NORMAL' ORDER BY latest DESC",
        (seq,),
    ).fetchall()
    shown = [latest for (latest,) in found[:SHOWN]]
    rows = ledger.execute(
        "SELECT agent, session, state, figures, created_at, seq FROM changes "
        f"WHERE seq IN ({', '.join('?' * len(shown))}) ORDER BY seq DESC",
        shown,
    )
    return tuple(_breaker_row(row) for row in rows), len(found)


def _breaker_row(row: tuple[Any, ...]) -> BreakerRow:
    agent, session, state, figures, time, seq = row
    decoded = msgspec.json.decode(figures, type=_Figures)
    return BreakerRow(
        agent=from_text(agent),
        session=from_text(session),
        state=state,
        trust=decoded.trust,
        stance=decoded.stance,
        violations=decoded.violations,
        seq=seq,
        time=time,
    )


def _changes(ledger: sqlite3.Connection, owner: str, seq: int) -> tuple[ChangeRow, ...]:
    rows = ledger.execute(
        "SELECT seq, created_at, topic, agent, figures FROM changes WHERE owner = ? AND seq <= ? "
        "ORDER BY seq DESC LIMIT ?",
        (owner, seq, CHANGES),
    ).fetchall()
    return tuple(
        ChangeRow(seq=at, time=time, topic=topic, agent=from_text(agent), figures=msgspec.json.decode(figures))
        for at, time, topic, agent, figures in rows
    )
