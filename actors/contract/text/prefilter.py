"""Which views a text may have at all: whether it has enough of the characters that an encoding is made of.

Nearly no text has any, and a search for each takes most of the time of reading one. Each test lets through whatever the
search would find, and some more.
"""

import string

_WHITE = bytes(code for code in range(128) if chr(code).isspace())
# What is not ASCII may be any white space there is.
_FREE = _WHITE + b"?"


def _table(members: str) -> bytes:
    return bytes(ord("x") if chr(code) in members and code < 128 else ord(".") for code in range(256))


_RUNS = (
    ("base64", _table(string.ascii_letters + string.digits + "+/_-"), b"", 16),
    ("base32", _table(string.ascii_uppercase + "234567"), b"", 16),
    ("hex", _table(string.hexdigits), _FREE + b":,x\\", 16),
    ("binary", _table("01"), _FREE + b",", 32),
)
"""Encoding, its characters, those that may stand between them, and how many it has at least."""

_MORSE, _MORSE_LEAST = _table(".- /|"), 17
_ALWAYS = frozenset({"rot13", "reversed", "leetspeak", "spaced"})


def kinds_in(text: str) -> frozenset[str]:
    """Return the kinds of views that a text may have."""
    data = text.encode("ascii", "replace")
    found = {kind for kind, table, free, least in _RUNS if b"x" * least in data.translate(table, free)}
    plain = text.isascii()
    morse = data if plain else text.replace("\u2022", ".").replace("\u2013", "-").encode("ascii", "replace")
    if b"x" * _MORSE_LEAST in morse.translate(_MORSE):
        found.add("morse")
    if data.count(b"%") + data.count(b"\\") + data.count(b"&#") >= 4:
        found.add("escaped")
    if not plain:
        found.add("tags")
    return _ALWAYS | found
