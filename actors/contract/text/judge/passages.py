"""The worst passage of a text: every run of its segments is scored as if it were a text of its own.

A passage is a run of successive segments (sentences, lines, cells, values), from one segment up to all. Its score is
the sum of the weights of its distinct n-grams, divided by the square root of their number, so that length alone does
not raise the score. The score of the text is that of its worst passage. So the surroundings of a passage, its
repetition and the length of the text do not lower the score.

All passages of one length are scored at once. An occurrence of an n-gram counts in those passages that include it whole
and begin after the previous occurrence of the same n-gram. These passages are successive. So its weight
is added at the first of them and subtracted after the last, and one running sum gives the totals. N-grams with the same
segments and the same previous segment count as one. The work is a few passes over them for each length, of which there
are at most twenty. Sums are of integers, so they are exact in any order. The rest is square roots, divisions and
comparisons. So equal texts give equal bits on every machine.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Packed = npt.NDArray[np.uint64]

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
"""Numbers of segments of the passages that are scored; in addition the whole text, however many it has."""

_AT_ONCE = 16_384
"""Most entries of the arrays in which several lengths are scored at once."""

_UNIT = 2.0**33
"""The count of n-grams is stored above the sum of their weights, in one number.

That is exact as long as all known weights sum to less than 2^32: a table has some hundred thousand weights, and few
have more than 10 bits.
"""

_MIDDLE = 1 << 15
"""Added to a weight, so that it is positive and fits into 16 bits without a sign."""

_16, _32, _16_BITS, _32_BITS = np.uint64(16), np.uint64(32), np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)

MIN_NGRAMS = 16
"""A passage with fewer n-grams than this is scored as if it had this many, because a few words alone prove little."""


class Occurrences(NamedTuple):
    """The n-grams of a text by number and position, ascending; no n-gram has two entries with the same first segment.

    ``grams`` are the numbers: the hashes of n-grams as ``features`` finds them, their indexes in the table of weights
    for ``worst_passage``. ``positions`` are their packed positions (see ``packed_positions``).
    """

    grams: Integers
    positions: Packed


class Passage(NamedTuple):
    """The score of a passage, in units of weights, its first segment, and its number of segments."""

    score: float
    first: int
    length: int


def packed_positions(firsts: Integers, lasts: Integers, befores: Integers) -> Packed:
    """Return positions packed into one integer each, whose 16 lowest bits are free.

    ``firsts`` and ``lasts`` are the first and last segments of n-grams, below 65,535. ``befores`` are the first
    segments of the previous occurrences of the same n-grams, -1 for none.
    """
    packed: Packed = ((firsts << 32 | lasts << 16 | (befores + 1)).astype(np.uint64)) << _16
    return packed


def spans_of(positions: Packed) -> tuple[Integers, Integers]:
    """Return the first and last segments from packed positions."""
    spans = (positions >> _32).astype(np.int64)
    return spans >> 16, spans & 0xFFFF


def occurrences_of(grams: npt.NDArray[np.integer[Any]], firsts: Integers, lasts: Integers) -> Occurrences:
    """Return n-grams, given by numbers below 2^32, as occurrences."""
    # One integer each, ordered by n-gram, first and last segment: sorting integers is much faster than sorting rows.
    ordered = np.sort(grams.astype(np.uint64) << _32 | (firsts << 16 | lasts).astype(np.uint64))
    # An n-gram that begins in the same segment as the entry before it adds nothing to any passage.
    beginnings = ordered >> _16
    kept = np.ones(len(ordered), np.bool_)
    np.not_equal(beginnings[1:], beginnings[:-1], out=kept[1:])
    ordered = ordered[kept]
    numbers = (ordered >> _32).astype(np.int64)
    positions = (ordered & _32_BITS).astype(np.int64)
    firsts, lasts = positions >> 16, positions & 0xFFFF
    befores = np.full(len(ordered), -1, np.int64)
    np.copyto(befores[1:], firsts[:-1], where=numbers[1:] == numbers[:-1])
    return Occurrences(numbers, packed_positions(firsts, lasts, befores))


def worst_passage(weights: npt.NDArray[np.int32], found: Occurrences, segments: int) -> Passage:
    """Return the passage with the highest score; among equals the shortest, then the first.

    ``weights`` are 16-bit integers by n-gram; scores do not include a bias. There is always a result: a text without
    n-grams scores 0.
    """
    counted = _counted(weights, found)
    lengths = np.array(lengths_of(segments))
    # Several lengths at once, but not so many that the arrays grow large: for a short text the calls dominate.
    step = max(1, _AT_ONCE // (len(counted.values) + segments + 1))
    best = Passage(-np.inf, 0, 1)
    for begin in range(0, len(lengths), step):
        some = lengths[begin : begin + step]
        scores = _scores(counted, some, segments)
        highest = int(scores.argmax())
        if scores[highest] > best.score:
            row, first = divmod(highest, segments + 1)
            best = Passage(float(scores[highest]), first, int(some[row]))
    return best


def lengths_of(segments: int) -> tuple[int, ...]:
    """Return the lengths of passages for a number of segments, ascending; the last is the whole text."""
    return (*(length for length in LENGTHS if length < segments), segments)


class _Counted(NamedTuple):
    """The n-grams at each position, combined: ``values`` holds the sum of their weights plus ``_UNIT`` for each.

    Most n-grams of a text share their position with many others. ``firsts`` and ``lasts`` are their first and last
    segments. ``opens`` are the first segments where a passage may begin: those after the previous occurrence.
    """

    firsts: Integers
    lasts: Integers
    opens: Integers
    values: npt.NDArray[np.float64]


def _counted(weights: npt.NDArray[np.int32], found: Occurrences) -> _Counted:
    """Return the n-grams with their weights, those at the same position combined."""
    # Position and weight in one integer, so that the weights are sorted along.
    ordered = np.sort(found.positions | (weights[found.grams] + _MIDDLE).astype(np.uint64))
    positions = ordered >> _16
    begins = np.ones(len(positions), np.bool_)
    np.not_equal(positions[1:], positions[:-1], out=begins[1:])
    at = np.flatnonzero(begins)
    values = (ordered & _16_BITS).astype(np.float64) + (_UNIT - _MIDDLE)
    sums = np.add.reduceat(values, at) if len(at) else values
    return _Counted(*spans_of(ordered[at]), (positions[at] & _16_BITS).astype(np.int64), sums)


def _scores(counted: _Counted, lengths: Integers, segments: int) -> npt.NDArray[np.float64]:
    """Return the scores of the passages of some lengths by first segment, with one segment of padding."""
    width, size = segments + 1, (segments + 1) * len(lengths)
    rows = np.arange(len(lengths))[:, None] * width
    begins = segments + 1 - lengths[:, None]
    # The passages in which an n-gram counts begin from ``low`` to before ``high``; there are none if the two are equal.
    high = np.minimum(counted.firsts + 1, begins)
    low = np.minimum(np.maximum(counted.opens, counted.lasts + 1 - lengths[:, None]), high)
    values = np.tile(counted.values, len(lengths))
    # Each value added in a row is subtracted in the same row, so one running sum serves all rows.
    changes = np.bincount((low + rows).ravel(), values, size) - np.bincount((high + rows).ravel(), values, size)
    totals = np.cumsum(changes)
    sizes = np.rint(totals / _UNIT)
    scores: npt.NDArray[np.float64] = (totals - sizes * _UNIT) / np.sqrt(np.maximum(sizes, MIN_NGRAMS))
    scores[(np.arange(width) >= begins).ravel()] = -np.inf
    return scores
