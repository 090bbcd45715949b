"""Tells whether the result of a decoding is text at all."""

import codecs

from actors.contract.text.folding import INVISIBLE

MIN_CHARACTERS = 6
"""Fewest characters of a decoded text."""

PRINTED = bytes(code for code in range(128) if chr(code).isprintable() or chr(code) in "\n\t\r")
"""The ASCII characters that occur in texts."""

_NOT_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_BREAKS = {ord(char): None for char in "\n\t\r"}


def is_text(decoded: str) -> bool:
    """Return whether nearly all characters of a decoded text are printable, or white space of any kind.

    Invisible characters do not count: a disguise may have one between any two letters. Where a text consists of them,
    it may say something only if they are different.
    """
    if len(decoded) < MIN_CHARACTERS:
        return False
    if decoded.isascii():
        return len(decoded.encode().translate(None, PRINTED)) <= 0.03 * len(decoded)
    if decoded.translate(_BREAKS).isprintable():
        return True
    visible = INVISIBLE.sub("", decoded)
    if len(visible) < MIN_CHARACTERS and len(set(decoded)) < len(set(visible)) + 2:
        return False
    return sum(char.isprintable() or char.isspace() for char in visible) >= 0.97 * len(visible)


def is_mostly_letters(decoded: str) -> bool:
    """Return whether a decoded text consists mostly of letters, without its invisible characters."""
    if not is_text(decoded):
        return False
    if not decoded.isascii():
        decoded = INVISIBLE.sub("", decoded)
    # Counting ASCII letters is nearly always enough.
    letters = len(decoded.encode("ascii", "ignore").translate(None, _NOT_LETTERS))
    return letters >= max(1, 0.5 * len(decoded)) or (
        not decoded.isascii() and sum(map(str.isalpha, decoded)) >= 0.5 * len(decoded)
    )


def text_of(data: bytes) -> str:
    """Return bytes as text, also in UTF-16; empty where they are not text."""
    has_mark = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not has_mark and data.count(b"\0") * 3 > len(data):
        data = data.replace(b"\0", b"")
    try:
        decoded = data.decode("utf-16" if has_mark else "utf-8")
    except UnicodeDecodeError:
        return ""
    return decoded if is_text(decoded) else ""
