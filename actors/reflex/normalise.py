"""Texts in the form that is searched for signatures (phrases of attacks): letters folded, white space removed.

Invisible characters are removed, too. ``squeeze`` is the hot path: it returns only the bytes to search. Where something
was found, ``lay_out`` reads the text again and returns what was between the letters, and where each letter came from.

Digits and symbols that look like letters (leetspeak) are ambiguous: 1 is an i or an l. ``blur`` replaces all characters
of such a group by one letter, in signatures and texts alike, so that one search finds every reading. A hit is then
compared letter by letter.
"""

from functools import cache

import msgspec
import numpy as np
import numpy.typing as npt

from actors.reflex.fold_table import EXPANDED, INVISIBLE, MAX_EXPANSION, SPACE, Codes, fold_table

_CONTROLS = bytes(code for code in range(128) if not chr(code).isprintable())
_NOT_MATCHED = _CONTROLS + b" "
_LOWER = bytes(range(256)).lower()

_BLURRED = bytes.maketrans(b"l1!|03@45$7+8962", b"iiiioeaassttbggz")
_ROT13 = bytes.maketrans(b"abcdefghijklmnopqrstuvwxyz", b"nopqrstuvwxyzabcdefghijklm")

Offsets = npt.NDArray[np.int64]

JOINED, UNCERTAIN, SPACED = 0, 1, 2
"""What precedes a letter: nothing (or only combining marks), only invisible characters, or some white space."""

_ASCII_GAPS = bytes(
    SPACED if code < 128 and chr(code).isspace() else UNCERTAIN if code in _CONTROLS else JOINED for code in range(256)
)


# Punctuation, symbols, arrows, dingbats, private use (icons of fonts), emoji: ascending ranges, end excluded. After
# folding few others are left.
_SYMBOLS = (
    (0x80, 0xAA),
    (0xAB, 0xB5),
    (0xB6, 0xBA),
    (0xBB, 0xC0),
    (0xD7, 0xD8),
    (0xF7, 0xF8),
    (0x2B0, 0x300),
    (0x2000, 0x2C00),
    (0x2E00, 0x2E80),
    (0x3000, 0x3005),
    (0x3008, 0x3021),
    (0xE000, 0xF900),
    (0xFE10, 0xFE70),
    (0xFF00, 0xFF10),
    (0x1F000, 0x1FB00),
)


class Layout(msgspec.Struct, frozen=True):
    """How the letters of a squeezed text were placed in the original.

    Attributes:
        gaps: A byte for what precedes each letter and one for what follows the last; text begins and ends SPACED.
        apart: As ``gaps``, 0 where two characters stand together and 1 elsewhere, also between the letters that one
            character stands for.
        origins: For each letter, the offset of its character in the original text.
    """

    gaps: bytes
    apart: bytes
    origins: Offsets


def squeeze(text: str) -> bytes:
    """Return the UTF-8 of a folded text without white space, invisible characters, combining marks, lone surrogates."""
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, _NOT_MATCHED)
    values, _ = _fold(text)
    return _decode(values.compress(values >= 0)).encode()


def blur(squeezed: bytes) -> bytes:
    """Return a squeezed text with digits and symbols as the letters they look like, and l as i; of the same length."""
    return squeezed.translate(_BLURRED)


def rot13(squeezed: bytes) -> bytes:
    """Return a squeezed text with its ASCII letters shifted by 13 positions."""
    return squeezed.translate(_ROT13)


def lay_out(text: str) -> Layout:
    """Return the gaps between the letters of ``squeeze(text)`` and their offsets in ``text``."""
    if text.isascii():
        return _lay_out_ascii(text)
    values, origins = _fold(text)
    is_letter = values >= 0
    letters = np.flatnonzero(is_letter)
    others = np.flatnonzero(~is_letter)
    between = others - np.arange(len(others))  # how many letters precede each of the others
    classes = values[others]
    gaps = np.full(len(letters) + 1, JOINED, dtype=np.uint8)
    gaps[between[classes == INVISIBLE]] = UNCERTAIN
    gaps[between[classes == SPACE]] = SPACED
    gaps[0] = gaps[-1] = SPACED
    apart = gaps != JOINED
    if origins is None:
        return Layout(gaps.tobytes(), apart.tobytes(), letters)
    origins = origins[letters]
    apart[1:-1] |= origins[1:] == origins[:-1]
    return Layout(gaps.tobytes(), apart.tobytes(), origins)


def backwards(layout: Layout) -> Layout:
    """Return the layout of the same letters in reverse order."""
    return Layout(layout.gaps[::-1], layout.apart[::-1], layout.origins[::-1])


def _lay_out_ascii(text: str) -> Layout:
    """Do the same as ``lay_out`` in a quarter of its time, for ASCII, which nearly all texts are."""
    kinds = np.frombuffer(text.encode("ascii").translate(_ASCII_GAPS), dtype=np.uint8)
    letters = np.flatnonzero(kinds == JOINED)
    gaps = np.full(len(letters) + 1, JOINED, dtype=np.uint8)
    for kind in (UNCERTAIN, SPACED):
        others = np.flatnonzero(kinds == kind)
        gaps[np.searchsorted(letters, others)] = kind
    gaps[0] = gaps[-1] = SPACED
    return Layout(gaps.tobytes(), (gaps != JOINED).tobytes(), letters)


def codes_of(text: str) -> Codes:
    """Return the code points of a text."""
    # Encoding handles every lone surrogate by a slow path; a numpy array takes them as they are.
    return np.array([text], dtype=f"<U{len(text) or 1}").view("<i4")[: len(text)]


def _fold(text: str) -> tuple[Codes, Offsets | None]:
    """Return the fold table's values along the text, and the offset of the character that each comes from.

    Offsets are None if every character has one value.
    """
    table = fold_table()
    values = table.single.take(codes_of(text))
    expanded = np.flatnonzero(values <= EXPANDED)
    if not len(expanded):
        return values, None
    entries = EXPANDED - values[expanded]
    firsts = table.start[entries]
    extra = table.start[entries + 1] - firsts - 1
    lengths = np.ones(len(values), dtype=np.int64)
    lengths[expanded] += extra
    origins = np.repeat(np.arange(len(values)), lengths)
    out = values[origins]
    positions = expanded + np.cumsum(extra) - extra  # where the first value of each expanded one goes
    out[positions] = table.pool[firsts]
    for more in range(1, MAX_EXPANSION):
        longer = np.flatnonzero(extra >= more)
        out[positions[longer] + more] = table.pool[firsts[longer] + more]
    return out, origins


def _decode(values: Codes) -> str:
    return values.astype("<i4", copy=False).tobytes().decode("utf-32-le")


@cache
def bare_table() -> npt.NDArray[np.bool_]:
    """Return for each code point of a squeezed text whether it is a letter or digit; those past the table's end are."""
    table = np.ones(_SYMBOLS[-1][1] + 1, dtype=np.bool_)
    for first, last in _SYMBOLS:
        table[first:last] = False
    for code in range(128):
        table[code] = chr(code).isalnum()
    return table
