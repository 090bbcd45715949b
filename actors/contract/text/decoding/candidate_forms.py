"""A fast check of which disguises a text may contain at all, at a microsecond per thousand characters.

The search for a form of disguise is the slowest part of undoing it, and nearly no text contains any. So each form has a
cheap check. It passes every text in which the search would find something, and some others.
"""

import re
import string

from actors.contract.text.possible_encodings import kinds_in

# Kinds of characters. A text is translated into one byte for each, and patterns of these bytes are searched for in it.
_LETTER, _CAPITAL, _DIGIT, _BLANK, _SYMBOL, _QUOTE = b"aAd .'"
_MIXED = (b"aA", b"da", b"ad", b"dA", b"Ad", b"AAa")
_FEWEST_MIXED = 6
"""Positions where a word of base64 switches between kinds of character; few other words do that."""

_FEWEST_DIGITS = 12
"""Fewest digits of a text written in numbers."""

_LONG = 16
"""Fewest letters of words that run together, or letters and digits of an encoded run."""

# Letters with symbols or blanks between them; letters written apart; a word in two halves.
_SPLIT = (b"a.a.a", b"a..a..a", b"a...a...a", b"a. a. a", b"a . a . a", b"a .a .a")
_SPACED = b" a a a a a a a a a a a a "
_HALVED = (b"a.a", b"a..a", b"a. a")


def _kind(char: str) -> int:
    if char.isspace():
        return _BLANK
    if char == "'":
        return _QUOTE
    if char.isdigit():
        return _DIGIT
    if char.isalpha():
        return _CAPITAL if char.isupper() else _LETTER
    return _SYMBOL


# Characters beyond ASCII, letters as well as symbols, have been replaced by question marks here.
_KINDS = bytes(_kind(chr(code)) if code < 128 else _SYMBOL for code in range(256))
_INVISIBLE_BYTES = (
    *(char.encode()[:2] for char in ("\U000e0020", "\ufe00", "\u200b", "\u2060")),
    *(char.encode() for char in ("\ufeff", "\u00ad", "\u180e")),
)
"""The first bytes of invisible characters; some visible ones begin with the same bytes."""

_ALPHANUMERIC = bytes(ord("x") if code < 128 and chr(code).isalnum() else ord(".") for code in range(256))
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_CAPITALS = re.compile(r"[A-Z]{2}[a-z]")
_TO_LOWER_CASE = bytes.maketrans(b"A", b"a")
_DIGITS = bytes(ord("d") if chr(code) in string.digits else ord(".") for code in range(256))
_SEPARATORS = bytes(code for code in range(128) if chr(code).isspace() or chr(code) in ",;|/.+-_")


def has_letters_apart(text: str) -> bool:
    """Return whether a text may contain single letters with separators between them."""
    lowered = text.encode("ascii", "replace").translate(_KINDS).translate(_TO_LOWER_CASE)
    return any(map(lowered.__contains__, _SPLIT))


def _is_encoded(run: str) -> bool:
    """Return whether a run of letters and digits looks encoded, not like a long word or a name in a program."""
    return not run.isalpha() or _CAPITALS.search(run) is not None


def forms_in(text: str) -> frozenset[str]:
    """Return the names of the forms that a text may contain; ``nested_decoding`` has what undoes each.

    ``escapes``, ``carrier`` (a URL that carries data away) and ``cipher`` are always among them: they have no
    check here. ``unseen`` is text in invisible characters, ``numerals`` text in numbers, ``payloads`` base64 and the
    like, ``pieces`` a sentence in pieces over the values of a document, ``split`` words that are split or run together.
    """
    data = text.encode("ascii", "replace")
    kinds = data.translate(_KINDS)
    lowered = kinds.translate(_TO_LOWER_CASE)
    found = {"escapes", "carrier", "cipher"}
    encodings = kinds_in(text)
    has_encoded_run = (b"x" * _LONG) in data.translate(_ALPHANUMERIC) and any(map(_is_encoded, _RUN.findall(text)))
    found.update(encodings & {"binary", "hex", "morse"})
    if not text.isascii() and any(map(text.encode("utf-8", "replace").__contains__, _INVISIBLE_BYTES)):
        found.add("unseen")
    digits = data.translate(_DIGITS, _SEPARATORS)
    # Calls that make a character of a number: ``chr(``, ``unichr(``, ``char(``, ``Char(``, ``CHAR(``.
    if b"d" * _FEWEST_DIGITS in digits or b"chr(" in data or b"har(" in data or b"HAR(" in data or b"0o" in data:
        found.add("numerals")
    may_have = has_encoded_run or "hex" in encodings or b"<~" in data or _SPACED in lowered.replace(b"d", b"a")
    if may_have or sum(map(kinds.count, _MIXED)) >= _FEWEST_MIXED:
        found.add("payloads")
    if data.count(b'"') + data.count(b"'") >= 6 or b"<" in data or data.count(b":") + data.count(b"=") >= 3:
        found.add("pieces")
    if b"a" * _LONG in lowered or any(map(lowered.__contains__, _SPLIT)) or sum(map(lowered.count, _HALVED)) >= 2:
        found.add("split")
    return frozenset(found)
