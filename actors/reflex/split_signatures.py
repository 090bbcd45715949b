"""Signatures in words that are split or run together: ``i-g-n-o-r-e``, ``ig|nore``, ``IgnoreAllPrevious``.

The letters and digits of a text are searched alone, whatever signs and white space lie between them; of what is found,
the gaps decide. In ordinary text the letters of a word stand together, and between words there is white space, perhaps
with a sign of punctuation: that is no disguise, and where it is the signature, the plain reading has found it. A
disguise

- splits words: any gap within a word will do in a long signature, since no text says a dozen right letters by chance;
  of a short one every letter has to stand apart;
- runs three words or more together, or joins them by signs without white space, or by the same sign each time.

A text that is turned as well (rot13, backwards) says no long signature by chance either, however it is split.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.reflex.normalise import SPACED, Layout, Offsets
from actors.reflex.spellings import Spelling

LONG = 12
"""Letters from which a signature is not said by chance."""

FEWEST_JOINED = 3
"""Words that must be run together, or joined by signs: names in programs are often two."""

_NONE, _SPACE, _SIGN = 0, 1, 2
_BOTH = _SPACE | _SIGN
_NOT_BARE = bytes(code for code in range(128) if not chr(code).isalnum())
# Punctuation, symbols, arrows, dingbats, emoji: ascending, the end excluded. After folding few others are left.
_SIGNS = (
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
    (0xFE10, 0xFE70),
    (0xFF00, 0xFF10),
    (0x1F000, 0x1FB00),
)


class BareLetters(NamedTuple):
    """The letters and digits of a squeezed text, as UTF-8, and which of its letters they are; None for all."""

    letters: bytes
    kept: Offsets | None


class LetterGaps(NamedTuple):
    """What lies before each bare letter, and behind the last; and where each was in the text."""

    kinds: bytes
    origins: Offsets


def bare_of(squeezed: bytes) -> BareLetters:
    """Return the letters and digits of a squeezed text."""
    if squeezed.isascii():
        letters = squeezed.translate(None, _NOT_BARE)
        if len(letters) == len(squeezed):
            return BareLetters(squeezed, None)
        return BareLetters(letters, np.flatnonzero(_is_bare().take(np.frombuffer(squeezed, dtype=np.uint8))))
    codes = np.frombuffer(squeezed.decode().encode("utf-32-le"), dtype=np.uint32)
    kept = np.flatnonzero(_is_bare().take(codes, mode="clip"))
    if len(kept) == len(codes):
        return BareLetters(squeezed, None)
    return BareLetters(codes[kept].tobytes().decode("utf-32-le").encode(), kept)


def gaps_of(layout: Layout, bare: BareLetters) -> LetterGaps:
    """Return the gaps between bare letters, from the layout of the squeezed text."""
    kept = np.arange(len(layout.origins)) if bare.kept is None else bare.kept
    spaces = np.concatenate(([0], np.cumsum(np.frombuffer(layout.gaps, dtype=np.uint8) == SPACED)))
    edges = np.concatenate(([-1], kept, [len(layout.origins)]))
    is_spaced = spaces[edges[1:] + 1] > spaces[edges[:-1] + 1]
    is_signed = np.diff(edges) > 1
    kinds = _SPACE * is_spaced.astype(np.uint8) | _SIGN * is_signed.astype(np.uint8)
    return LetterGaps(kinds.tobytes(), layout.origins[kept])


def backwards(gaps: LetterGaps) -> LetterGaps:
    """Return the gaps of the same letters from the last to the first."""
    return LetterGaps(gaps.kinds[::-1], gaps.origins[::-1])


def is_disguised(text: str, spelling: Spelling, gaps: LetterGaps, start: int, end: int) -> bool:
    """Return whether the letters of a signature, which are those from ``start`` to ``end``, stand in a disguise."""
    between = gaps.kinds[start + 1 : end]
    wanted = spelling.gaps
    within = [kind for kind, want in zip(between, wanted, strict=True) if want != SPACED]
    if any(within):
        if (spelling.opens_word and not gaps.kinds[start]) or (spelling.closes_word and not gaps.kinds[end]):
            return False
        return len(spelling.gaps) + 1 >= LONG or (spelling.long and all(within) and max(within) >= _SIGN)
    parted = [kind for kind, want in zip(between, wanted, strict=True) if want == SPACED]
    if len(parted) + 1 < FEWEST_JOINED or len(spelling.gaps) + 1 < LONG:
        return False
    if _BOTH not in parted:
        return sum(kind != _SPACE for kind in parted) >= FEWEST_JOINED - 1
    places = [place for place in range(start + 1, end) if wanted[place - start - 1] == SPACED]
    signs = {text[int(gaps.origins[place - 1]) + 1 : int(gaps.origins[place])] for place in places}
    return len(signs) == 1


def is_turned(spelling: Spelling) -> bool:
    """Return whether a signature is long enough to be believed in a text that is turned and split."""
    return len(spelling.gaps) + 1 >= LONG


@cache
def _is_bare() -> npt.NDArray[np.bool_]:
    table = np.ones(_SIGNS[-1][1] + 1, dtype=np.bool_)
    for first, last in _SIGNS:
        table[first:last] = False
    for code in range(128):
        table[code] = chr(code).isalnum()
    return table
