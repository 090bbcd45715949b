"""Events as they come: one envelope for all of them, and what is well known of alerts."""

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


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event of the log.

    Attributes:
        seq: Its sequence in the log: what comes later has a higher one.
        topic: Its public subject, such as ``forged_id.reflex.blocked``.
        time: When it was stored or made (RFC 3339).
        id: Its id; the same event has the same, however often it is delivered.
        agent: Whose it is.
        session: Of which session; empty where it belongs to none.
        exchange: Of which exchange; empty where it belongs to none.
        cause: The id of the event that led to it.
        cause_seq: That one's sequence.
        by: Which actor of which process decided it.
        build: With which release and settings.
        data: Its body, by the schema of its topic (``neuraxis schema jsonschema``).
        unreadable: Why the server cannot read its body; ``data`` is empty then.
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
    data: Mapping[str, Any] = field(default_factory=dict)
    unreadable: str = ""

    @property
    def alert(self) -> "Alert | None":
        """What it says as an alert; None where it is none."""
        tokens = self.topic.split(".")
        return read(Alert, dict(self.data)) if tokens[:2] == [ROOT, "alert"] and len(tokens) == 4 else None


@dataclass(frozen=True, kw_only=True)
class Alert:
    """That a group of like events began, goes on, or is over.

    Attributes:
        alert: Names the group; with ``first_seq`` it names one outbreak.
        status: ``firing`` or ``resolved``.
        severity: ``critical``, ``warning`` or ``info``.
        source: The actor that reported the events.
        event: Their public subject.
        figures: The latest one's numbers and codes, never people's words.
        agent: The agent, where the group is one agent's.
        session: The session, where the group is one session's.
        exchange: The exchange of the latest event; empty where it has none.
        detail: What else tells the group from others of its topic.
        count: Events so far.
        suppressed: Announcements that were held back since the one before this.
        since_ns: When the first event was stored, in Unix nanoseconds.
        last_ns: When the latest was.
        first_seq: Sequence of the first event.
        cause_seq: Sequence of the latest.
        resolved_by: The subject that ended it, ``quiet`` or ``lapsed``; empty while it fires.
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
    """Return an event as the server sends it by HTTP."""
    row = _decoded(data)
    if isinstance(row, dict) and isinstance(row.get("data"), dict):
        row = {**row, "data": _without_topic(row["data"])}
    return read(Event, row)


def event_of_message(subject: str, headers: Mapping[str, str] | None, data: bytes, seq: int = 0) -> Event:
    """Return an event as the broker delivers it: CloudEvents in headers, the body as JSON."""
    given = {name.lower(): value for name, value in (headers or {}).items()}

    def attribute(name: str) -> str:
        return unquote(given.get(f"ce-{name}", ""))

    body = _decoded(data)
    if not isinstance(body, dict):
        raise BadAnswer(f"a message on {subject} is no event: its body is no JSON object")
    return Event(
        seq=seq or _number(given.get("nats-sequence", "")),
        topic=attribute("type") or subject,
        time=attribute("time"),
        id=attribute("id"),
        agent=attribute("agent"),
        session=attribute("session"),
        exchange=attribute("exchange"),
        cause=attribute("cause"),
        cause_seq=_number(attribute("causeseq")),
        by=attribute("source"),
        build=attribute("build"),
        data=_without_topic(body),
    )


def topic_of(topic: str) -> str:
    """Return a public subject with its root, which may be left out."""
    return topic if topic == ROOT or topic.startswith(f"{ROOT}.") else f"{ROOT}.{topic}"


def stored_filter(topic: str) -> str:
    """Return the filter of a public subject on the stream, where two tokens of partitions stand in the root's place."""
    return f"log.*.*.{topic_of(topic).removeprefix(f'{ROOT}.')}"


def _decoded(data: str | bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise BadAnswer(f"an event is no JSON: {wrong}") from wrong


def _without_topic(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "topic"}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else 0
