"""An event of the log as a row: in full for programs, on one line for people. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from rich.text import Text

from deploy.cli.rendering.hidden_texts import without_words
from deploy.cli.rendering.layout.printable import printable_struct
from deploy.cli.rendering.layout.quoting import quoted_line, shortened
from events.decoding import Recorded, address_of, decode, exchange_of
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.errors import UNREADABLE
from schemas.event import ROOT
from schemas.subjects import split_stored

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXCHANGE_CHARACTERS = 12
_MAX_FIELDS_CHARACTERS = 160


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the log: ``cause`` and ``cause_seq`` are the id and sequence of the message that led to it.

    ``by`` names who appended it, and ``build`` is the version of that code. ``data`` is its body, in the ``version`` of
    its topic that this release has, whichever it was recorded in. ``unreadable`` says why that could not be decoded;
    then nothing else is known but ``seq``, ``time``, ``topic``, ``agent``, ``session`` and ``exchange``.
    """

    seq: int
    time: str
    topic: str
    agent: str = ""
    session: str = ""
    exchange: str = ""
    id: str = ""
    cause: str = ""
    cause_seq: int = 0
    by: str = ""
    build: str = ""
    version: int = 1
    data: dict[str, Any] = {}
    unreadable: str = ""


def entry_of(stored: Stored, *, words: bool) -> Entry:
    """Return a message as a row; people's words are hidden unless ``words``."""
    time = time_text(stored.time_ns)
    found = decode(stored)
    if not isinstance(found, Recorded):
        agent, session = address_of(found)
        return Entry(
            seq=stored.seq,
            time=time,
            topic=_topic(stored.subject),
            agent=agent,
            session=session,
            exchange=exchange_of(found),
            unreadable=found.detail,
        )
    envelope, event = found.envelope, found.message.event
    return Entry(
        seq=stored.seq,
        time=time,
        topic=envelope.topic,
        agent=envelope.agent,
        session=envelope.session,
        exchange=envelope.exchange,
        id=envelope.id,
        cause=envelope.cause,
        cause_seq=envelope.cause_seq,
        by=envelope.source,
        build=envelope.build,
        version=CATALOGUE[envelope.topic].version,
        data=msgspec.to_builtins(event) if words else without_words(event),
    )


def time_text(time_ns: int) -> str:
    """Return a time (Unix nanoseconds) as rows show it: RFC 3339 in UTC, to the millisecond."""
    return (_EPOCH + timedelta(microseconds=time_ns // 1000)).isoformat(timespec="milliseconds")


def group_unreadable(entries: Sequence[Entry]) -> list[tuple[Entry, tuple[str, ...]]]:
    """Return rows for people, in which all failures about the same unreadable message share a row that names the
    actors.

    A message that cannot be read fails in each of the some fourteen actors that consume it.
    """
    rows: list[tuple[Entry, tuple[str, ...]]] = []
    row_of: dict[tuple[object, object], int] = {}
    for entry in entries:
        if entry.data.get("reason") in UNREADABLE and entry.topic.endswith(".failed"):
            failed = entry.data.get("failed_seq"), entry.data["reason"]
            if failed in row_of:
                first, others = rows[row_of[failed]]
                rows[row_of[failed]] = first, (*others, entry.topic.split(".")[1])
                continue
            row_of[failed] = len(rows)
        rows.append((entry, ()))
    return rows


def line_of(entry: Entry, others: Sequence[str] = ()) -> Text:
    """Return a row on one line; ``others`` are further actors with the same failure, see :func:`group_unreadable`."""
    line = _line_of(entry)
    return line.append(f"; likewise {', '.join(others)}", "dim") if others else line


def _line_of(entry: Entry) -> Text:
    entry = printable_struct(entry)
    line = Text().append(f"{entry.seq:>8} ", "dim").append(f"{entry.time[11:23]} ", "dim")
    line.append(f"{entry.topic.removeprefix(ROOT + '.'):<24} ", "bold cyan")
    line.append(f"{entry.exchange[:_EXCHANGE_CHARACTERS]:<{_EXCHANGE_CHARACTERS}} ", "dim")
    if entry.unreadable:
        return line.append(f"cannot be read: {entry.unreadable}", "red")
    return line.append(_fields_line(entry.data))


def _fields_line(data: dict[str, Any]) -> str:
    """Return the fields that fit on the line: single values in full, collections by their size."""
    parts = [
        f"{name}={_value(value)}" for name, value in data.items() if name != "topic" and value not in (None, "", [])
    ]
    return shortened(" ".join(parts), _MAX_FIELDS_CHARACTERS)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value if value.isascii() and value.isidentifier() else quoted_line(value, 80)
    if isinstance(value, dict | Sequence):
        return f"({len(value)})"
    return msgspec.json.encode(value).decode()


def _topic(subject: str) -> str:
    try:
        return split_stored(subject)[0]
    except ValueError:
        return subject
