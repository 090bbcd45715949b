"""The catalogue: every subject there is, as data.

Documentation, JSON Schemas, AsyncAPI, broker permissions and contract tests are all derived from here.
A module below ``schemas.vocabulary`` adds its ``ENTRIES``; nothing else needs to change. The subjects of alerts
follow from the severities of the entries. *Public* subjects are those that clients subscribe to, such as
``forged_id.reflex.blocked``; the log stores events under others (``schemas.subjects``).
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TypeVar

import msgspec

from schemas import vocabulary
from schemas.entry import Entry, Severity
from schemas.errors import UndecodableEvent, UnknownTopic, UnknownVersion
from schemas.event import Configured, Event, Failed, topic_of
from schemas.versions import upcast
from schemas.vocabulary.alerts import Alert, alert_entries, alert_type

E = TypeVar("E", bound=Event)


def _load() -> dict[str, Entry]:
    modules = (
        import_module(f"{vocabulary.__name__}.{found.name}") for found in pkgutil.iter_modules(vocabulary.__path__)
    )
    listed: list[Entry] = [entry for module in modules for entry in module.ENTRIES]
    entries: dict[str, Entry] = {}
    for entry in (*listed, *alert_entries(listed)):
        if entry.topic in entries:
            raise ValueError(f"{entry.topic} is listed twice, by {entry.owner} and {entries[entry.topic].owner}")
        entries[entry.topic] = entry
    return dict(sorted(entries.items()))


CATALOGUE: dict[str, Entry] = _load()
"""Public subject -> entry, sorted by subject."""

ALERTING: Mapping[str, Entry] = {
    topic: entry for topic, entry in CATALOGUE.items() if entry.severity and entry.owner != "alerts"
}
"""Public subject -> entry, of all that call for alerts."""

ALERTS: Mapping[tuple[Severity, str], type[Alert]] = {
    (entry.severity, entry.owner): alert_type(entry.severity, entry.owner)
    for entry in ALERTING.values()
    if entry.severity
}
"""(severity, owner of the event that calls for the alert) -> the alert's event type; each has its own subject."""


@cache
def _decoder_of(event: type[Event]) -> msgspec.json.Decoder[Event]:
    return msgspec.json.Decoder(event)


def entry_of(event: Event | type[Event]) -> Entry:
    """Return the catalogue's entry of an event or event type."""
    return CATALOGUE[topic_of(event)]


@cache
def owned_by(owner: str) -> tuple[Entry, ...]:
    """Return the entries that ``owner`` alone may publish, sorted by subject."""
    return tuple(entry for entry in CATALOGUE.values() if entry.owner == owner)


@cache
def requests_to(owner: str) -> tuple[type[Event], ...]:
    """Return the events that ask ``owner`` for something, sorted by subject."""
    return tuple(entry.event for entry in CATALOGUE.values() if entry.asks == owner)


@cache
def failure_of(owner: str) -> type[Failed]:
    """Return the event by which ``owner`` says that it could not decide a message, or serve a request."""
    return _own_event(owner, Failed)


@cache
def configuration_of(owner: str) -> type[Configured]:
    """Return the event that says which settings ``owner`` decides with."""
    return _own_event(owner, Configured)


def _own_event(owner: str, kind: type[E]) -> type[E]:
    for entry in owned_by(owner):
        if issubclass(entry.event, kind):
            return entry.event
    raise LookupError(f"the catalogue has no {kind.__name__} of {owner!r}: add `own_entries` of it to its vocabulary")


@cache
def prefixes_of(owner: str) -> tuple[str, ...]:
    """Return the first subject tokens (after the root) that belong to ``owner``."""
    return tuple(dict.fromkeys(entry.prefix for entry in owned_by(owner)))


def upcast_body(topic: str, body: bytes, version: int) -> bytes:
    """Return a body upcast to the current version of its topic, without fields that are newer than the body.

    Raises:
        UnknownTopic: the catalogue does not hold the topic.
        UnknownVersion: the version is newer than this release, or below 1.
        UndecodableEvent: the body does not fit that version.
    """
    entry = CATALOGUE.get(topic)
    if entry is None:
        raise UnknownTopic(f"{topic!r} is not in the catalogue: see `neuraxis schema subjects`")
    if version == entry.version:
        return body
    if not 1 <= version < entry.version:
        raise UnknownVersion(f"{topic} has version {version}; this release knows 1 to {entry.version}: upgrade it")
    return upcast(topic, body, version, entry.version)


def decode_event(topic: str, body: bytes, version: int = 1) -> Event:
    """Decode a body as the event that its topic and version name, upcast to the current version.

    Raises:
        UnknownTopic, UnknownVersion: as :func:`upcast_body` does.
        UndecodableEvent: the body is not that event.
    """
    body = upcast_body(topic, body, version)
    try:
        return _decoder_of(CATALOGUE[topic].event).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise UndecodableEvent(f"{topic}: {wrong}") from wrong
