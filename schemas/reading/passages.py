"""The worst passage of a text: every run of its segments, judged as a text of its own.

A passage is a run of successive segments (sentences, lines, cells, values), from one up to all of them. Its score is
the sum of the weights of its distinct n-grams over the root of how many they are, so that a long passage says no more
than a short one by being long. The text's score is that of its worst passage: what stands around it, how often it is
repeated and how long the text is lower nothing.

All passages of one length are counted at once: an n-gram counts in the passages that begin behind its occurrence
before, not later than it begins and not too early to reach its end. These are successive, so it is added where they
begin and taken away behind, and one running sum gives the totals. The work is a few passes over the n-grams for each
of the lengths, which are at most twenty. Sums are of whole numbers, hence exact in any order; what follows are square
roots, divisions and comparisons. Equal texts give equal bits on every machine.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
"""Segments of a passage; the longest passage is the whole text, however many it has."""

_AT_ONCE = 65_536
_16, _32, _LOW = np.uint64(16), np.uint64(32), np.uint64(0xFFFF)

LEAST = 16
"""What has fewer n-grams than this is judged as if it had so many: a few words alone say little."""


class Occurrences(NamedTuple):
    """N-grams of a text by number and place, ascending; none twice with the same first segment.

    Attributes:
        grams: The number of each.
        firsts: The segment it begins in.
        lasts: The segment it ends in.
        befores: The segment that the occurrence before it of the same n-gram begins in, -1 for none.
    """

    grams: Places
    firsts: Places
    lasts: Places
    befores: Places


class Passage(NamedTuple):
    """A passage's score, in units of weights, and its segments: the first, and how many."""

    score: float
    first: int
    length: int


def occurrences_of(grams: npt.NDArray[np.integer[Any]], firsts: Places, lasts: Places) -> Occurrences:
    """Return n-grams as occurrences: by their numbers below 2^32, and segments below 2^16."""
    # One number each, in the order of n-gram, first and last segment: sorting numbers is much faster than rows.
    ordered = np.sort(grams.astype(np.uint64) << _32 | firsts.astype(np.uint64) << _16 | lasts.astype(np.uint64))
    # What begins in the same segment as the one before adds nothing to any passage.
    beginnings = ordered >> _16
    kept = np.ones(len(ordered), np.bool_)
    np.not_equal(beginnings[1:], beginnings[:-1], out=kept[1:])
    ordered = ordered[kept]
    numbers = (ordered >> _32).astype(np.int64)
    begins = ((ordered >> _16) & _LOW).astype(np.int64)
    befores = np.full(len(ordered), -1, np.int64)
    np.copyto(befores[1:], begins[:-1], where=numbers[1:] == numbers[:-1])
    return Occurrences(numbers, begins, (ordered & _LOW).astype(np.int64), befores)


def worst_passage(weights: npt.NDArray[np.int32], found: Occurrences, segments: int) -> Passage:
    """Return the passage of the highest score, the shortest and first of equals.

    ``weights`` are by n-gram; scores come without a bias. There is always one: a text without n-grams scores 0.
    """
    values = weights[found.grams].astype(np.float64)
    lengths = np.array(lengths_of(segments))
    # So many lengths at once that what is computed of them stays small: of a short text, most of it is the calls.
    step = max(1, _AT_ONCE // (len(values) + segments + 1))
    best = Passage(-np.inf, 0, 1)
    for begin in range(0, len(lengths), step):
        some = lengths[begin : begin + step]
        scores = _scores(found, values, some, segments)
        place = int(scores.argmax())
        if scores[place] > best.score:
            number, first = divmod(place, segments + 1)
            best = Passage(float(scores[place]), first, int(some[number]))
    return best


def lengths_of(segments: int) -> tuple[int, ...]:
    """Return the lengths of the passages of a text of so many segments, ascending; the last is the whole of it."""
    return (*(length for length in LENGTHS if length < segments), segments)


def _scores(
    found: Occurrences, values: npt.NDArray[np.float64], lengths: Places, segments: int
) -> npt.NDArray[np.float64]:
    """Return the scores of the passages of some lengths by their first segment; a segment more than there are each."""
    width = segments + 1
    rows = np.arange(len(lengths))[:, None] * width
    begins = segments + 1 - lengths[:, None]
    # Passages begin from ``low`` up to before ``behind``; none do where these are the same.
    behind = np.minimum(found.firsts + 1, begins)
    low = np.minimum(np.maximum(found.befores + 1, found.lasts + 1 - lengths[:, None]), behind)
    low, behind = (low + rows).ravel(), (behind + rows).ravel()
    repeated = np.tile(values, len(lengths))
    size = width * len(lengths)
    # Whatever is added in a row is taken away in it: one running sum serves all.
    totals = np.cumsum(np.bincount(low, repeated, size) - np.bincount(behind, repeated, size))
    sizes = np.cumsum(np.bincount(low, None, size) - np.bincount(behind, None, size))
    scores: npt.NDArray[np.float64] = totals / np.sqrt(np.maximum(sizes, LEAST))
    scores[(np.arange(width) >= begins).ravel()] = -np.inf
    return scores
