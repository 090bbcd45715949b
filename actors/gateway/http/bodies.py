"""What the bodies of all endpoints share: names, reasons, failures, and how a body is read."""

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from actors.gateway.external_events import InvalidField
from schemas.intake import strict
from schemas.intake.blank import is_blank

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""A name that a body gives, such as that of a session or an agent."""

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
"""Why a person does something, in their words."""

Body = TypeVar("Body", bound=msgspec.Struct)

_RECORDED_NAMES = ("by", "why", "override_by", "override_reason")
"""Fields that say who does something and why: they may not be blank."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request could not be served: a stable ``code``, and a message that says what to do.

    ``field`` names the field that is wrong, if one is. ``loop_id`` is sent if the request is about a loop; it is null
    if the name could not be read.
    """

    status: Literal["error"] = "error"
    code: str
    field: str | msgspec.UnsetType = msgspec.UNSET
    message: str
    loop_id: str | msgspec.UnsetType | None = msgspec.UNSET


def read_body(raw: bytes, kind: type[Body], open_to: tuple[type, ...] = ()) -> Body:
    """Read a JSON body strictly.

    Args:
        raw: The body.
        kind: What it must be.
        open_to: Types within it that may have further fields.

    Raises:
        InvalidField: it is something else; the error names the field, as ``schemas.intake.strict.read`` says.
    """
    try:
        body = strict.read(raw, kind, open_to=open_to)
    except strict.BadInput as wrong:
        raise InvalidField(wrong.field, str(wrong), wrong.code) from wrong
    for name in _RECORDED_NAMES:
        value = getattr(body, name, None)
        if isinstance(value, str) and value and is_blank(value):
            raise InvalidField(name, f"{name} is blank: it is put on record, write a word")
    return body


def loop_named_in(raw: bytes) -> str | None:
    """Return the loop that a body is about, if it can be read."""
    try:
        found: Any = msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).get("loop_id")
        return msgspec.json.decode(found, type=str) if found is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
