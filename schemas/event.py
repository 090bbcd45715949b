"""The base of every event, and the field types the vocabulary shares.

An event is a fact in the past tense. Its body is JSON whose ``topic`` field names its public
subject, so that a body can be understood without its headers.
"""

from typing import Annotated, Any

import msgspec

ROOT = "forged_id"
"""First token of every public subject: a fixed name of the public interface, without further meaning."""

Personal = Annotated[str, msgspec.Meta(extra_json_schema={"x-personal": True})]
"""Text that a person wrote or that answers them: never logged at info, redacted on export."""

Unit = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
"""A share, confidence or similarity in [0, 1]."""

Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=30 * 24 * 3600 * 1000)]
"""A positive duration of at most thirty days, in milliseconds."""

Wake = Annotated[int, msgspec.Meta(ge=0, le=30 * 24 * 3600 * 1000)]
"""Milliseconds after which the clock actor wakes the event's owner, once; 0 cancels.

An owner has one wake for each agent and session: a later one replaces it.
"""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="topic"):
    """A recorded fact. Subclasses set ``tag`` to the literal public subject.

    Readers ignore fields they do not know, so an older reader survives a newer writer; a changed
    *meaning* needs a new version with an upcaster (``schemas.versions``).
    """


class Configured(Event, frozen=True, kw_only=True):
    """The settings an actor's partition decides with from here on.

    ``settings`` holds every field of the actor's settings struct, ``behaviour`` the version of its decider: a replay
    decides the messages between this event and the next ``Configured`` under that version.
    """

    settings: dict[str, Any]
    settings_hash: str
    behaviour: int


class Failed(Event, frozen=True, kw_only=True):
    """A consumed message that an actor could not decide; it went on with the next.

    ``reason`` is ``decider_raised``, ``fold_raised`` (the events were decided but not folded, so none was recorded),
    ``append_refused`` (the broker refuses such an event however often it is sent) or a code of ``schemas.errors`` such
    as ``undecodable`` or ``unknown_version``; ``error`` the exception's type name (never its message: libraries change
    those). ``failed_seq`` is the stream sequence of the message, ``failed_topic`` its public subject. An effector's
    reasons are ``effect_raised``, ``effect_timed_out``, ``effect_abandoned`` (delivered again and again and never
    answered), ``text_forgotten`` (the text of the request was erased), ``result_invalid`` (no events, or some that it
    may not answer with), ``append_refused`` and those codes.
    """

    reason: str
    error: str
    failed_seq: int
    failed_topic: str


def topic_of(event: Event | type[Event]) -> str:
    """Return the public subject of an event or event type, such as ``forged_id.reflex.blocked``."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str), f"{event!r} has no literal topic"
    return tag


_encoder = msgspec.json.Encoder()


def encode_event(event: Event) -> bytes:
    """Encode an event's body as the JSON bytes that are stored, hashed and compared in replays."""
    return _encoder.encode(event)
