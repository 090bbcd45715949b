"""The worst passage of a text: every run of its segments, judged as a text of its own.

A passage is a run of successive segments (sentences, lines, cells, values), from one up to all of them. Its score is
the sum of the weights of its distinct n-grams over the root of how many they are, so that a long passage says no more
than a short one by being long. The text's score is that of its worst passage: what stands around it, how often it is
repeated and how long the text is lower nothing.

All passages of one length are counted at once: an n-gram counts in the passages that begin behind its occurrence
before, not later than it begins and not too early to reach its end. These are successive, so it is added where they
begin and taken away behind, and one running sum gives the totals. N-grams that stand in the same segments, and stood
before in the same, count as one. The work is a few passes over these for each of the lengths, which are at most twenty.
Sums are of whole numbers, hence exact in any order; what follows are square roots, divisions and comparisons. Equal
texts give equal bits on every machine.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Packed = npt.NDArray[np.uint64]

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
"""Segments of a passage; the longest passage is the whole text, however many it has."""

_AT_ONCE = 16_384
_UNIT = 2.0**33
"""How many n-grams there are is kept above the sum of their weights, in one number.

It is exact as long as the weights of all that are known come to less than 2^32: tables have some hundred thousand, and
few weights have more than 10 bits.
"""

_MIDDLE = 1 << 15
_16, _32, _16_BITS, _32_BITS = np.uint64(16), np.uint64(32), np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)

LEAST = 16
"""What has fewer n-grams than this is judged as if it had so many: a few words alone say little."""


class Occurrences(NamedTuple):
    """N-grams of a text by number and place, ascending; none twice with the same first segment.

    ``grams`` are the numbers, ``places`` what ``places_of`` makes of where they stand.
    """

    grams: Places
    places: Packed


class Passage(NamedTuple):
    """A passage's score, in units of weights, and its segments: the first, and how many."""

    score: float
    first: int
    length: int


def places_of(firsts: Places, lasts: Places, befores: Places) -> Packed:
    """Return places as one number each, whose 16 lowest bits are free.

    ``firsts`` and ``lasts`` are the segments that n-grams begin and end in, below 65,535; ``befores`` those that the
    occurrence before of the same n-gram begins in, -1 for none.
    """
    packed: Packed = ((firsts << 32 | lasts << 16 | (befores + 1)).astype(np.uint64)) << _16
    return packed


def spans_of(places: Packed) -> tuple[Places, Places]:
    """Return the segments that n-grams at some places begin and end in."""
    spans = (places >> _32).astype(np.int64)
    return spans >> 16, spans & 0xFFFF


def occurrences_of(grams: npt.NDArray[np.integer[Any]], firsts: Places, lasts: Places) -> Occurrences:
    """Return n-grams, by numbers below 2^32, as occurrences."""
    # One number each, in the order of n-gram, first and last segment: sorting numbers is much faster than rows.
    ordered = np.sort(grams.astype(np.uint64) << _32 | (firsts << 16 | lasts).astype(np.uint64))
    # What begins in the same segment as the one before adds nothing to any passage.
    beginnings = ordered >> _16
    kept = np.ones(len(ordered), np.bool_)
    np.not_equal(beginnings[1:], beginnings[:-1], out=kept[1:])
    ordered = ordered[kept]
    numbers = (ordered >> _32).astype(np.int64)
    places = (ordered & _32_BITS).astype(np.int64)
    firsts, lasts = places >> 16, places & 0xFFFF
    befores = np.full(len(ordered), -1, np.int64)
    np.copyto(befores[1:], firsts[:-1], where=numbers[1:] == numbers[:-1])
    return Occurrences(numbers, places_of(firsts, lasts, befores))


def worst_passage(weights: npt.NDArray[np.int32], found: Occurrences, segments: int) -> Passage:
    """Return the passage of the highest score, the shortest and first of equals.

    ``weights`` are by n-gram, of 16 bits each; scores come without a bias. There is always one: a text without n-grams
    scores 0.
    """
    counted = _counted(weights, found)
    lengths = np.array(lengths_of(segments))
    # So many lengths at once that what is computed of them stays small: of a short text, most of it is the calls.
    step = max(1, _AT_ONCE // (len(counted.values) + segments + 1))
    best = Passage(-np.inf, 0, 1)
    for begin in range(0, len(lengths), step):
        some = lengths[begin : begin + step]
        scores = _scores(counted, some, segments)
        place = int(scores.argmax())
        if scores[place] > best.score:
            number, first = divmod(place, segments + 1)
            best = Passage(float(scores[place]), first, int(some[number]))
    return best


def lengths_of(segments: int) -> tuple[int, ...]:
    """Return the lengths of the passages of a text of so many segments, ascending; the last is the whole of it."""
    return (*(length for length in LENGTHS if length < segments), segments)


class _Counted(NamedTuple):
    """The n-grams of each place, as one: in ``values`` the sum of their weights, and ``_UNIT`` for each.

    Most n-grams of a text stand where many others do.
    """

    firsts: Places
    lasts: Places
    opens: Places
    values: npt.NDArray[np.float64]


def _counted(weights: npt.NDArray[np.int32], found: Occurrences) -> _Counted:
    # By place and weight, as one number each: the weights come along where they are sorted.
    ordered = np.sort(found.places | (weights[found.grams] + _MIDDLE).astype(np.uint64))
    places = ordered >> _16
    begins = np.ones(len(places), np.bool_)
    np.not_equal(places[1:], places[:-1], out=begins[1:])
    at = np.flatnonzero(begins)
    values = (ordered & _16_BITS).astype(np.float64) + (_UNIT - _MIDDLE)
    sums = np.add.reduceat(values, at) if len(at) else values
    return _Counted(*spans_of(ordered[at]), (places[at] & _16_BITS).astype(np.int64), sums)


def _scores(counted: _Counted, lengths: Places, segments: int) -> npt.NDArray[np.float64]:
    """Return the scores of the passages of some lengths by their first segment; a segment more than there are each."""
    width, size = segments + 1, (segments + 1) * len(lengths)
    rows = np.arange(len(lengths))[:, None] * width
    begins = segments + 1 - lengths[:, None]
    # Passages begin from ``low`` up to before ``behind``; none do where these are the same.
    behind = np.minimum(counted.firsts + 1, begins)
    low = np.minimum(np.maximum(counted.opens, counted.lasts + 1 - lengths[:, None]), behind)
    values = np.tile(counted.values, len(lengths))
    # Whatever is added in a row is taken away in it: one running sum serves all.
    changes = np.bincount((low + rows).ravel(), values, size) - np.bincount((behind + rows).ravel(), values, size)
    totals = np.cumsum(changes)
    sizes = np.rint(totals / _UNIT)
    scores: npt.NDArray[np.float64] = (totals - sizes * _UNIT) / np.sqrt(np.maximum(sizes, LEAST))
    scores[(np.arange(width) >= begins).ravel()] = -np.inf
    return scores
