"""The types of events: one for all of them, and one for alerts; and how they are read from HTTP and NATS."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from neuraxis.errors import BadAnswer
from neuraxis.models import read

ROOT = "forged_id"
"""The first token of every public subject."""

ALERTS = f"{ROOT}.alert.*.*"
"""Every alert, and nothing else."""

ALERT_VERSION = 1
"""The version of alerts' bodies that :class:`Alert` reads."""

REPLACED = "the log has lost it since, and holds another event there: read again from before it"
"""Why a reader cannot go on after the last event that it knows."""

_INPUT = f"{ROOT}.input.received"

_MOST_DIGITS = 19
"""Digits of a sequence of the log, which has 64 bits, at most."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event of the log.

    Attributes:
        seq: Its sequence in the log; later events have higher ones.
        topic: Its public subject, such as ``forged_id.reflex.blocked``.
        time: When it was stored or made (RFC 3339).
        id: Its id; it stays the same if the event is delivered again.
        agent: The agent that it belongs to.
        session: Its session; empty if it belongs to none.
        exchange: Its exchange; empty if it belongs to none.
        cause: The id of the event that caused it.
        cause_seq: The sequence of that event.
        by: The actor and process that decided it.
        build: The release and settings of that process.
        version: The version of its topic that ``data`` is in; another one may mean something else. Over HTTP it is the
            server's, over NATS the one that was recorded.
        data: Its body, by the schema of its topic in that version (``neuraxis schema jsonschema``).
        unreadable: Why its body cannot be read, by the server or, over NATS, here; ``data`` is empty then.
    """

    seq: int
    topic: str
    time: str = ""
    id: str = ""
    agent: str = ""
    session: str = ""
    exchange: str = ""
    cause: str = ""
    cause_seq: int = 0
    by: str = ""
    build: str = ""
    version: int = 1
    data: Mapping[str, Any] = field(default_factory=dict)
    unreadable: str = ""

    @property
    def alert(self) -> "Alert | None":
        """The alert that this event is; None if it is no alert, ``unreadable``, or of another :attr:`version`."""
        if self.unreadable or self.version != ALERT_VERSION:
            return None
        tokens = self.topic.split(".")
        return read(Alert, dict(self.data)) if tokens[:2] == [ROOT, "alert"] and len(tokens) == 4 else None


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A message that a group of similar events began, continues, or is over.

    Attributes:
        alert: The name of the group. If the group is resolved and fires again, ``first_seq`` is another one.
        status: ``firing`` or ``resolved``.
        severity: ``critical``, ``warning`` or ``info``.
        source: The actor that reported the events.
        event: Their public subject.
        figures: Numbers and codes of the latest event, never people's words.
        agent: The agent, if the group is one agent's.
        session: The session, if the group is one session's.
        exchange: The exchange of the latest event; empty if it has none.
        detail: What else distinguishes the group from others of the same ``event``.
        count: Events so far.
        suppressed: How many announcements were suppressed since the previous one.
        since_ns: When the first event was stored, in Unix nanoseconds.
        last_ns: When the latest event was stored, in Unix nanoseconds.
        first_seq: Sequence of the first event.
        cause_seq: Sequence of the latest event.
        resolved_by: The subject that ended it; ``quiet``: no further event came for a while; ``lapsed``: it lasted for
            so long that its end must have been missed. Empty while it fires.
    """

    alert: str
    status: str
    severity: str
    source: str
    event: str
    figures: Mapping[str, str] = field(default_factory=dict)
    agent: str
    session: str
    exchange: str
    detail: str
    count: int
    suppressed: int
    since_ns: int
    last_ns: int
    first_seq: int
    cause_seq: int
    resolved_by: str = ""


def event_of_row(data: str) -> Event:
    """Return the event that the server sent over HTTP."""
    row = _decoded(data)
    if isinstance(row, dict) and isinstance(row.get("data"), dict):
        row = {**row, "data": _without_topic(row["data"])}
    return read(Event, row)


def event_of_message(subject: str, headers: Mapping[str, str] | None, data: bytes, seq: int = 0) -> Event:
    """Return the event that the broker delivered: CloudEvents attributes in headers, the body as JSON.

    A body that is no JSON object makes it ``unreadable``, so that a reader can go on.
    """
    given = {name.lower(): value for name, value in (headers or {}).items()}

    def attribute(name: str) -> str:
        return unquote(given.get(f"ce-{name}", ""))

    try:
        body, unreadable = _decoded(data), ""
    except BadAnswer as wrong:
        body, unreadable = {}, str(wrong)
    if not isinstance(body, dict):
        body, unreadable = {}, f"a message on {subject} is no event: its body is no JSON object"
    return Event(
        seq=seq or _number(given.get("nats-sequence", "")),
        topic=attribute("type") or subject,
        time=attribute("time"),
        id=attribute("id"),
        agent=attribute("agent"),
        session=attribute("session"),
        # An input that names no exchange is one of its own, under its id.
        exchange=attribute("exchange") or (attribute("id") if attribute("type") == _INPUT else ""),
        cause=attribute("cause"),
        cause_seq=_number(attribute("causeseq")),
        by=attribute("source"),
        build=attribute("build"),
        version=_number(attribute("dataversion")) or 1,
        data=_without_topic(body),
        unreadable=unreadable,
    )


def is_same(found: Event, known: Event) -> bool:
    """Return whether an event is the one that was read at its sequence before. One without an id may be any."""
    return found.seq == known.seq and (found.id == known.id or not (found.id and known.id))


def matches(topic: str, event: Event) -> bool:
    """Return whether an event is on a public subject, which may have the wildcards ``*`` and, at its end, ``>``."""
    wanted, tokens = topic.split("."), event.topic.split(".")
    if wanted[-1] == ">" and len(tokens) >= len(wanted):
        wanted, tokens = wanted[:-1], tokens[: len(wanted) - 1]
    return len(wanted) == len(tokens) and all(each in ("*", token) for each, token in zip(wanted, tokens, strict=True))


def topic_of(topic: str) -> str:
    """Return a public subject with its root, which may be left out."""
    return topic if topic == ROOT or topic.startswith(f"{ROOT}.") else f"{ROOT}.{topic}"


def stored_filter(topic: str) -> str:
    """Return the stream's filter for a public subject: stored subjects have two partition tokens for the root."""
    return f"log.*.*.{topic_of(topic).removeprefix(f'{ROOT}.')}"


def _decoded(data: str | bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise BadAnswer(f"an event is no JSON: {wrong}") from wrong


def _without_topic(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "topic"}


def _number(text: str) -> int:
    # Of more digits than a sequence has, nothing is read: Python refuses to convert thousands of them.
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else 0
