"""Finding the signatures of a library in a text, all in one pass.

Both the signatures and the text are squeezed (``normalise``), so that neither runs of white space nor invisible
characters hide a phrase from the automaton. A hit then holds if

- the text has white space exactly where the signature has it; an invisible character may stand for white space or
  for nothing, whichever fits, since a reader of the text may take it for either;
- neither end goes on into a longer word, unless the signature opted out: two letters, digits or underscores
  with nothing but combining marks between them belong to one word.

The search reports overlapping hits: where the longest fails, a shorter one within it may hold.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from ahocorasick_rs import BytesAhoCorasick, Implementation

from actors.reflex.library import Library, PatternSet, Signature
from actors.reflex.normalise import JOINED, UNCERTAIN, lay_out, squeeze

# A DFA searches up to twice as fast as the library's choice but takes some 110 bytes a byte of signature.
_DFA_MAX_BYTES = 500_000


class Hit(msgspec.Struct, frozen=True, order=True):
    """A signature's place in a text: ``rank`` is its place in library order, offsets are characters of the text."""

    rank: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way a signature reads once folded, with what must lie between its letters."""

    rank: int
    gaps: bytes
    whole_words: bool


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled library. ``signatures`` are in library order; a hit's ``rank`` is an index into them."""

    signatures: tuple[tuple[PatternSet, Signature], ...]
    spellings: tuple[_Spelling, ...]
    automaton: BytesAhoCorasick

    def find(self, text: str, limit: int) -> list[Hit]:
        """Return where the signatures occur, sorted; of each signature at most ``limit`` places, the first ones."""
        squeezed = squeeze(text)
        candidates = self.automaton.find_matches_as_indexes(squeezed, overlapping=True)
        if not candidates:
            return []
        letters = squeezed.decode()
        layout = lay_out(text)
        found: set[Hit] = set()
        count: Counter[int] = Counter()
        for index, start, end in _in_letters(candidates, squeezed, letters):
            spelling = self.spellings[index]
            if count[spelling.rank] < limit and _holds(spelling, letters, layout.gaps, start, end):
                hit = Hit(spelling.rank, int(layout.origins[start]), int(layout.origins[end - 1]) + 1)
                if hit not in found:
                    found.add(hit)
                    count[spelling.rank] += 1
        return sorted(found)


@lru_cache(maxsize=16)
def compile_library(library: Library) -> Matcher:
    """Return the matcher of a library; equal content is compiled once a process."""
    signatures = tuple(library.signatures())
    squeezed: list[bytes] = []
    spellings: list[_Spelling] = []
    for rank, (_, signature) in enumerate(signatures):
        for letters, gaps in _spell(signature.text):
            squeezed.append(letters)
            spellings.append(_Spelling(rank, gaps, signature.whole_words))
    small = sum(map(len, squeezed)) <= _DFA_MAX_BYTES
    automaton = BytesAhoCorasick(squeezed, implementation=Implementation.DFA if small else None)
    return Matcher(signatures, tuple(spellings), automaton)


def _spell(text: str) -> list[tuple[bytes, bytes]]:
    """Return the folded spellings of a signature, letters and gaps.

    Small letters and capitals of a script may pass for different ASCII letters, so that one phrase has up to
    four spellings; a phrase in ASCII has one.
    """
    forms = (text, text.lower(), text.upper(), text.title())
    return list(dict.fromkeys((squeeze(form), _between(lay_out(form).gaps)) for form in forms))


def _between(gaps: bytes) -> bytes:
    # An invisible character in a signature says nothing.
    return gaps[1:-1].replace(bytes([UNCERTAIN]), bytes([JOINED]))


def _in_letters(
    candidates: list[tuple[int, int, int]], squeezed: bytes, letters: str
) -> Iterable[tuple[int, int, int]]:
    """Turn byte offsets in ``squeezed``, the UTF-8 of ``letters``, into offsets in ``letters``."""
    if len(squeezed) == len(letters):
        return candidates
    data = np.frombuffer(squeezed, dtype=np.uint8)
    begins = np.append((data & 0xC0) != 0x80, True)
    letter_of = np.cumsum(begins) - 1
    places = np.array(candidates)
    places[:, 1:] = letter_of[places[:, 1:]]
    return places.tolist()  # type: ignore[no-any-return]  # numpy types nested lists as Any


def _holds(spelling: _Spelling, letters: str, gaps: bytes, start: int, end: int) -> bool:
    if spelling.whole_words and (_inside_word(letters, gaps, start) or _inside_word(letters, gaps, end)):
        return False
    between = gaps[start + 1 : end]
    return between == spelling.gaps or (
        UNCERTAIN in between
        and all(gap in (UNCERTAIN, wanted) for gap, wanted in zip(between, spelling.gaps, strict=True))
    )


def _inside_word(letters: str, gaps: bytes, place: int) -> bool:
    return gaps[place] == JOINED and _is_word(letters[place - 1]) and _is_word(letters[place])


def _is_word(char: str) -> bool:
    return char == "_" or char.isalnum()
