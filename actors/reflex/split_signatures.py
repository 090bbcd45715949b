"""Finds signatures in words that are split or run together: ``i-g-n-o-r-e``, ``ig|nore``, ``IgnoreAllPrevious``.

The letters and digits of a text are searched without the symbols and white space between them; for each hit, these gaps
decide. In ordinary text the letters of a word are adjacent, and words are separated by white space, perhaps with
punctuation. That is no disguise, and the plain reading finds such a signature. A disguise

- splits words: in a long signature any gap within a word is enough, since no text has a dozen right letters by
  chance; in a short one every letter must be separate;
- runs three words or more together, or joins them by symbols without white space, or by the same symbol each time.

In a text that is also turned (rot13, reversed), a long signature does not occur by chance either, however it is split.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.reflex.normalise import SPACED, Layout, Offsets
from actors.reflex.spellings import Spelling

LONG = 12
"""From this many letters on a signature does not occur by chance."""

FEWEST_JOINED = 3
"""Least words that must be run together, or joined by symbols: names in programs often have two."""

_NONE, _SPACE, _SIGN = 0, 1, 2
_BOTH = _SPACE | _SIGN
_NOT_BARE = bytes(code for code in range(128) if not chr(code).isalnum())
# Punctuation, symbols, arrows, dingbats, emoji: ascending ranges, end excluded. After folding few others are left.
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
    """The letters and digits of a squeezed text as UTF-8, and their indexes among its letters; None for all."""

    letters: bytes
    kept: Offsets | None


class LetterGaps(NamedTuple):
    """What is before each bare letter, and after the last; and the position of each in the text."""

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
    """Return the gaps of the same letters in reverse order."""
    return LetterGaps(gaps.kinds[::-1], gaps.origins[::-1])


def is_disguised(text: str, spelling: Spelling, gaps: LetterGaps, start: int, end: int) -> bool:
    """Return whether the letters of a signature, from ``start`` to ``end``, are disguised."""
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
    """Return whether a signature is long enough to be trusted in a text that is both turned and split."""
    return len(spelling.gaps) + 1 >= LONG


@cache
def _is_bare() -> npt.NDArray[np.bool_]:
    table = np.ones(_SIGNS[-1][1] + 1, dtype=np.bool_)
    for first, last in _SIGNS:
        table[first:last] = False
    for code in range(128):
        table[code] = chr(code).isalnum()
    return table
