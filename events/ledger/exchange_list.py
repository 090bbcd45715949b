"""Lists of exchanges from a ledger's read models, the latest first, page by page."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from events.ledger.reader import END
from events.ledger.rows import Text, from_text, to_text
from events.ledger.schema import connect_read_only
from events.ledger.sqlite_errors import translated_errors
from events.ledger.time_limit import ended_after
from schemas.intake.strict import BadInput, quoted_name
from schemas.intake.timestamps import to_milliseconds
from schemas.vocabulary.responder import Action, Stage
from schemas.vocabulary.router import Mode

MOST_LISTED = 500
"""Exchanges on a page, at most."""

LONGEST_WORDS = 200
"""Characters of a search text, at most."""

MOST_ENDS = 2_000
"""How many different ends (stage, action, reason, mode) a search for words looks at, the newest first."""

_START_FIELDS = ("agent", "session")  # known from an exchange's input on, not only from its end
_FILTER_FIELDS = (*_START_FIELDS, "stage", "action", "reason", "mode")
_KNOWN = {"stage": get_args(Stage), "action": get_args(Action), "mode": get_args(Mode)}
"""A field of a filter -> the values that an end can have there."""

_COLUMNS = (
    "exchange, agent, session, started_seq, started_ns, ended_seq, stage, action, reason, mode, first_mode, latency_ms"
)


LogPosition = Annotated[int, msgspec.Meta(ge=0, le=END)]
"""A sequence of the log in a request."""


class ExchangeFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which exchanges to list: those with all the given values. Empty fields select all.

    ``before``: only exchanges whose input has a lower sequence; 0: from the latest on. ``at`` is a point of the log (0:
    its end); later events are ignored, so an exchange that ended later is open. ``words``: only exchanges whose end
    contains each of these words, in its sentence or in its reason's name.
    """

    agent: str = ""
    session: str = ""
    stage: str = ""
    action: str = ""
    reason: str = ""
    mode: str = ""
    words: Annotated[str, msgspec.Meta(max_length=LONGEST_WORDS)] = ""
    before: LogPosition = 0
    at: LogPosition = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_LISTED)] = 50


class ExchangeRow(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange in a list, without people's words.

    ``seq`` is the sequence of its input, and ``started`` the server's time of that (RFC 3339). The fields about its end
    are empty while it is open. ``latency_ms`` is the time from input to end, by the server's times. If this release
    cannot read the end, there is an ``ended_seq``, and no stage and no action.
    """

    exchange: str
    agent: str
    session: str
    seq: int
    started: str
    ended_seq: int = 0
    stage: str = ""
    action: str = ""
    reason: str = ""
    mode: str = ""
    first_mode: str = ""
    latency_ms: float | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Exchanges, the latest first; ``before`` gets the next page, and is 0 at the end of the list.

    ``head`` is the sequence up to which the ledger is written.
    """

    exchanges: tuple[ExchangeRow, ...]
    before: int
    head: int


def check_written(ledger: sqlite3.Connection, name: str, seq: int) -> int:
    """Return the sequence up to which a ledger is written; raises BadInput for a sequence beyond it.

    ``name`` is the request's field with the sequence. To answer with the ledger's end instead would be misleading.
    """
    (head,) = ledger.execute("SELECT ifnull(max(seq), 0) FROM events").fetchone()
    if seq > head:
        raise BadInput("beyond_end", name, f"{name}: the ledger ends at sequence {head:,}, before {seq:,}")
    return int(head)


def check_spelling(wanted: ExchangeFilter) -> None:
    """Raise BadInput for a value that no exchange can have: an empty list would suggest that there is none."""
    for name, known in _KNOWN.items():
        word = getattr(wanted, name)
        if word and word not in known:
            message = f"{name}: there is no {name} {quoted_name(word)}: there are {', '.join(known)}"
            raise BadInput("bad_value", name, message)


Phrased = Callable[[str, str, str, str], str]
"""(stage, action, reason, mode), of which some may be empty -> an end as a sentence."""


def list_exchanges(
    path: Path, wanted: ExchangeFilter, phrased: Phrased = lambda *_: "", *, most_s: float = inf
) -> Page:
    """Return a page of the exchanges in a ledger file.

    Args:
        path: The file.
        wanted: Which exchanges.
        phrased: Turns an end into its sentence, so that words are searched there, too; by default only in the names of
            reasons.
        most_s: Seconds that this may take.

    Raises:
        BadInput: ``at`` or ``before`` lies behind the end of the ledger, or no exchange can have a value.
        Unavailable: it would take longer than ``most_s``.
        LedgerDamaged, Misconfigured, Unavailable: see ``LedgerReader``.
    """
    check_spelling(wanted)
    at = wanted.at or END
    conditions = ["started_seq < ?", "started_seq <= ?"]
    values: list[int | Text] = [wanted.before or END, at]
    for name in _FILTER_FIELDS:
        if word := getattr(wanted, name):
            conditions.append(f"{name} = ?")
            values.append(to_text(word))
            if name not in _START_FIELDS:
                # Ends after ``at`` do not count.
                conditions.append("ended_seq <= ?")
                values.append(at)
    with (
        closing(connect_read_only(path)) as ledger,
        translated_errors(path, "list its exchanges"),
        ended_after(most_s, ledger),
    ):
        head = check_written(ledger, "at", wanted.at)
        check_written(ledger, "before", wanted.before - 1)
        if words := wanted.words.casefold().split():
            ends = _ends_with(ledger, words, phrased)
            placeholders = ", ".join(["(?, ?, ?, ?)"] * len(ends))
            conditions.append(
                f"(stage, action, reason, ifnull(mode, '')) IN (VALUES {placeholders})" if ends else "FALSE"
            )
            values += [field for end in ends for field in end]
            # Ends after ``at`` do not count.
            conditions.append("ended_seq <= ?")
            values.append(at)
        rows = ledger.execute(
            f"SELECT {_COLUMNS} FROM exchanges WHERE {' AND '.join(conditions)} ORDER BY started_seq DESC LIMIT ?",
            (*values, wanted.limit + 1),
        ).fetchall()
    listed = tuple(_exchange_row(row, at) for row in rows[: wanted.limit])
    return Page(exchanges=listed, before=listed[-1].seq if len(rows) > wanted.limit else 0, head=head)


def _ends_with(ledger: sqlite3.Connection, words: list[str], phrased: Phrased) -> list[tuple[Text, ...]]:
    """Return the ends (stage, action, reason, mode) whose sentence or reason holds all of these words."""
    ends = ledger.execute(
        "SELECT stage, action, reason, ifnull(mode, '') FROM exchanges WHERE stage IS NOT NULL "
        "GROUP BY 1, 2, 3, 4 ORDER BY max(ended_seq) DESC LIMIT ?",
        (MOST_ENDS,),
    ).fetchall()
    return [end for end in ends if _has(words, *map(from_text, end), phrased=phrased)]


def _has(words: list[str], stage: str, action: str, reason: str, mode: str, *, phrased: Phrased) -> bool:
    phrase = f"{phrased(stage, action, reason, mode)} {reason}".casefold()
    return all(word in phrase for word in words)


def _exchange_row(row: tuple[Any, ...], at: int) -> ExchangeRow:
    exchange, agent, session, seq, started_ns, ended_seq, *end, latency_ms = row
    started_row = ExchangeRow(
        exchange=from_text(exchange),
        agent=from_text(agent),
        session=from_text(session),
        seq=seq,
        started=to_milliseconds(started_ns),
    )
    if ended_seq is None or ended_seq > at:
        return started_row
    stage, action, reason, mode, first_mode = (from_text(each or "") for each in end)
    return msgspec.structs.replace(
        started_row,
        ended_seq=ended_seq,
        stage=stage,
        action=action,
        reason=reason,
        mode=mode,
        first_mode=first_mode,
        latency_ms=latency_ms,
    )
