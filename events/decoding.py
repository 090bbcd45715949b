"""Decoding stored messages into the messages that actors see."""

import msgspec

from events.log import Seal, Stored
from schemas.actor import Message
from schemas.catalogue import CATALOGUE, decode_event
from schemas.envelope import Envelope, address_in, decode_headers, exchange_in
from schemas.errors import UndecodableEvent, VocabularyError
from schemas.subjects import split_stored

DEFAULT_BEHAVIOUR = 1
"""The behaviour number of a decoded message. A view copies the message where another behaviour is in force."""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A stored message that could not be decoded, and why (an error code of ``schemas.errors``)."""

    stored: Stored
    code: str
    detail: str


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """A stored message, decoded."""

    stored: Stored
    envelope: Envelope
    message: Message


def exchange_of(delivery: Recorded | Unreadable) -> str:
    """Return the exchange that a message belongs to, empty for none; of an unreadable one, what its headers say."""
    return delivery.message.exchange if isinstance(delivery, Recorded) else exchange_in(delivery.stored.headers)


def address_of(delivery: Recorded | Unreadable) -> tuple[str, str]:
    """Return the agent and the session of a message, empty for none; of an unreadable one, what its headers say."""
    if isinstance(delivery, Recorded):
        return delivery.message.agent, delivery.message.session
    return address_in(delivery.stored.headers)


def decode(stored: Stored) -> Recorded | Unreadable:
    """Decode a stored message; never raises on its content."""
    try:
        topic = split_stored(stored.subject)[0]
    except ValueError as wrong:
        return Unreadable(stored, UndecodableEvent.code, str(wrong))
    if stored.seal is Seal.BROKEN:
        return Unreadable(
            stored, UndecodableEvent.code, f"a sealed text of {topic} does not open with its session's key"
        )
    try:
        envelope = decode_headers(stored.headers)
        if envelope.topic != topic:
            raise UndecodableEvent(f"ce-type {envelope.topic!r} on the subject of {topic!r}")
        event = decode_event(topic, stored.data, envelope.version)
    except VocabularyError as wrong:
        return Unreadable(stored, wrong.code, str(wrong))
    message = Message(
        event=event,
        seq=stored.seq,
        id=envelope.id,
        time_ns=stored.time_ns,
        agent=envelope.agent,
        session=envelope.session,
        exchange=envelope.exchange,
        behaviour=DEFAULT_BEHAVIOUR,
    )
    return Recorded(stored, envelope, message)


def is_spontaneous(topic: str) -> bool:
    """Whether events of this topic are appended by a shell rather than decided from a message."""
    return CATALOGUE[topic].spontaneous
