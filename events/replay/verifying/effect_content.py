"""Comparing what an effect's body says about its request with the request itself. Pure.

Only fields without people's words are compared, so sealing and redaction change nothing. A field that a body does not
have (one redacted as a whole, or the failure of an unreadable request) contradicts nothing.
"""

from typing import Any

import msgspec

from schemas.catalogue import CATALOGUE
from schemas.event import Failed, topic_of
from schemas.vocabulary.webhook import WebhookQueued

_QUEUED = topic_of(WebhookQueued)


class _Call(msgspec.Struct, frozen=True):
    purpose: str | None = None


class _Action(msgspec.Struct, frozen=True):
    index: int | None = None
    specialist: str | None = None


class _Alert(msgspec.Struct, frozen=True):
    alert: str | None = None
    status: str | None = None
    count: int | None = None


class _Asked(_Alert, frozen=True):
    call: _Call | None = None
    action: _Action | None = None
    body: _Alert | None = None
    request: str | None = None
    receiver: str | None = None


class EffectContent(msgspec.Struct, frozen=True):
    """What bodies of effects say of their requests; None: nothing. The fields are those of the effects."""

    request: str | None = None
    failed_topic: str | None = None
    purpose: str | None = None
    index: int | None = None
    specialist: str | None = None
    alert: str | None = None
    status: str | None = None
    count: int | None = None
    receiver: str | None = None


_DECODER_OF_ASKED = msgspec.json.Decoder(_Asked)
_DECODER_OF_SAID = msgspec.json.Decoder(EffectContent)


def expected_content(topic: str, id: str, data: bytes) -> EffectContent:
    """Return the fields that an answer to a request must have, given the request's public subject, id and body."""
    asked = _read(_DECODER_OF_ASKED, data, _Asked())
    call, action, alert = asked.call or _Call(), asked.action or _Action(), asked.body or asked
    is_queued = topic == _QUEUED
    return EffectContent(
        request=asked.request if is_queued else id,
        failed_topic=topic,
        purpose=call.purpose,
        index=action.index,
        specialist=action.specialist,
        alert=alert.alert,
        status=alert.status,
        count=alert.count,
        receiver=asked.receiver if is_queued else None,
    )


def contradicting_field(owed: EffectContent, topic: str, data: bytes) -> str:
    """Return the first field of an effect's body that differs from what its request requires; empty if none does."""
    said = _read(_DECODER_OF_SAID, data, EffectContent())
    entry = CATALOGUE.get(topic)
    if entry is not None and issubclass(entry.event, Failed):
        said = _without_unknown(said)
    elif topic == _QUEUED:
        said = _with_alert(said, data)
    for field in EffectContent.__struct_fields__:
        now, due = getattr(said, field), getattr(owed, field)
        if now is not None and due is not None and now != due:
            return field
    return ""


def _without_unknown(said: EffectContent) -> EffectContent:
    """Leave out what a dead letter holds by default, where the request could not be read."""
    if not said.request:
        return EffectContent(failed_topic=said.failed_topic)
    if not said.alert:
        return msgspec.structs.replace(said, alert=None, status=None, count=None, receiver=said.receiver or None)
    return said


def _with_alert(said: EffectContent, data: bytes) -> EffectContent:
    body = _read(_DECODER_OF_ASKED, data, _Asked()).body or _Alert()
    return msgspec.structs.replace(said, alert=body.alert, status=body.status, count=body.count)


def _read(decoder: msgspec.json.Decoder[Any], data: bytes, otherwise: Any) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return otherwise
