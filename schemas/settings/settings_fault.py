"""Why this release does not accept recorded settings: which setting, with which value. Pure."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.intake.error_messages import explain_error
from schemas.settings.known_settings import known_part

UNREADABLE_SETTINGS = "unreadable_settings"
"""Beginning of the reason for which decisions cannot be made again: this release cannot read their settings."""

_MAX_VALUE_CHARACTERS = 60
_MAX_ERROR_CHARACTERS = 100
"""How many characters of a wrong value, and of the error, a reason repeats at most."""


def settings_fault(owner: str, settings: Mapping[str, Any], kind: type[Any]) -> str:
    """Return which of its owner's recorded settings a type does not accept, its value and why; or an empty string.

    Settings that the type does not have any more are no fault. Where each setting is valid alone and they contradict
    each other, none is named.
    """
    if _fault(settings, kind) is None:  # the usual case: to look for removed settings takes fifty times as long
        return ""
    known = known_part(settings, kind)
    fault = _fault(known, kind)
    if fault is None:
        return ""
    error, path = fault
    if not path:
        path = next((name for name in known if _fault({name: known[name]}, kind) is not None), "")
    named = f"{owner}.{path} = {_value_at(known, path)}" if path else owner
    return f"{UNREADABLE_SETTINGS}: {named}: {_cut(error, _MAX_ERROR_CHARACTERS)}"


def _fault(values: Any, kind: type[Any]) -> tuple[str, str] | None:
    try:
        msgspec.convert(values, kind)
    except msgspec.ValidationError as wrong:
        return explain_error(kind, str(wrong))
    return None


def _value_at(value: Any, path: str) -> str:
    """Return the value at a path. If the path names no single entry (``[...]``), return the whole collection."""
    for step in re.findall(r"\w+|\.{3}", path):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            break
    return _cut(msgspec.json.encode(value).decode(), _MAX_VALUE_CHARACTERS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
