"""What is told of an agent, or of none, from outside: checking its names at the door, and giving it its envelope."""

import secrets
from collections.abc import Mapping

import msgspec

from actors.gateway.inputs import MAX_NAME, Addressed, InvalidInput
from actors.runtime.records import rfc3339
from events.log import Record
from schemas.actor import Scope
from schemas.catalogue import entry_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.intake.choices import blame
from schemas.subjects import NO_PARTITION, Partitions, stored_subject


class InvalidField(InvalidInput):
    """A value that cannot be accepted; ``field`` is its name where it was given, ``code`` a stable word for why."""

    def __init__(self, field: str, message: str, code: str = "bad_value") -> None:
        super().__init__(message)
        self.field = field
        self.code = code


def build_event(event: Event, agent: str, *, key: str, partitions: Partitions, now_ns: int) -> Addressed:
    """Check an event of an agent, or one that is about none, and wrap it.

    The same event type, agent and ``key`` have the same event id, so that a repeat within the stream's dedupe window is
    stored once; an empty key is a fresh one.

    Raises:
        InvalidField: the agent's name cannot be accepted.
        InvalidInput: the event is not what its type says.
    """
    if entry_of(event).scope is not Scope.GLOBAL:
        check_name("agent", agent)
    topic, body = topic_of(event), encode_event(event)
    try:
        msgspec.json.decode(body, type=type(event))  # constructors check nothing
    except msgspec.ValidationError as wrong:
        raise InvalidInput(f"{topic} is not valid: {blame(type(event), str(wrong))}") from wrong
    envelope = Envelope(
        id=event_id(f"{topic}\n{agent}\n{key or secrets.token_hex(16)}", "gateway", 0),
        topic=topic,
        source="neuraxis/gateway",
        time=rfc3339(now_ns),
        agent=agent,
    )
    subject = stored_subject(topic, partitions.agent_token(agent), NO_PARTITION)
    return Addressed("", Record(subject, encode_headers(envelope), body))


def id_of(addressed: Addressed) -> str:
    """Return the id of a wrapped event: what its answer names as its cause."""
    headers: Mapping[str, str] = addressed.record.headers
    return headers["ce-id"]


def check_name(field: str, value: str, *, most: int = MAX_NAME) -> None:
    """Raise InvalidField for a name that is blank, longer than ``most`` characters, or holds control characters."""
    if not value.strip():
        raise InvalidField(field, f"{field} is empty: name one")
    if len(value) > most:
        raise InvalidField(field, f"{field} has {len(value)} characters: at most {most}")
    if not value.isprintable():
        raise InvalidField(field, f"{field} holds a control character, or no Unicode text: leave it out")
