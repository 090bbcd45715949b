"""Wraps events from outside (inputs, reports, orders) into their envelopes. Pure, but for :data:`CALLERS_TRACE`."""

import secrets
from contextvars import ContextVar

import msgspec

from events.log import Record
from schemas.actor import Scope
from schemas.catalogue import entry_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.intake.blank import is_blank
from schemas.intake.error_messages import error_line
from schemas.intake.timestamps import rfc3339
from schemas.subjects import Partitions, stored_subject
from schemas.vocabulary.gateway import InputAbandoned, InputAnswered, InputReceived

MAX_NAME = 200
"""Most characters of an exchange's name, of a situation (the kind of situation an input comes from, as the caller names
it), and of a label (the caller's own id for an input). For agents and sessions see ``schemas.names``."""

CALLERS_TRACE: ContextVar[str] = ContextVar("callers_trace", default="")
"""The ``traceparent`` of the caller that is being served, valid or empty; recorded with an input and its outcome."""


class InvalidInput(ValueError):
    """Something from outside cannot be accepted; the message says what, where, and what to do."""

    code = "invalid_input"


class InvalidField(InvalidInput):
    """A value cannot be accepted; ``field`` is its name as the caller wrote it, ``code`` a stable reason."""

    def __init__(self, field: str, message: str, code: str = "bad_value") -> None:
        super().__init__(message)
        self.field = field
        self.code = code


class WrappedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event from outside, ready to be stored: its id, record, agent and session.

    ``exchange`` is the exchange that it begins; empty for anything but an input.
    """

    id: str
    record: Record
    agent: str = ""
    session: str = ""
    exchange: str = ""


def build_event(
    event: Event,
    *,
    id: str,
    partitions: Partitions,
    now_ns: int,
    owner: str = "gateway",
    agent: str = "",
    session: str = "",
    exchange: str = "",
    cause: str = "",
    cause_seq: int = 0,
) -> WrappedEvent:
    """Check an event against its type, and wrap it.

    ``owner`` is the part of the system that appends it. ``cause`` is the id of the event that led to it, and
    ``cause_seq`` that event's sequence in the log; neither is given for an event that comes from outside.

    Raises:
        InvalidInput: it does not fit its type. The constructor of a struct does not check that, so it is checked here.
    """
    topic = topic_of(event)
    try:
        body = encode_event(event)
        msgspec.json.decode(body, type=type(event))
    except msgspec.ValidationError as wrong:
        raise InvalidInput(f"{topic} is not valid: {error_line(type(event), str(wrong))}") from wrong
    except UnicodeEncodeError as wrong:
        raise InvalidInput(f"{topic} holds a lone surrogate: that is no Unicode text; repair or drop it") from wrong
    envelope = Envelope(
        id=id,
        topic=topic,
        source=f"neuraxis/{owner}",
        time=rfc3339(now_ns),
        agent=agent,
        session=session,
        exchange=exchange,
        cause=cause,
        cause_seq=cause_seq,
        version=entry_of(event).version,
        traceparent=CALLERS_TRACE.get() if isinstance(event, InputReceived | InputAnswered | InputAbandoned) else "",
    )
    subject = stored_subject(topic, partitions.agent_token(agent), partitions.session_token(session))
    record = Record(subject, encode_headers(envelope), body)
    begun_exchange = exchange if isinstance(event, InputReceived) else ""
    return WrappedEvent(id=id, record=record, agent=agent, session=session, exchange=begun_exchange)


def agent_event(event: Event, agent: str, *, key: str, partitions: Partitions, now_ns: int) -> WrappedEvent:
    """Check an event of an agent, or of none, and wrap it.

    The event id is derived from event type, agent and ``key``, so that a repeat within the deduplication window of the
    stream is stored once. Without a key, a new id is made.

    Raises:
        InvalidField: the agent's name cannot be accepted.
        InvalidInput: the event does not fit its type.
    """
    if entry_of(event).scope is not Scope.GLOBAL:
        check_name("agent", agent)
    id = event_id(f"{topic_of(event)}\n{agent}\n{key or secrets.token_hex(16)}", "gateway", 0)
    return build_event(event, id=id, agent=agent, partitions=partitions, now_ns=now_ns)


def check_name(field: str, value: str, *, most: int = MAX_NAME) -> None:
    """Raise InvalidField for a name that is blank, longer than ``most`` characters, or holds control characters."""
    if is_blank(value):
        raise InvalidField(field, f"{field} is empty: name one")
    if len(value) > most:
        raise InvalidField(field, f"{field} has {len(value)} characters: at most {most}")
    if not value.isprintable():
        raise InvalidField(field, f"{field} holds a control character, or no Unicode text: leave it out")
