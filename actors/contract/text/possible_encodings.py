"""A fast check of which encodings a text may have: whether it has enough characters of an encoding.

Nearly no text is encoded, and the search for each encoding would take most of the reading time. The check passes every
text in which the search would find something, and some others.
"""

import string

_WHITE = bytes(code for code in range(128) if chr(code).isspace())
# Characters beyond ASCII are question marks here, and may be white space.
_SEPARATORS = _WHITE + b"?"


def _table(members: str) -> bytes:
    return bytes(ord("x") if chr(code) in members and code < 128 else ord(".") for code in range(256))


_RUNS = (
    ("base64", _table(string.ascii_letters + string.digits + "+/_-"), b"", 16),
    ("base32", _table(string.ascii_uppercase + "234567"), b"", 16),
    ("hex", _table(string.hexdigits), _SEPARATORS + b":,x\\", 16),
    ("binary", _table("01"), _SEPARATORS + b",", 32),
)
"""The encodings: name, characters, characters allowed between them, least number of characters."""

_MORSE, _MORSE_LEAST = _table(".- /|"), 17
_ALWAYS = frozenset({"rot13", "reversed", "leetspeak", "spaced"})


def kinds_in(text: str) -> frozenset[str]:
    """Return the kinds of decoded views (readings with an encoding undone) that a text may have."""
    data = text.encode("ascii", "replace")
    found = {kind for kind, table, separators, least in _RUNS if b"x" * least in data.translate(table, separators)}
    plain = text.isascii()
    morse = data if plain else text.replace("\u2022", ".").replace("\u2013", "-").encode("ascii", "replace")
    if b"x" * _MORSE_LEAST in morse.translate(_MORSE):
        found.add("morse")
    if data.count(b"%") + data.count(b"\\") + data.count(b"&#") >= 4:
        found.add("escaped")
    if not plain:
        found.add("tags")
    return _ALWAYS | found
