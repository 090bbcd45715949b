"""Finds signatures (phrases of attacks) in words that are split, run together or separated by symbols.

Such as ``i-g-n-o-r-e`` or ``ignore "all"``. A *squeezed* text has its letters folded, and no white space.

The letters and digits of a text are searched without the symbols and white space between them; for each hit, these gaps
decide. In ordinary text the letters of a word are adjacent, and words are separated by white space alone, where the
plain reading finds them. A disguise

- splits words: in a long signature any gap within a word is enough, since no text has a dozen right letters by
  chance; in a short one every letter must be separate;
- runs three words or more together, or joins them by symbols without white space, or by the same symbol each time;
- puts symbols between words: quotation marks, brackets, emphasis; in a long signature also any others, such as ``>`` at
  line starts, if white space is beside them or the signature has three words or more (names in programs have two). A
  mark that ends a clause does not count, since another clause may begin with the words after it.

In a text that is also in rot13 or reversed, a long signature does not occur by chance either, however it is split.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from actors.reflex.normalise import JOINED, SPACED, Layout, Offsets, bare_table
from actors.reflex.spellings import Spelling

LONG = 12
"""A signature with at least this many letters does not occur by chance."""

FEWEST_JOINED = 3
"""Fewest words that must be run together, or joined by symbols: names in programs often have two."""

_SPACE, _SYMBOL = 1, 2
_BOTH = _SPACE | _SYMBOL
"""What stands between two letters: white space, symbols, or both."""

_ENDS_CLAUSE = re.compile(r"[.!?:;](?!\.)")
"""A full stop and the like right behind a word; dots that go on end no clause."""

_AROUND_WORDS = re.compile(  # quotation marks, brackets, emphasis and white space
    r"(?![_=|~]+\Z)[\s\"'`\u00ab\u00b4\u00bb\u2018-\u201f\u2039\u203a\u3008-\u3011()\[\]{}<>*_~=|]+"
)
_NOT_BARE = bytes(code for code in range(128) if not chr(code).isalnum())


class BareLetters(NamedTuple):
    """The letters and digits of a squeezed text as UTF-8, and their indexes among its letters; None for all."""

    letters: bytes
    kept: Offsets | None


class LetterGaps(NamedTuple):
    """What is before each bare letter, and after the last (``kinds``); and the position of each in the text
    (``origins``).

    ``around``: a cache, by letter: whether what is before it are only quotation marks, brackets and the like.
    """

    kinds: bytes
    origins: Offsets
    around: dict[int, bool]


def bare_of(squeezed: bytes) -> BareLetters:
    """Return the letters and digits of a squeezed text."""
    if squeezed.isascii():
        letters = squeezed.translate(None, _NOT_BARE)
        if len(letters) == len(squeezed):
            return BareLetters(squeezed, None)
        return BareLetters(letters, np.flatnonzero(bare_table().take(np.frombuffer(squeezed, dtype=np.uint8))))
    codes = np.frombuffer(squeezed.decode().encode("utf-32-le"), dtype=np.uint32)
    kept = np.flatnonzero(bare_table().take(codes, mode="clip"))
    if len(kept) == len(codes):
        return BareLetters(squeezed, None)
    return BareLetters(codes[kept].tobytes().decode("utf-32-le").encode(), kept)


def gaps_of(layout: Layout, bare: BareLetters) -> LetterGaps:
    """Return the gaps between bare letters, from the layout of the squeezed text."""
    kept = np.arange(len(layout.origins)) if bare.kept is None else bare.kept
    spaces = np.concatenate(([0], np.cumsum(np.frombuffer(layout.gaps, dtype=np.uint8) == SPACED)))
    edges = np.concatenate(([-1], kept, [len(layout.origins)]))
    is_spaced = spaces[edges[1:] + 1] > spaces[edges[:-1] + 1]
    has_symbol = np.diff(edges) > 1
    kinds = _SPACE * is_spaced.astype(np.uint8) | _SYMBOL * has_symbol.astype(np.uint8)
    return LetterGaps(kinds.tobytes(), layout.origins[kept], {})


def backwards(gaps: LetterGaps) -> LetterGaps:
    """Return the gaps of the same letters in reverse order."""
    return LetterGaps(gaps.kinds[::-1], gaps.origins[::-1], {})


def is_disguised(text: str, spelling: Spelling, gaps: LetterGaps, start: int, end: int, *, exact: bool) -> bool:
    """Return whether the letters of a signature, from ``start`` to ``end``, are disguised.

    ``exact``: they are the signature's, and do not only look like them.
    """
    between = gaps.kinds[start + 1 : end]
    wanted = spelling.gaps
    long = len(wanted) + 1 >= LONG
    within = [kind for kind, want in zip(between, wanted, strict=True) if want == JOINED]
    whole = (gaps.kinds[start] or not spelling.opens_word) and (gaps.kinds[end] or not spelling.closes_word)
    if any(within):
        return bool(whole) and (long or (spelling.is_rewritten and all(within) and max(within) >= _SYMBOL))
    indexes = [index for index in range(start + 1, end) if wanted[index - start - 1] == SPACED]
    if len(indexes) + 1 >= FEWEST_JOINED and long and _are_joined(text, gaps, indexes):
        return True
    if not whole or not (long or (exact and len(indexes) + 1 >= FEWEST_JOINED)):
        return False
    with_symbols = [index for index in indexes if gaps.kinds[index] != _SPACE]
    any_symbol = _SYMBOL if long and len(indexes) + 1 >= FEWEST_JOINED else _BOTH if long else None
    return bool(with_symbols) and all(_is_insignificant(text, gaps, index, any_symbol) for index in with_symbols)


def _are_joined(text: str, gaps: LetterGaps, indexes: Sequence[int]) -> bool:
    """Return whether the words that begin at some letters are run together or joined by symbols."""
    kinds = [gaps.kinds[index] for index in indexes]
    if _BOTH not in kinds:
        return sum(kind != _SPACE for kind in kinds) >= FEWEST_JOINED - 1
    return len({text[slice(*_gap(gaps, index))] for index in indexes}) == 1


def _is_insignificant(text: str, gaps: LetterGaps, index: int, any_symbol: int | None) -> bool:
    """Return whether the symbols before a word do not change the sentence, as quotation marks and brackets do not.

    Before a word whose gap is of the kind ``any_symbol`` or a higher one, any symbols may stand but those that end a
    clause; before any other word, or if ``any_symbol`` is None, only quotation marks, brackets and the like.
    """
    begin, end = _gap(gaps, index)
    if any_symbol is not None and gaps.kinds[index] >= any_symbol:
        return _ENDS_CLAUSE.match(text, begin) is None
    if index not in gaps.around:
        gaps.around[index] = _AROUND_WORDS.fullmatch(text, begin, end) is not None
    return gaps.around[index]


def _gap(gaps: LetterGaps, index: int) -> tuple[int, int]:
    """Return the start and end, in the text, of what is before a bare letter."""
    return int(gaps.origins[index - 1]) + 1, int(gaps.origins[index])


def is_trusted_when_rewritten(spelling: Spelling) -> bool:
    """Return whether a signature is long enough to be trusted in a text that is split and in rot13 or reversed."""
    return len(spelling.gaps) + 1 >= LONG
