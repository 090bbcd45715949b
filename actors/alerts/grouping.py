"""Which events belong to one alert, and what it holds of them: as the catalogue says, or by default. Pure.

The catalogue lists every type of event under its topic, a name such as ``forged_id.reflex.blocked``.

By default an event of a session or an agent is grouped by its agent, not by its session: sessions are many, and an
attack on a thousand of them is a single piece of news. A failure is grouped by what failed and why, whichever actor
failed. An unreadable message fails in every actor that receives it: those failures are one alert for each severity, not
one for each actor.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import TypeGuard

import msgspec

from schemas.actor import Message, Scope
from schemas.catalogue import ALERTING
from schemas.entry import Entry, Grouping
from schemas.errors import UNREADABLE
from schemas.event import Event, Failed, topic_of

OTHERS = "(others)"
"""The detail of a common group, which counts events without room elsewhere; no mode or reason has this name."""

_MOST_CHARACTERS = 80
"""Most characters of a value or key that are reported: real codes are short, longer ones are forged."""

_FAILURE = Grouping(by_agent=False, fields=("reason",), copied_fields=("reason", "error", "failed_topic"))
_BY_AGENT = Grouping()
_GLOBAL = Grouping(by_agent=False)
"""How failures are grouped by default, other events of an agent or session, and events of neither."""

_UNREADABLE_FIELDS = ("reason", "failed_topic", "failed_seq")
"""The fields that an alert about an unreadable message shows."""


class Key(msgspec.Struct, frozen=True):
    """The key of a group: its topic and what it is grouped by.

    ``detail`` holds the values of the fields that it is grouped by. ``shared_by`` is the name under which several
    topics share the group, empty for none.
    """

    topic: str
    agent: str = ""
    session: str = ""
    detail: str = ""
    shared_by: str = ""

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits derived from the key."""
        parts = (self.shared_by or self.topic, self.agent, self.session, self.detail)
        return blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()


def grouping_of(entry: Entry) -> Grouping:
    """Return how events of a topic are grouped, given its entry in the catalogue."""
    if entry.grouping is not None:
        return entry.grouping
    if issubclass(entry.event, Failed):
        return _FAILURE
    return _GLOBAL if entry.scope is Scope.GLOBAL else _BY_AGENT


def key_of(topic: str, message: Message) -> Key:
    """Return the key of the group of ``topic`` that a message belongs to, or that it ends."""
    grouping, event = GROUPINGS[topic], message.event
    if _is_unreadable(event):
        severity = ALERTING[topic].severity
        assert severity is not None, "ALERTING holds what has one"
        failure = f"{event.reason} {event.failed_topic}"[:_MOST_CHARACTERS]
        return Key(topic, detail=failure, shared_by=f"unreadable {severity.value}")
    return Key(
        topic,
        message.agent if grouping.by_agent else "",
        message.session if grouping.by_session else "",
        " ".join(_field_text(message.event, name) for name in grouping.fields)[:_MOST_CHARACTERS],
    )


def figures(event: Event) -> dict[str, str]:
    """Return an event's numbers and codes by field name; the sentence about them is made where it is shown."""
    names = _UNREADABLE_FIELDS if _is_unreadable(event) else GROUPINGS[topic_of(event)].copied_fields
    return {name.rpartition(".")[2]: text for name in names if (text := _field_text(event, name))}


def _is_unreadable(event: Event) -> TypeGuard[Failed]:
    return isinstance(event, Failed) and event.reason in UNREADABLE


def _field_text(event: Event, name: str) -> str:
    value: object = event
    for name_part in name.split("."):
        value = getattr(value, name_part)
    if value is None:
        return ""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text[:_MOST_CHARACTERS]


GROUPINGS: Mapping[str, Grouping] = {topic: grouping_of(entry) for topic, entry in ALERTING.items()}
"""Topic -> how its events are grouped."""

ENDED: Mapping[str, tuple[str, ...]] = {
    topic_of(end): tuple(topic for topic, entry in ALERTING.items() if end in entry.ended_by)
    for entry in ALERTING.values()
    for end in entry.ended_by
}
"""Topic -> the topics whose conditions its events end."""
