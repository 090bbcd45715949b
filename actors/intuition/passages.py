"""Passages of an input's parts in which a motif (a precedent that did harm) may be hidden among other words.

The similarity of a short motif to a long text that contains it is low by definition: most of the text is not the motif.
So every run of up to some number of successive phrases is compared as a text of its own, with its own begin and end
marks. A motif that is contained as whole phrases, in a document or after a polite opening, has its full similarity with
one of these runs.

Nearly all runs are excluded at once by counting their shingles. A precedent of m elements has a similarity above t to a
run of n only if m < n / t^2. If K of the run's shingles occur in some precedent of such a size and U in none, the
similarity is at most sqrt(K / (K + U)); the kind of situation, which its sender may name, counts in K. The remaining
runs are compared exactly, as far as the input's work budget suffices (``comparing``), in an order that is fair to the
parts: the most promising run of each part before the second of any. Runs of the same words are compared once.

A motif may also be in the middle of a longer phrase. So runs of words whose shingles are all held by some precedent,
possibly with a changed word between, are compared in addition: whatever surrounds it, a motif is such a run.

All parts are counted together, since a separate call for each of a thousand parts would take longer than the counting.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.contract.text.decoding.encoded_words import runs_of
from actors.intuition.index import NO_ENTRY, Hashes
from actors.intuition.library import Library
from actors.intuition.signature import MOST_WORDS, closing_shingles, opening_shingles, shingles_of
from actors.intuition.text_words import HashedText

Integers = npt.NDArray[np.int64]
Bounds = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_SHINGLES_OF_A_WORD = 3
"""Number of shingles that contain a given word."""

# The base of the polynomial in ``_fingerprints``: odd, so that its powers have inverses modulo 2^64.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = np.uint64(pow(_BASE, -1, 2**64))


class Passages(NamedTuple):
    """Runs of words of an input, in the order in which they are to be compared.

    Attributes:
        words: The hashes of all words of all parts, part after part.
        starts: Where each run begins in ``words``.
        ends: Where it ends.
        parts: The number of its part.
        bounds: An upper bound of its similarity to any precedent.
    """

    words: Hashes
    starts: Integers
    ends: Integers
    parts: Integers
    bounds: Bounds


class _Runs(NamedTuple):
    """Runs of phrases: where their words begin and end, and their first and last phrases."""

    starts: Integers
    ends: Integers
    firsts: Integers
    lasts: Integers


class _Text:
    """The parts of an input joined: words, phrases, and the size of the smallest precedent that holds each shingle.

    ``begins`` says where each phrase begins in ``words``, ``part_of`` to which part each belongs, ``part_firsts`` and
    ``part_ends`` which phrases each part has. ``inner`` holds those sizes of precedents, for the shingles without begin
    or end marks; ``phrase_of`` says in which phrase each of these shingles begins.
    """

    def __init__(self, library: Library, readings: Sequence[HashedText]) -> None:
        sizes = [len(reading.words) for reading in readings]
        befores = np.cumsum([0, *sizes[:-1]])
        self.words = np.concatenate([reading.words for reading in readings])
        begins = [reading.phrases[:-1] + before for reading, before in zip(readings, befores, strict=True)]
        self.begins = np.append(np.concatenate(begins), len(self.words))
        phrases = np.array([len(reading.phrases) - 1 for reading in readings])
        self.part_of = np.repeat(np.arange(len(readings)), phrases)
        self.part_ends = np.cumsum(phrases)
        self.part_firsts = self.part_ends - phrases
        words, starts, lasts = self.words, self.begins[:-1], self.begins[1:] - 1
        opening = opening_shingles(words[starts], words[np.minimum(starts + 1, len(words) - 1)])
        closing = closing_shingles(words[np.maximum(lasts - 1, 0)], words[lasts])
        # A run of two words has no shingle without a mark; with one more word it can be counted like the others.
        inner = shingles_of(np.concatenate((words, words[:1]))) if len(words) > 1 else words[:0]
        self.inner = library.smallest_holders(inner)
        self._openings = [library.smallest_holders(each) for each in opening]
        self._closings = [library.smallest_holders(each) for each in closing]
        self._before = _positions_before(inner)
        self.phrase_of = np.repeat(np.arange(len(starts)), np.diff(self.begins))[: len(inner)]
        self._part_begins = self.part_firsts[self.part_of[self.phrase_of]]

    def first_since(self, phrases: int) -> Flags:
        """Return which shingles do not occur in their part within the given number of phrases before their own."""
        since = np.maximum(self.phrase_of - phrases, self._part_begins)
        first: Flags = self._before < self.begins[since]
        return first

    def held_marks(self, largest: int, runs: _Runs) -> Integers:
        """Count the shingles with marks that a precedent of at most ``largest`` shingles holds: 0 to 4 for each run."""
        openings = (self._openings[0] <= largest).astype(np.int64) + (self._openings[1] <= largest)
        closings = (self._closings[0] <= largest).astype(np.int64) + (self._closings[1] <= largest)
        held: Integers = openings[runs.firsts] + closings[runs.lasts]
        return held


Count = Callable[[_Text, _Runs, Flags], tuple[Integers, Integers]]
"""Counts, for each run, the shingles that precedents hold, and the others."""


def passages(
    library: Library,
    readings: Sequence[HashedText],
    longest: int,
    fewest_words: int,
    threshold: float,
    wholes: Sequence[int] = (),
) -> Passages:
    """Return the runs of up to ``longest`` phrases that may be more similar than ``threshold`` to a precedent.

    Runs of fewer than ``fewest_words`` words (2 at least) are too common to be significant. The run of all phrases of a
    part is the part itself; it is included only for the parts whose numbers are in ``wholes``, however short.
    """
    if not any(len(reading.words) for reading in readings):
        none = np.zeros(0, np.int64)
        return Passages(np.zeros(0, np.uint64), none, none, none, np.zeros(0))
    text = _Text(library, readings)
    runs = _runs(text, longest, max(fewest_words, 2))
    bounds = _bounds(text, runs, threshold, _by_phrase)
    if wholes:
        whole = _whole_parts(text, wholes)
        runs = _Runs(*(np.concatenate(pair) for pair in zip(whole, runs, strict=True)))
        bounds = np.concatenate((_bounds(text, whole, threshold, _by_part), bounds))
    if longest:
        buried, buried_bounds = _buried(library, text, max(fewest_words, 2), threshold)
        runs = _Runs(*(np.concatenate(pair) for pair in zip(runs, buried, strict=True)))
        bounds = np.concatenate((bounds, buried_bounds))
    return _in_order(text, runs, bounds, np.flatnonzero(bounds > threshold))


def _runs(text: _Text, longest: int, fewest_words: int) -> _Runs:
    """Return every run within a part that is long enough to count and of no more than ``MOST_WORDS`` words."""
    count = len(text.part_of)
    lengths = range(1, min(longest, count) + 1)
    none = np.zeros(0, np.int64)
    firsts = np.concatenate([none, *(np.arange(count - length + 1) for length in lengths)])
    lasts = np.concatenate([none, *(np.arange(length - 1, count) for length in lengths)])
    starts, ends, part = text.begins[firsts], text.begins[lasts + 1], text.part_of[firsts]
    fits = (part == text.part_of[lasts]) & (ends - starts >= fewest_words) & (ends - starts <= MOST_WORDS)
    fits &= (firsts != text.part_firsts[part]) | (lasts + 1 != text.part_ends[part])
    return _Runs(starts[fits], ends[fits], firsts[fits], lasts[fits])


def _buried(library: Library, text: _Text, fewest_words: int, threshold: float) -> tuple[_Runs, Bounds]:
    """Return runs of words that some precedent holds, anywhere in a phrase, and upper bounds of their similarity.

    For each shingle the size of the smallest precedent that holds it is known: a run much shorter than that is only a
    part of a motif. A changed word spoils three shingles, so runs separated by no more than three are one run as well.
    A run counts only if some precedent begins with its first words, and some ends with its last ones: a part of
    a precedent's text has a lower similarity than the whole.
    """
    held = text.inner < NO_ENTRY
    none = np.zeros(0, np.int64)
    if not held.any():
        return _Runs(none, none, none, none), np.zeros(0)
    begins, closes = runs_of(held)
    same = text.phrase_of[closes[:-1] - 1] == text.phrase_of[begins[1:]]
    # Where successive runs are not joined.
    apart = np.flatnonzero((begins[1:] - closes[:-1] > _SHINGLES_OF_A_WORD) | ~same)
    starts = np.concatenate((begins, begins[np.concatenate(([0], apart + 1))]))
    ends = np.concatenate((closes, closes[np.concatenate((apart, [len(closes) - 1]))]))
    sums = _sums(held)
    count = sums[ends] - sums[starts]
    smallest = np.minimum.reduceat(np.append(text.inner, NO_ENTRY), np.stack((starts, ends), axis=1).ravel())[::2]
    firsts, lasts = text.phrase_of[starts], text.phrase_of[ends - 1]
    runs = _Runs(starts, ends + 2, firsts, lasts)
    words = runs.ends - runs.starts
    fits = (words >= fewest_words) & (words <= MOST_WORDS) & (text.part_of[firsts] == text.part_of[lasts])
    fits &= runs.ends <= text.begins[text.part_ends[text.part_of[lasts]]]
    part = text.part_of[firsts]
    fits &= (runs.starts > text.begins[text.part_firsts[part]]) | (runs.ends < text.begins[text.part_ends[part]])
    last = len(text.words) - 1
    opening = opening_shingles(text.words[starts], text.words[np.minimum(starts + 1, last)])[1]
    closing = closing_shingles(text.words[np.minimum(ends, last)], text.words[np.minimum(ends + 1, last)])[0]
    fits &= (library.smallest_holders(opening) < NO_ENTRY) & (library.smallest_holders(closing) < NO_ENTRY)
    # What both may share: the held shingles, those with marks, and the situation.
    shared = count + 5
    bounds = np.sqrt(np.minimum(shared / (ends - starts + 5), shared / np.maximum(smallest, 1)))
    chosen = np.flatnonzero(fits & (bounds > threshold))
    return _Runs(*(each[chosen] for each in runs)), np.minimum(bounds[chosen], 1.0)


def _whole_parts(text: _Text, parts: Sequence[int]) -> _Runs:
    """Return a run for each part of the text: the whole of it."""
    firsts, lasts = text.part_firsts[list(parts)], text.part_ends[list(parts)] - 1
    not_empty = firsts <= lasts
    firsts, lasts = firsts[not_empty], lasts[not_empty]
    return _Runs(text.begins[firsts], text.begins[lasts + 1], firsts, lasts)


def _bounds(text: _Text, runs: _Runs, threshold: float, count: Count) -> Bounds:
    """Return an upper bound of each run's similarity to a precedent; it may be too low if below the threshold."""
    words = runs.ends - runs.starts
    # A run of n words has at most n + 2 shingles. Sizes are rounded to powers of two, so that the text is counted only
    # a few times, not once for each size of run.
    largest = np.minimum((words + 3) / max(threshold * threshold, 1e-9), NO_ENTRY - 1)
    levels = np.ceil(np.log2(largest)).astype(np.int64)
    bounds = np.ones(len(words))
    # A run of a single word, or of more than ``MOST_WORDS`` words, cannot be counted in this way and is compared.
    countable = (words > 1) & (words <= MOST_WORDS)
    for level in np.unique(levels[countable]).tolist():
        of_level = np.flatnonzero((levels == level) & countable)
        at_level = _Runs(*(each[of_level] for each in runs))
        size = min(2**level, NO_ENTRY - 1)
        marks = text.held_marks(size, at_level)
        held, others = count(text, at_level, text.inner <= size)
        # A run has four shingles with marks, and the situation as one more element.
        bounds[of_level] = np.sqrt((held + marks + 1) / (held + others + 5))
    return bounds


def _by_phrase(text: _Text, runs: _Runs, is_held: Flags) -> tuple[Integers, Integers]:
    """Count the distinct shingles without marks of runs of few phrases: those that are held, and the others.

    In the n-th phrase of a run, a shingle counts if it does not occur in the n phrases before.
    """
    held, others = np.zeros_like(runs.starts), np.zeros_like(runs.starts)
    lengths = runs.lasts - runs.firsts + 1
    for number in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > number)
        first = text.first_since(number)
        # The last two words of a run begin no shingle without a mark.
        ends = runs.ends[longer] - 2
        starts = np.minimum(text.begins[runs.firsts[longer] + number], ends)
        ends = np.minimum(text.begins[runs.firsts[longer] + number + 1], ends)
        for counts, flags in ((held, is_held & first), (others, ~is_held & first)):
            sums = _sums(flags)
            counts[longer] += sums[ends] - sums[starts]
    return held, others


def _by_part(text: _Text, runs: _Runs, is_held: Flags) -> tuple[Integers, Integers]:
    """Count the distinct shingles without marks of whole parts: those that are held, and the others."""
    first = text.first_since(len(text.part_of))
    held, others = _sums(is_held & first), _sums(~is_held & first)
    return held[runs.ends - 2] - held[runs.starts], others[runs.ends - 2] - others[runs.starts]


def _in_order(text: _Text, runs: _Runs, bounds: Bounds, chosen: Integers) -> Passages:
    """Return the chosen runs, each once: the most promising of each part, then the second of each, and so on."""
    parts = text.part_of[runs.firsts[chosen]]
    # Stable: among equally promising runs of a part the shorter ones, then the earlier ones.
    chosen = chosen[np.lexsort((-bounds[chosen], parts))]
    starts, ends = runs.starts[chosen], runs.ends[chosen]
    distinct = np.sort(np.unique(_fingerprints(text.words, starts, ends), return_index=True)[1])
    chosen, starts, ends = chosen[distinct], starts[distinct], ends[distinct]
    parts = text.part_of[runs.firsts[chosen]]
    ranks = np.arange(len(parts)) - np.searchsorted(parts, parts)
    order = np.lexsort((parts, -bounds[chosen], ranks))
    return Passages(text.words, starts[order], ends[order], parts[order], bounds[chosen[order]])


def _fingerprints(words: Hashes, starts: Integers, ends: Integers) -> Hashes:
    """Return a 64-bit hash of each run's words: a polynomial, computed from prefix sums at its start and end."""
    powers = _powers(np.uint64(_BASE), len(words))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(words * powers, dtype=np.uint64)))
    hashes: Hashes = (sums[ends] - sums[starts]) * _powers(_INVERSE, len(words) + 1)[starts]
    return hashes


def _powers(base: np.uint64, count: int) -> Hashes:
    """Return the first powers of a number modulo 2^64, from 0 on."""
    factors = np.full(count, base, np.uint64)
    factors[:1] = 1
    powers: Hashes = np.multiply.accumulate(factors)
    return powers


def _positions_before(shingles: Hashes) -> Integers:
    """Return the previous position of each shingle, -1 where it has not occurred before."""
    before = np.full(len(shingles), -1, np.int64)
    order = np.argsort(shingles, kind="stable")
    again = shingles[order[1:]] == shingles[order[:-1]]
    before[order[1:][again]] = order[:-1][again]
    return before


def _sums(flags: Flags) -> Integers:
    """Return the number of set flags before each position, and in all."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(flags)))
