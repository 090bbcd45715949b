"""The schema of the read models: tables that events are folded into, and views over them for queries.

If facts about one thing come from different events, each has a table of its own, and a view joins these. So every fold
is an insertion, and the order of batches does not matter.
"""

import sqlite3
from collections.abc import Mapping

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
    "mode_selections": """(
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        topic TEXT NOT NULL,
        exchange_id TEXT NOT NULL,
        selected_mode TEXT NOT NULL,
        terminal_mode TEXT,
        rerouted INTEGER NOT NULL,
        router_confidence REAL,
        scores TEXT NOT NULL,
        tiebreaker_used INTEGER NOT NULL,
        tiebreaker_candidates TEXT,
        tiebreaker_outcome TEXT NOT NULL,
        margin REAL,
        effective_margin REAL,
        signal_snapshot TEXT NOT NULL,
        weight_snapshot TEXT,
        routing_time_ms REAL,
        previous_mode TEXT,
        reason TEXT NOT NULL,
        created_at TEXT NOT NULL
    )""",
    "routing_feedback": """(
        exchange_id TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        feedback TEXT NOT NULL
    ) WITHOUT ROWID""",
    "routing_reflections": """(
        exchange_id TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        reflection TEXT NOT NULL
    ) WITHOUT ROWID""",
    "alerts": """(
        id TEXT NOT NULL,
        severity TEXT NOT NULL,
        source TEXT NOT NULL,
        topic TEXT NOT NULL,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        exchange TEXT NOT NULL,
        detail TEXT NOT NULL,
        figures TEXT NOT NULL,
        status TEXT NOT NULL,
        count INTEGER NOT NULL,
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        since TEXT NOT NULL,
        last TEXT NOT NULL,
        resolved_at TEXT,
        resolved_by TEXT,
        PRIMARY KEY (id, first_seq)
    ) WITHOUT ROWID""",
    "changes": """(
        seq INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        topic TEXT NOT NULL,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        state TEXT NOT NULL,
        figures TEXT NOT NULL,
        created_at TEXT NOT NULL
    )""",
    "act_iterations": """(
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        exchange_id TEXT NOT NULL,
        iteration_number INTEGER NOT NULL,
        planner TEXT NOT NULL,
        productive INTEGER NOT NULL,
        reason TEXT NOT NULL,
        actions_executed TEXT NOT NULL,
        action_count INTEGER NOT NULL,
        action_success_count INTEGER NOT NULL,
        elapsed_ms INTEGER NOT NULL,
        completed_at TEXT NOT NULL
    )""",
    "act_loops": """(
        exchange_id TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        termination TEXT NOT NULL,
        iterations INTEGER NOT NULL,
        productive INTEGER NOT NULL,
        elapsed_ms INTEGER NOT NULL,
        finding_count INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "unread": """(
        seq INTEGER PRIMARY KEY,
        topic TEXT NOT NULL,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        exchange TEXT NOT NULL,
        version INTEGER
    )""",
}
"""Table -> its columns. Latencies are milliseconds between server times, ``_ns`` Unix nanoseconds.

``topic`` is an event's public subject, but in ``mode_selections`` what the conversation is about.
An exchange whose end cannot be read has ``ended_seq`` and ``ended_ns``, but no stage and no action. ``unread`` holds
events that would have changed a table, had this release been able to read them.
"""


def columns_of(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in their order."""
    lines = (line.strip() for line in TABLES[table].splitlines()[1:-1])
    return tuple(line.split()[0] for line in lines if not line.startswith("PRIMARY KEY"))


INDEXES: Mapping[str, str] = {
    # Lists of exchanges are read from the latest on. Sequences grow, so new entries go to the end of the index.
    "exchanges_by_start": "exchanges (started_seq)",
    # An actor's changes are read backwards from any point of the log.
    "changes_by_owner": "changes (owner, seq)",
    # The latest state of each session is found in the index alone, without the figures.
    "changes_by_session": "changes (owner, session, agent, seq, state)",
}
"""Index -> the table and columns that it covers. It goes with its table."""

VIEWS: Mapping[str, str] = {
    # Feedback and reflection are about the mode of the answer. If an ACT loop ran, that is the exchange's second
    # selection.
    "routing_decisions": """
        SELECT s.seq, s.id, s.topic, s.exchange_id, s.selected_mode, s.router_confidence, s.scores, s.tiebreaker_used,
            s.tiebreaker_candidates, s.margin, s.effective_margin, s.signal_snapshot, s.weight_snapshot,
            s.routing_time_ms, f.feedback, r.reflection, s.previous_mode, s.created_at,
            s.terminal_mode, s.rerouted, s.tiebreaker_outcome, s.reason
        FROM mode_selections AS s
        LEFT JOIN routing_feedback AS f ON f.exchange_id = s.exchange_id AND s.terminal_mode IS NOT NULL
        LEFT JOIN routing_reflections AS r ON r.exchange_id = s.exchange_id AND s.terminal_mode IS NOT NULL
    """,
    # For tools that know loops with a gate (a cost check) between iterations: there is none here, so its columns are 0.
    "cortex_iterations": """
        SELECT i.seq, i.id, i.exchange_id, i.session_id, i.exchange_id AS loop_id, i.iteration_number,
            i.elapsed_ms - lag(i.elapsed_ms, 1, 0) OVER (PARTITION BY i.exchange_id ORDER BY i.seq)
                AS execution_time_ms,
            'ACT' AS chosen_mode, 0.0 AS total_cost, 0.0 AS net_value, 0 AS decision_override,
            l.termination AS termination_reason, i.actions_executed, i.action_count, i.action_success_count,
            i.planner, i.productive, i.reason, i.elapsed_ms, i.completed_at
        FROM act_iterations AS i
        LEFT JOIN act_loops AS l ON l.exchange_id = i.exchange_id AND l.iterations = i.iteration_number + 1
    """,
}
"""View -> its query. JSON columns are text that SQLite's functions can look into."""


def make(connection: sqlite3.Connection) -> None:
    """Create every table and view, empty; those of the same name, of this or another release, are dropped."""
    found = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"))
    for name in (*VIEWS, *TABLES):
        if name in found:
            connection.execute(f"DROP {found[name]} {name}")
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} {columns}")
    for name, covered in INDEXES.items():
        connection.execute(f"CREATE INDEX {name} ON {covered}")
    for name, query in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
