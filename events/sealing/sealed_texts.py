"""Sealing the personal texts of a record's body, and opening them again. Pure.

A sealed text is ``nx1:`` followed by the result of ``SessionKey.seal``; its message names the key in the header
``nx-sealed``. In such a message, a text that is not sealed but begins with ``nx1:`` or ``nx0:`` gets the prefix
``nx0:``. So an opened text equals the original, to the byte.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from events.errors import Refused
from events.log import Record, Seal, Stored
from events.sealing.cipher import SealBroken, SessionKey
from schemas.catalogue import CATALOGUE
from schemas.wording.personal import Location, change_personal, personal_location, pointer_below

SEALED_HEADER = "nx-sealed"
"""Header of a message with sealed texts: the id of their key, or :data:`KEY_DESTROYED`."""

KEY_DESTROYED = "destroyed"
"""Value of the header: the session's key was destroyed before, so that the texts were not stored."""

CLOSED_TEXT = "[sealed]"
"""What stands for a text that cannot be opened."""

_SEALED, _PLAIN = "nx1:", "nx0:"
_PREFIXES = (_SEALED, _PLAIN)
_PREFIXES_IN_JSON = (b"nx1:", b"nx0:", b"\\u")
"""A body without any of these holds no text with a prefix; ``\\u`` because JSON may escape any character of one."""
_TEXTLESS_TYPES = frozenset({int, float, bool, type(None)})


def location_to_seal(headers: Mapping[str, str]) -> Location | None:
    """Return where a record may hold texts to be sealed; None without a session, or if its event type has none."""
    if not headers.get("ce-session"):
        return None
    entry = CATALOGUE.get(headers.get("ce-type", ""))
    return None if entry is None else personal_location(entry.event)


def holds_words(record: Record, location: Location) -> bool:
    """Whether a record has a text to be sealed; raises as :func:`sealed_record` does."""
    return sealed_record(record, location, None) is not record


def sealed_record(record: Record, location: Location, key: SessionKey | None) -> Record:
    """Return a record with its texts sealed (unchanged if it has none); without a key the texts are left out.

    Raises:
        Refused: the body is not JSON, so its texts cannot be found.
    """
    try:
        body = msgspec.json.decode(record.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Refused(f"a body on {record.subject} cannot be sealed: {wrong}") from wrong
    if any(prefix in record.data for prefix in _PREFIXES_IN_JSON):
        body = _change_texts(body, _escaped)
    sealed = change_personal(location, body, partial(_seal, key, record.headers.get("ce-id", "")))
    if sealed == body:
        return record
    headers = {**record.headers, SEALED_HEADER: KEY_DESTROYED if key is None else key.id}
    return Record(record.subject, headers, msgspec.json.encode(sealed))


def open_texts(stored: Stored, key: SessionKey | None) -> Stored:
    """Return a message with its sealed texts opened; without their key, with :data:`CLOSED_TEXT` instead.

    Its ``seal`` says which; if it is BROKEN, the message is returned as it was stored.
    """
    try:
        body = msgspec.json.decode(stored.data)
        body = _change_texts(body, partial(_open, key, stored.headers.get("ce-id", "")))
        seal = Seal.CLOSED if key is None else Seal.OPENED
        return Stored(stored.seq, stored.time_ns, stored.subject, stored.headers, msgspec.json.encode(body), seal)
    except (SealBroken, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.structs.replace(stored, seal=Seal.BROKEN)


def _seal(key: SessionKey | None, event: str, pointer: str, text: str) -> str:
    return _SEALED if key is None else _SEALED + key.seal(event, pointer, text)


def _open(key: SessionKey | None, event: str, pointer: str, text: str) -> str:
    if text.startswith(_SEALED):
        if key is None:
            return CLOSED_TEXT
        text = key.open(event, pointer, text[len(_SEALED) :])
    return text.removeprefix(_PLAIN)


def _escaped(_pointer: str, text: str) -> str:
    return _PLAIN + text if text.startswith(_PREFIXES) else text


def _change_texts(value: Any, change: Callable[[str, str], str], pointer: str = "") -> Any:
    """Change every text with a prefix, in any field: another release may mark other fields as personal."""
    kind = type(value)
    if kind is str:
        return change(pointer, value) if value.startswith(_PREFIXES) else value
    if kind is dict:
        return {
            name: inner
            if type(inner) in _TEXTLESS_TYPES
            else _change_texts(inner, change, pointer_below(pointer, name))
            for name, inner in value.items()
        }
    if kind is list:
        return [
            inner if type(inner) in _TEXTLESS_TYPES else _change_texts(inner, change, f"{pointer}/{at}")
            for at, inner in enumerate(value)
        ]
    return value
