"""Finds the signatures (phrases of attacks) of a library in a text, all in one pass of an Aho-Corasick automaton.

Signatures and text are both *squeezed* (letters folded, white space and invisible characters left out) and *blurred*
(digits and symbols as the letters that they look like; ``normalise``), so that none of these hides a phrase from the
automaton. A signature may have several *spellings*, which are its squeezed forms. Each hit of the automaton is then
checked in detail; the *gaps*, that is what stands between two letters, are compared, too. It is a match if

- the text has white space exactly where the signature has it; an invisible character may count as white space or
  as nothing, whichever fits, since a reader of the text may take it for either. Or the text has white space after
  every single letter (``spaced``);
- neither end continues into a longer word, unless the signature opted out: two letters, digits or underscores
  with nothing but combining marks between them belong to one word;
- its letters are the signature's, or those of the signature in rot13 (``rot13``) or backwards (``reversed``), or
  look like the signature's (``leetspeak``).

The letters are searched once more without the symbols and white space between them, for words that are split, run
together or separated by symbols (``split``); also in rot13 and reversed.

The search reports overlapping hits: if the longest is no match, a shorter one within it may be.

The cost is counted in candidates, the hits that are checked, and bounded. A text earns a candidate for every
``BYTES_A_CANDIDATE`` of its letters, and an input ``CANDIDATES_PER_INPUT`` in addition; a signature that was found
often enough uses no more of them. When they are used up, the search continues, but takes only the longest signature at
each position, without overlaps. So every letter is searched, whatever precedes it, and a flood of hits hides at most
what overlaps with it. The number of letters searched in that way is counted (``unread``). A library with more than
``MAX_TOGETHER`` signatures that end in one another, which no import may have, is searched in that way from the start.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import msgspec
import numpy as np
from ahocorasick_rs import MATCHKIND_LEFTMOST_LONGEST, BytesAhoCorasick, Implementation

from actors.contract.text.judge.instruction_words import has_reversed
from actors.contract.text.rewriting import REWRITE, Rewriting
from actors.reflex.library import Library
from actors.reflex.normalise import JOINED, UNCERTAIN, Layout, Offsets, backwards, blur, lay_out, rot13, squeeze
from actors.reflex.spellings import Spelling, cached_spellings, deep_chain, is_word
from actors.reflex.split_signatures import (
    BareLetters,
    LetterGaps,
    bare_of,
    gaps_of,
    is_disguised,
    is_trusted_when_rewritten,
)
from actors.reflex.split_signatures import backwards as backwards_gaps
from schemas.vocabulary.patterns import PatternSet, Signature

Reading = Literal["plain", "split"] | Rewriting
"""The ways in which the characters of a text are read."""

READINGS: tuple[Reading, ...] = ("plain", *REWRITE, "split")
"""In the order of preference: as they are, every rewriting of ``contract.text.rewriting``, and letters alone, of words
that are split, run together or separated by symbols (``split``)."""

_PLAIN, _SPACED, _LEETSPEAK, _ROT13, _REVERSED, _SPLIT = map(
    READINGS.index, ("plain", "spaced", "leetspeak", "rot13", "reversed", "split")
)

CANDIDATES_PER_INPUT = 32_768
"""Candidates of an input in addition to those that its letters earn: about 20 ms."""

BYTES_A_CANDIDATE = 64
"""Searched bytes that earn a candidate: ordinary texts have one in some hundred bytes."""

WINDOW = 4096
"""Bytes searched at a time: the candidates of one window are held in memory, and may exceed the rest of the budget."""

MAX_TOGETHER = 128
"""Most spellings that may end at one position of a text. Imports are limited to fewer
(``imported_patterns.MAX_DEPTH``), but a signature may have several spellings, and those of the built-in library are
added."""

_LEETSPEAK_DIGITS = bytes.maketrans(b"0134578", b"oieastb")
"""Leetspeak's digits as letters, for text that is in rot13 as well."""

_CERTAIN = bytes(0 if gap == UNCERTAIN else 255 for gap in range(256))
"""A mask over gaps: 255 where a gap must equal the signature's, 0 where it may count as either."""

_Candidate = tuple[int, int, int]
"""The index of a pattern of the automaton, and its start and end."""


class Hit(msgspec.Struct, frozen=True, order=True):
    """The position of a signature in a text; ``rank`` is its index in library order, ``reading`` that in ``READINGS``.

    Offsets are in characters of the text.
    """

    rank: int
    reading: int
    start: int
    end: int


class SearchResult(msgspec.Struct, frozen=True):
    """The result of a search.

    ``unread`` counts the letters searched after all candidates were used up, among which hits that overlap with longer
    ones may be missing.
    """

    hits: list[Hit]
    candidates_left: int
    unread: int = 0


@dataclass(frozen=True)
class Matcher:
    """A compiled library. ``signatures`` are in library order; a hit's ``rank`` is an index into them.

    ``patterns`` are what the automaton searches for, ``spellings`` the spellings of each, ``reach`` is the length of
    the longest in bytes. ``deep``: more than ``MAX_TOGETHER`` spellings may end at one position.
    """

    signatures: tuple[tuple[PatternSet, Signature], ...]
    patterns: tuple[bytes, ...]
    spellings: tuple[tuple[Spelling, ...], ...]
    automaton: BytesAhoCorasick
    reach: int
    deep: bool

    @cached_property
    def longest_only(self) -> BytesAhoCorasick:
        """The automaton used when candidates are used up; most processes never need it."""
        return BytesAhoCorasick(
            list(self.patterns), matchkind=MATCHKIND_LEFTMOST_LONGEST, implementation=Implementation.ContiguousNFA
        )

    def find(
        self, text: str, limit: int, readings: Collection[str] = READINGS, candidates_left: int = CANDIDATES_PER_INPUT
    ) -> SearchResult:
        """Return where the signatures occur, sorted, each in the first of the wanted readings in which it is found.

        For each signature at most ``limit`` positions are reported, the first ones. Up to ``candidates_left``
        candidates are examined in addition to those that the letters earn.
        """
        wanted = frozenset(READINGS.index(reading) for reading in READINGS if reading in readings)
        squeezed = squeeze(text)
        search = _Search(self, text, limit, wanted, candidates_left)
        search.run(squeezed)
        if _ROT13 in wanted:
            shifted = rot13(squeezed)
            if shifted != squeezed:  # without ASCII letters both read the same
                search.run(shifted, _ROT13)
        # Searched backwards only if there is a reversed instruction word: the search takes as long as the forward one.
        if _REVERSED in wanted and has_reversed(squeezed):
            search.run(squeezed.decode()[::-1].encode(), _REVERSED)
        if _SPLIT in wanted:
            search.run_split(squeezed)
        first: dict[int, int] = {}
        for hit in search.hits:
            first[hit.rank] = min(hit.reading, first.get(hit.rank, hit.reading))
        return SearchResult(
            sorted(hit for hit in search.hits if hit.reading == first[hit.rank]), search.candidates_left, search.unread
        )

    def windows(self, squeezed: bytes) -> Iterator[tuple[bytes, int, int]]:
        """Yield a blurred text in overlapping pieces, with the start of each and its overlap with the one before."""
        blurred = blur(squeezed)
        step = max(WINDOW, 4 * self.reach)
        for new in range(0, len(blurred), step):
            begin = max(0, new - self.reach)
            yield blurred[begin : new + step], begin, new - begin


class _Search:
    """The search of one text: what was found so far (``hits``), and how many candidates are left.

    ``counts`` says how often each signature was found, by its rank and the index of the reading.
    """

    def __init__(self, matcher: Matcher, text: str, limit: int, wanted: frozenset[int], candidates_left: int) -> None:
        self.matcher, self.text, self.limit, self.wanted = matcher, text, limit, wanted
        self.candidates_left, self.unread = candidates_left, 0
        self._bytes_over = 0  # searched bytes that did not yet earn a further candidate
        self.hits: dict[Hit, None] = {}
        self.counts: dict[tuple[int, int], int] = {}
        self.settled: set[int] = set()
        """Ranks that are complete: the wanted number of positions was found, in whatever reading."""
        self.done: set[int] = set()
        """Patterns of the automaton whose signatures are all complete."""
        self.layout: Layout | None = None

    def run(self, squeezed: bytes, rewriting: int = _PLAIN) -> None:
        """Search the squeezed text. ``rewriting`` says that it was put into rot13, or reversed, before."""
        letters = ""
        letter_of: Offsets | None = None
        if rewriting:  # found in a better reading already, and so of no use in this one
            self.settled.update(hit.rank for hit in self.hits)
            self.done.clear()
        for piece, begin, overlap in self.matcher.windows(squeezed):
            candidates = self._candidates(piece, begin, overlap)
            if not candidates:
                continue
            if not letters:
                self.layout = self.layout or lay_out(self.text)
                if rewriting == _REVERSED:
                    self.layout = backwards(self.layout)
                letters = squeezed.decode()
                letter_of = None if len(squeezed) == len(letters) else _letters_of(squeezed)
            self._verify(candidates, squeezed, letters, letter_of, rewriting)

    def run_split(self, squeezed: bytes) -> None:
        """Search only the letters of the squeezed text; also in rot13 and reversed, if these readings are wanted."""
        bare = bare_of(squeezed)
        self._run_bare(bare, bare.letters, _SPLIT)
        if _ROT13 in self.wanted:
            shifted = rot13(bare.letters)
            if shifted != bare.letters:
                self._run_bare(bare, shifted, _ROT13)
            undone = bare.letters.translate(_LEETSPEAK_DIGITS)
            if undone != bare.letters and not bare.letters.isdigit():
                self._run_bare(bare, rot13(undone), _ROT13)
        if _REVERSED in self.wanted and has_reversed(bare.letters):
            self._run_bare(bare, bare.letters.decode()[::-1].encode(), _REVERSED)

    def _run_bare(self, bare: BareLetters, letters: bytes, reading: int) -> None:
        """Search letters without the symbols between them, in the reading with that index."""
        self.settled.update(hit.rank for hit in self.hits)
        self.done.clear()
        gaps: LetterGaps | None = None
        letter_of: Offsets | None = None
        for piece, begin, overlap in self.matcher.windows(letters):
            candidates = self._candidates(piece, begin, overlap)
            if not candidates:
                continue
            if gaps is None:
                self.layout = lay_out(self.text)
                gaps = gaps_of(self.layout, bare)
                gaps = backwards_gaps(gaps) if reading == _REVERSED else gaps
                letter_of = None if letters.isascii() else _letters_of(letters)
            places = candidates if letter_of is None else _in_letters(candidates, letter_of)
            for (index, first, _), (_, start, end) in zip(candidates, places, strict=True):
                for spelling in self.matcher.spellings[index]:
                    self.candidates_left -= 1
                    if spelling.rank in self.settled or len(spelling.gaps) != end - start - 1:
                        continue
                    if (
                        is_disguised(
                            self.text, spelling, gaps, start, end, exact=letters.startswith(spelling.letters, first)
                        )
                        if reading == _SPLIT
                        else is_trusted_when_rewritten(spelling)
                    ):
                        self._keep(spelling.rank, reading, gaps.origins, start, end)

    def _candidates(self, piece: bytes, begin: int, overlap: int) -> list[_Candidate]:
        """Return the candidates that end in the new part of a piece of text; offsets are in the whole text."""
        earned, self._bytes_over = divmod(self._bytes_over + len(piece) - overlap, BYTES_A_CANDIDATE)
        self.candidates_left += earned
        if self.candidates_left > 0 and not self.matcher.deep:
            found = self.matcher.automaton.find_matches_as_indexes(piece, overlapping=True)
        else:
            found = self.matcher.longest_only.find_matches_as_indexes(piece)
            self.unread += bool(found) * (len(piece) - overlap)  # without a longest hit there is no shorter one
        done = self.done
        if begin or overlap:
            return [
                (index, begin + first, begin + last)
                for index, first, last in found
                if last > overlap and index not in done
            ]
        return [each for each in found if each[0] not in done] if done else found

    def _verify(
        self, candidates: list[_Candidate], squeezed: bytes, letters: str, letter_of: Offsets | None, rewriting: int
    ) -> None:
        """Keep the candidates that are matches in any wanted reading."""
        layout = self.layout
        assert layout is not None
        places = candidates if letter_of is None else _in_letters(candidates, letter_of)
        for (index, first, _), (_, start, end) in zip(candidates, places, strict=True):
            if index in self.done:
                continue
            spellings = [
                each for each in self.matcher.spellings[index] if each.rank not in self.settled and not each.bare
            ]
            if not spellings:
                self.done.add(index)
                continue
            self.candidates_left -= len(spellings)
            for spelling in spellings:
                reading = _reading(spelling, squeezed, first, letters, layout, start, end, rewriting)
                if reading is not None:
                    self._keep(spelling.rank, reading, layout.origins, start, end)

    def _keep(self, rank: int, reading: int, origins: Offsets, start: int, end: int) -> None:
        """Add a match, if its reading is wanted and its signature was not found often enough already."""
        count = self.counts.get((rank, reading), 0)
        if reading not in self.wanted or count >= self.limit:
            return
        first, last = sorted((int(origins[start]), int(origins[end - 1])))
        hit = Hit(rank, reading, first, last + 1)
        if hit in self.hits:
            return
        self.hits[hit] = None
        self.counts[rank, reading] = count + 1
        if count + 1 == self.limit:
            self.settled.add(rank)


@lru_cache(maxsize=16)
def compile_library(library: Library) -> Matcher:
    """Return the matcher of a library; equal content is compiled once in a process.

    It takes about 15 microseconds for each signature: 0.15 s for 10,000.
    """
    signatures = tuple(library.signatures())
    spellings_by_pattern: dict[bytes, list[Spelling]] = {}
    for spelling in cached_spellings(signatures):
        spellings_by_pattern.setdefault(blur(spelling.letters), []).append(spelling)
    # A DFA is no faster with thousands of signatures (its table exceeds the processor's caches), and takes ten times
    # the memory and four times as long to build.
    return Matcher(
        signatures,
        patterns=tuple(spellings_by_pattern),
        spellings=tuple(map(tuple, spellings_by_pattern.values())),
        automaton=BytesAhoCorasick(list(spellings_by_pattern), implementation=Implementation.ContiguousNFA),
        reach=max(map(len, spellings_by_pattern), default=0),
        deep=bool(
            deep_chain(((each, 0) for each, spelled in spellings_by_pattern.items() for _ in spelled), MAX_TOGETHER)
        ),
    )


def _letters_of(squeezed: bytes) -> Offsets:
    """Return for each byte of UTF-8, and for the end, the index of its letter."""
    data = np.frombuffer(squeezed, dtype=np.uint8)
    begins = np.append((data & 0xC0) != 0x80, True)
    return np.cumsum(begins) - 1


def _in_letters(candidates: list[_Candidate], letter_of: Offsets) -> list[_Candidate]:
    """Convert byte offsets into letter offsets."""
    places = np.array(candidates)
    places[:, 1:] = letter_of[places[:, 1:]]
    return places.tolist()  # type: ignore[no-any-return]  # numpy types nested lists as Any


def _reading(
    spelling: Spelling, squeezed: bytes, first: int, letters: str, layout: Layout, start: int, end: int, rewriting: int
) -> int | None:
    """Return the index of the reading in which a candidate is a match, None if in none.

    It begins at byte ``first`` of ``squeezed``, which is letter ``start``, and ends before letter ``end``. Work that
    grows with the signature's length is done by methods of ``bytes``, since chains of long signatures may have many
    candidates.
    """
    gaps = layout.gaps
    if spelling.opens_word and gaps[start] == JOINED and is_word(letters[start - 1]):
        return None
    if spelling.closes_word and gaps[end] == JOINED and is_word(letters[end]):
        return None
    exact = squeezed.startswith(spelling.letters, first)
    if rewriting:
        fits = spelling.is_rewritten and exact and _agree(gaps, start, end, spelling.gaps)
        return rewriting if fits else None
    if _agree(gaps, start, end, spelling.gaps):
        return _PLAIN if exact else _LEETSPEAK
    may_be_spaced = spelling.is_rewritten and JOINED in spelling.gaps
    return _SPACED if may_be_spaced and layout.apart.find(0, start + 1, end) < 0 else None


def _agree(gaps: bytes, start: int, end: int, wanted: bytes) -> bool:
    """Return whether the gaps within a candidate are the wanted ones; an UNCERTAIN gap of the text fits either."""
    if gaps.startswith(wanted, start + 1):
        return True
    if gaps.find(UNCERTAIN, start + 1, end) < 0:
        return False
    between = gaps[start + 1 : end]
    differing = int.from_bytes(between) ^ int.from_bytes(wanted)
    return differing & int.from_bytes(between.translate(_CERTAIN)) == 0
