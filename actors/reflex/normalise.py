"""Texts as they are matched: letters folded, white space and invisible characters taken out.

``squeeze`` is the hot path: it gives the bytes to search and nothing else. Only where something was
found, ``lay_out`` walks the text again and tells what lay between the letters and where each came from.

Digits and symbols that pass for letters (leetspeak) are ambiguous: 1 is an i or an l. ``blur`` reads all of a kind as
one letter, in signatures and texts alike, so that a search finds every reading at once; what is found is then
compared letter by letter.
"""

import msgspec
import numpy as np
import numpy.typing as npt

from actors.reflex.fold_table import EXPANDED, INVISIBLE, MAX_EXPANSION, SPACE, Codes, fold_table

_CONTROLS = bytes(code for code in range(128) if not chr(code).isprintable())
_NOT_MATCHED = _CONTROLS + b" "
_LOWER = bytes(range(256)).lower()

_BLURRED = bytes.maketrans(b"l1!|03@45$7+8962", b"iiiioeaassttbggz")
_ROT13 = bytes.maketrans(
    b"abcdefghijklmnopqrstuvwxyz",
    b"nopqrstuvwxyzabcdefghijklm",
)

Offsets = npt.NDArray[np.int64]

JOINED, UNCERTAIN, SPACED = 0, 1, 2
"""What precedes a letter: nothing (or only marks), invisible characters alone, or some white space."""

_ASCII_GAPS = bytes(
    SPACED if code < 128 and chr(code).isspace() else UNCERTAIN if code in _CONTROLS else JOINED for code in range(256)
)


class Layout(msgspec.Struct, frozen=True):
    """How the letters of a squeezed text lay in the original.

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
    """Return the UTF-8 of the folded text without white space, invisible characters, marks and lone surrogates."""
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, _NOT_MATCHED)
    values, _ = _fold(text)
    return _decode(values.compress(values >= 0)).encode()


def blur(squeezed: bytes) -> bytes:
    """Return a squeezed text with digits and symbols as the letters they pass for, and l as i; as long as before."""
    return squeezed.translate(_BLURRED)


def rot13(squeezed: bytes) -> bytes:
    """Return a squeezed text with its ASCII letters moved by 13 places."""
    return squeezed.translate(_ROT13)


def lay_out(text: str) -> Layout:
    """Return the gaps between the letters of ``squeeze(text)`` and their offsets in ``text``."""
    if text.isascii():
        return _lay_out_ascii(text)
    values, origins = _fold(text)
    is_letter = values >= 0
    letters = np.flatnonzero(is_letter)
    others = np.flatnonzero(~is_letter)
    between = others - np.arange(len(others))  # the letters before each of the others
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
    """Return the layout of the same letters from the last to the first."""
    return Layout(layout.gaps[::-1], layout.apart[::-1], layout.origins[::-1])


def _lay_out_ascii(text: str) -> Layout:
    """Return what ``lay_out`` does, in a quarter of its time: nearly all texts are ASCII."""
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
    # Encoding takes a detour for every lone surrogate; an array of numpy's takes them as they are.
    return np.array([text], dtype=f"<U{len(text) or 1}").view("<i4")[: len(text)]


def _fold(text: str) -> tuple[Codes, Offsets | None]:
    """Return the fold table's values along the text, and the offset of the character each comes from.

    Without offsets every character has one value.
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
    places = expanded + np.cumsum(extra) - extra  # of the first value of each
    out[places] = table.pool[firsts]
    for more in range(1, MAX_EXPANSION):
        longer = np.flatnonzero(extra >= more)
        out[places[longer] + more] = table.pool[firsts[longer] + more]
    return out, origins


def _decode(values: Codes) -> str:
    return values.astype("<i4", copy=False).tobytes().decode("utf-32-le")
