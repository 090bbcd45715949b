"""Builders that tests of sealing share."""

from events.log import Record, Stored
from events.sealing.cipher import SessionKey
from schemas.catalogue import entry_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import Event, encode_event, topic_of
from schemas.subjects import stored_subject
from schemas.vocabulary.gateway import InputReceived

KEY = SessionKey(b"k" * 32)
OTHER_KEY = SessionKey(b"o" * 32)


def recorded(event: Event, *, session: str = "travel", agent: str = "ann", id: str = "e1", cause: str = "") -> Record:
    """Build a record of an event."""
    envelope = Envelope(
        id=id,
        topic=topic_of(event),
        source="test",
        time="",
        agent=agent,
        session=session,
        cause=cause,
        version=entry_of(event).version,
    )
    return Record(stored_subject(topic_of(event), "00", "01"), encode_headers(envelope), encode_event(event))


def said(text: str, **more: str) -> Record:
    """Build a record of an input."""
    return recorded(InputReceived(text=text), **more)


def stored(record: Record, seq: int = 1) -> Stored:
    """Return a record as a log would give it back."""
    return Stored(seq, seq, record.subject, record.headers, record.data)
