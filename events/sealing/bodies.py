"""Sealing the personal texts of a record's body, and opening them again. Pure.

A sealed text is ``nx1:`` followed by the result of ``SessionKey.seal``; its message names the key in the header
``nx-sealed``. In such a message, a text that is not sealed but looks so gets the prefix ``nx0:``, and so does one that
begins with that prefix. So an opened text equals the original, to the byte.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from events.errors import Refused
from events.log import Record, Seal, Stored
from events.sealing.cipher import SealBroken, SessionKey
from schemas.catalogue import CATALOGUE
from schemas.wording.personal import Location, below, change_personal, personal_location

HEADER = "nx-sealed"
"""Header of a message with sealed texts: the id of their key, or :data:`GONE`."""

GONE = "destroyed"
"""In the header: the session's key was destroyed before these texts were stored, so that they were not."""

CLOSED_TEXT = "[sealed]"
"""What stands for a text that cannot be opened."""

_SEALED, _PLAIN = "nx1:", "nx0:"
_LOOKS_SEALED = (_SEALED, _PLAIN)
_BYTES_OF_LOOKS = (b"nx1:", b"nx0:", b"\\u")
_TEXTLESS = frozenset({int, float, bool, type(None)})


def part_to_seal(headers: Mapping[str, str]) -> Location | None:
    """Return the places of texts to be sealed in a record; None without a session, or if there are none."""
    if not headers.get("ce-session"):
        return None
    entry = CATALOGUE.get(headers.get("ce-type", ""))
    return None if entry is None else personal_location(entry.event)


def holds_words(record: Record, part: Location) -> bool:
    """Whether there is anything to seal in a record; raises as :func:`sealed_record` does."""
    return sealed_record(record, part, None) is not record


def sealed_record(record: Record, part: Location, key: SessionKey | None) -> Record:
    """Return a record with its texts sealed (unchanged if it has none); without a key the texts are left out.

    Raises:
        Refused: the body is not JSON, so its texts cannot be found.
    """
    try:
        body = msgspec.json.decode(record.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Refused(f"a body on {record.subject} cannot be sealed: {wrong}") from wrong
    if any(looks in record.data for looks in _BYTES_OF_LOOKS):
        body = _change_texts(body, _escaped)
    sealed = change_personal(part, body, partial(_seal, key, record.headers.get("ce-id", "")))
    if sealed == body:
        return record
    headers = {**record.headers, HEADER: GONE if key is None else key.id}
    return Record(record.subject, headers, msgspec.json.encode(sealed))


def open_texts(stored: Stored, key: SessionKey | None) -> Stored:
    """Return a message with sealed texts with these opened; without their key, :data:`CLOSED_TEXT` in their place.

    Its ``seal`` says what became of it; where it is BROKEN, the message is as it was stored.
    """
    try:
        body = msgspec.json.decode(stored.data)
        body = _change_texts(body, partial(_open, key, stored.headers.get("ce-id", "")))
        seal = Seal.CLOSED if key is None else Seal.OPENED
        return Stored(stored.seq, stored.time_ns, stored.subject, stored.headers, msgspec.json.encode(body), seal)
    except (SealBroken, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.structs.replace(stored, seal=Seal.BROKEN)


def _seal(key: SessionKey | None, event: str, place: str, text: str) -> str:
    return _SEALED if key is None else _SEALED + key.seal(event, place, text)


def _open(key: SessionKey | None, event: str, place: str, text: str) -> str:
    if text.startswith(_SEALED):
        if key is None:
            return CLOSED_TEXT
        text = key.open(event, place, text[len(_SEALED) :])
    return text.removeprefix(_PLAIN)


def _escaped(_place: str, text: str) -> str:
    return _PLAIN + text if text.startswith(_LOOKS_SEALED) else text


def _change_texts(value: Any, change: Callable[[str, str], str], place: str = "") -> Any:
    """Change every text that looks sealed, wherever it is: what a release knows as personal may not be so for ever."""
    kind = type(value)
    if kind is str:
        return change(place, value) if value.startswith(_LOOKS_SEALED) else value
    if kind is dict:
        return {
            name: inner if type(inner) in _TEXTLESS else _change_texts(inner, change, below(place, name))
            for name, inner in value.items()
        }
    if kind is list:
        return [
            inner if type(inner) in _TEXTLESS else _change_texts(inner, change, f"{place}/{at}")
            for at, inner in enumerate(value)
        ]
    return value
