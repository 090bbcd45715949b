"""Comparing what an effect's body says about its request with the request itself. Pure.

Only fields without people's words are compared, so sealing and redaction change nothing. A field that a body does not
have (a redacted body, or the failure of an unreadable request) contradicts nothing.
"""

from typing import Any

import msgspec

from schemas.catalogue import CATALOGUE
from schemas.event import Failed, topic_of
from schemas.vocabulary.webhook import WebhookQueued

_QUEUED = topic_of(WebhookQueued)
"""A delivery to one receiver: an answer to an alert, and itself a request, whose answer names the alert's event."""


class _Call(msgspec.Struct, frozen=True):
    purpose: str | None = None


class _Action(msgspec.Struct, frozen=True):
    index: int | None = None
    specialist: str | None = None


class _Alert(msgspec.Struct, frozen=True):
    alert: str | None = None
    status: str | None = None
    count: int | None = None


class _RequestBody(_Alert, frozen=True):
    call: _Call | None = None
    action: _Action | None = None
    body: _Alert | None = None
    request: str | None = None
    receiver: str | None = None


class EffectContent(msgspec.Struct, frozen=True):
    """The fields of an effect's body that repeat something of its request; None: the body lacks the field."""

    request: str | None = None
    failed_topic: str | None = None
    purpose: str | None = None
    index: int | None = None
    specialist: str | None = None
    alert: str | None = None
    status: str | None = None
    count: int | None = None
    receiver: str | None = None


_REQUEST_DECODER = msgspec.json.Decoder(_RequestBody)
_EFFECT_DECODER = msgspec.json.Decoder(EffectContent)


def expected_content(topic: str, id: str, data: bytes) -> EffectContent:
    """Return the fields that an answer to a request must have, given the request's public subject, id and body."""
    request = _read(_REQUEST_DECODER, data, _RequestBody())
    call, action, alert = request.call or _Call(), request.action or _Action(), request.body or request
    is_queued = topic == _QUEUED
    return EffectContent(
        request=request.request if is_queued else id,
        failed_topic=topic,
        purpose=call.purpose,
        index=action.index,
        specialist=action.specialist,
        alert=alert.alert,
        status=alert.status,
        count=alert.count,
        receiver=request.receiver if is_queued else None,
    )


def contradicting_field(expected: EffectContent, topic: str, data: bytes) -> str:
    """Return the first field of an effect's body that differs from what its request requires; empty if none does."""
    content = _read(_EFFECT_DECODER, data, EffectContent())
    entry = CATALOGUE.get(topic)
    if entry is not None and issubclass(entry.event, Failed):
        content = _without_unknown(content)
    elif topic == _QUEUED:
        content = _with_alert(content, data)
    for field in EffectContent.__struct_fields__:
        recorded, required = getattr(content, field), getattr(expected, field)
        if recorded is not None and required is not None and recorded != required:
            return field
    return ""


def _without_unknown(content: EffectContent) -> EffectContent:
    """Drop the fields of a failure event that have only default values, because its request could not be read."""
    if not content.request:
        return EffectContent(failed_topic=content.failed_topic)
    if not content.alert:
        return msgspec.structs.replace(content, alert=None, status=None, count=None, receiver=content.receiver or None)
    return content


def _with_alert(content: EffectContent, data: bytes) -> EffectContent:
    body = _read(_REQUEST_DECODER, data, _RequestBody()).body or _Alert()
    return msgspec.structs.replace(content, alert=body.alert, status=body.status, count=body.count)


def _read(decoder: msgspec.json.Decoder[Any], data: bytes, otherwise: Any) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return otherwise
