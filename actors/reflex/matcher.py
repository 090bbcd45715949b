"""Finding the signatures of a library in a text, all in one pass.

Both the signatures and the text are squeezed and blurred (``normalise``), so that neither runs of white space nor
invisible characters nor digits for letters hide a phrase from the automaton. What it reports is then read closely.
A hit holds if

- the text has white space exactly where the signature has it; an invisible character may stand for white space or
  for nothing, whichever fits, since a reader of the text may take it for either. Or it has white space after every
  single letter (``spaced``);
- neither end goes on into a longer word, unless the signature opted out: two letters, digits or underscores
  with nothing but combining marks between them belong to one word;
- its letters are the signature's, or those of the signature in rot13 (``rot13``), or pass for the signature's
  (``leetspeak``).

The search reports overlapping hits: where the longest fails, a shorter one within it may hold.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np
from ahocorasick_rs import BytesAhoCorasick, Implementation

from actors.reflex.library import Library
from actors.reflex.normalise import JOINED, UNCERTAIN, Layout, blur, lay_out, rot13, squeeze
from schemas.vocabulary.patterns import PatternSet, Signature

Reading = Literal["plain", "spaced", "leetspeak", "rot13"]
"""How the characters of a text were read, in the order of preference."""

READINGS: tuple[Reading, ...] = ("plain", "spaced", "leetspeak", "rot13")
_PLAIN, _SPACED, _LEETSPEAK, _ROT13 = range(4)

MIN_DISGUISED = 6
"""Letters that a signature must have for being looked for in rot13 and spaced: shorter ones turn up by chance."""


class Hit(msgspec.Struct, frozen=True, order=True):
    """A signature's place in a text: ``rank`` is its place in library order, ``reading`` the index into ``READINGS``.

    Offsets are characters of the text.
    """

    rank: int
    reading: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way a signature reads once squeezed, with what must lie between its letters.

    ``long``: it has letters enough to be looked for in rot13 and spaced.
    """

    rank: int
    letters: bytes
    gaps: bytes
    opens_word: bool
    closes_word: bool
    long: bool


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled library. ``signatures`` are in library order; a hit's ``rank`` is an index into them."""

    signatures: tuple[tuple[PatternSet, Signature], ...]
    spellings: tuple[_Spelling, ...]
    automaton: BytesAhoCorasick

    def find(self, text: str, limit: int, readings: Collection[str] = READINGS) -> list[Hit]:
        """Return where the signatures occur, sorted, each in the first of the wanted readings that shows it.

        Of each signature at most ``limit`` places are reported, the first ones.
        """
        squeezed = squeeze(text)
        found = self._search(text, squeezed, limit, False)
        if "rot13" in readings:
            found += self._search(text, rot13(squeezed), limit, True)
        if not found:
            return []
        wanted = [hit for hit in found if READINGS[hit.reading] in readings]
        first: dict[int, int] = {}
        for hit in wanted:
            first[hit.rank] = min(hit.reading, first.get(hit.rank, hit.reading))
        return sorted(hit for hit in wanted if hit.reading == first[hit.rank])

    def _search(self, text: str, squeezed: bytes, limit: int, turned: bool) -> list[Hit]:
        """Return the hits in a squeezed text, in all readings; ``turned``: it is that of ``text`` in rot13."""
        candidates = self.automaton.find_matches_as_indexes(blur(squeezed), overlapping=True)
        if not candidates:
            return []
        letters = squeezed.decode()
        layout = lay_out(text)
        found: dict[Hit, None] = {}
        counts: Counter[tuple[int, int]] = Counter()
        for (index, first, last), (_, start, end) in zip(
            candidates, _in_letters(candidates, squeezed, letters), strict=True
        ):
            spelling = self.spellings[index]
            reading = _reading(spelling, squeezed[first:last], letters, layout, start, end, turned)
            if reading is None or counts[spelling.rank, reading] >= limit:
                continue
            hit = Hit(spelling.rank, reading, int(layout.origins[start]), int(layout.origins[end - 1]) + 1)
            if hit not in found:
                found[hit] = None
                counts[spelling.rank, reading] += 1
        return list(found)


@lru_cache(maxsize=16)
def compile_library(library: Library) -> Matcher:
    """Return the matcher of a library; equal content is compiled once a process.

    Takes some 15 microseconds a signature: 0.15 s for 10,000.
    """
    signatures = tuple(library.signatures())
    spellings = list(_spell(signatures))
    # A DFA is no faster on thousands of signatures (its table leaves the caches), takes ten times the
    # memory and four times as long to build.
    automaton = BytesAhoCorasick(
        [blur(each.letters) for each in spellings], implementation=Implementation.ContiguousNFA
    )
    return Matcher(signatures, tuple(spellings), automaton)


def _spell(signatures: tuple[tuple[PatternSet, Signature], ...]) -> Iterator[_Spelling]:
    """Yield the squeezed spellings of every signature."""
    forms = [(rank, form) for rank, (_, signature) in enumerate(signatures) for form in _forms(signature.text)]
    # All in one text, since laying out costs more by the text than by the letter.
    text = "\n".join(form for _, form in forms)
    letters, layout = squeeze(text).decode(), lay_out(text)
    # An invisible character in a signature says nothing.
    gaps = layout.gaps.replace(bytes([UNCERTAIN]), bytes([JOINED]))
    ends = np.cumsum([len(form) + 1 for _, form in forms])
    places = [0, *np.searchsorted(layout.origins, ends).tolist()]
    seen: set[tuple[int, str, bytes]] = set()
    for (rank, _), start, end in zip(forms, places, places[1:], strict=False):
        spelling = rank, letters[start:end], gaps[start + 1 : end]
        if spelling not in seen:
            seen.add(spelling)
            yield _spelling(*spelling, signatures[rank][1].whole_words)


def _forms(text: str) -> tuple[str, ...]:
    """Return the ways to write a signature: small letters and capitals may pass for different ASCII letters."""
    return (text,) if text.isascii() else (text, text.lower(), text.upper(), text.title())


def _spelling(rank: int, letters: str, gaps: bytes, whole_words: bool) -> _Spelling:
    return _Spelling(
        rank,
        letters.encode(),
        gaps,
        opens_word=whole_words and _is_word(letters[0]),
        closes_word=whole_words and _is_word(letters[-1]),
        long=len(letters) >= MIN_DISGUISED,
    )


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


def _reading(
    spelling: _Spelling, found: bytes, letters: str, layout: Layout, start: int, end: int, turned: bool
) -> int | None:
    """Return the index of the reading in which a candidate holds, None if in none."""
    gaps = layout.gaps
    if spelling.opens_word and gaps[start] == JOINED and _is_word(letters[start - 1]):
        return None
    if spelling.closes_word and gaps[end] == JOINED and _is_word(letters[end]):
        return None
    exact = found == spelling.letters
    between = gaps[start + 1 : end]
    if _agree(between, spelling.gaps):
        if turned:
            return _ROT13 if spelling.long and exact else None
        return _PLAIN if exact else _LEETSPEAK
    may_be_spaced = spelling.long and not turned and JOINED in spelling.gaps
    return _SPACED if may_be_spaced and _all_apart(layout, start, end) else None


def _all_apart(layout: Layout, start: int, end: int) -> bool:
    """Return whether no two characters stand together; one may stand for several letters."""
    return all(
        layout.gaps[place] != JOINED or layout.origins[place] == layout.origins[place - 1]
        for place in range(start + 1, end)
    )


def _agree(between: bytes, wanted: bytes) -> bool:
    return between == wanted or (
        UNCERTAIN in between and all(gap in (UNCERTAIN, want) for gap, want in zip(between, wanted, strict=True))
    )


def _is_word(char: str) -> bool:
    return char == "_" or char.isalnum()
