"""Hiding people's words in an event's body, by what the vocabulary marks as personal. Pure."""

from typing import Any

import msgspec

from schemas.event import Event, encode_event
from schemas.wording.personal import change_personal, personal_location

HIDDEN = "[hidden]"


def without_words(event: Event) -> dict[str, Any]:
    """Return an event's body with every personal text replaced by ``[hidden]``."""
    body: dict[str, Any] = msgspec.json.decode(encode_event(event))
    part = personal_location(type(event))
    if part is None:
        return body
    hidden = change_personal(part, body, lambda _place, _text: HIDDEN)
    assert isinstance(hidden, dict)
    return hidden
