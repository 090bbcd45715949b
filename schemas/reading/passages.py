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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
"""Segments of a passage; the longest passage is the whole text, however many it has."""

LEAST = 16
"""What has fewer n-grams than this is judged as if it had so many: a few words alone say little."""


class Occurrences(NamedTuple):
    """N-grams of a text: the number of each, and the segments it begins and ends in."""

    grams: Places
    firsts: Places
    lasts: Places


class Passage(NamedTuple):
    """A passage's score, in units of weights, and its segments: the first, and how many."""

    score: float
    first: int
    length: int


def worst_passage(weights: npt.NDArray[np.int32], found: Occurrences, segments: int) -> Passage:
    """Return the passage of the highest score, the shortest and first of equals.

    ``weights`` are by n-gram; scores come without a bias. There is always one: a text without n-grams scores 0.
    """
    firsts, lasts, befores, values = _distinct(weights, found)
    best = Passage(-np.inf, 0, 1)
    for length in lengths_of(segments):
        begins = segments - length + 1
        low = np.maximum(befores + 1, lasts - (length - 1))
        high = np.minimum(firsts, begins - 1)
        counted = low <= high
        low, behind, added = low[counted], high[counted] + 1, values[counted]
        totals = _running(low, behind, begins, added)
        sizes = _running(low, behind, begins, None)
        scores = totals / np.sqrt(np.maximum(sizes, LEAST))
        place = int(scores.argmax())
        if scores[place] > best.score:
            best = Passage(float(scores[place]), place, length)
    return best


def lengths_of(segments: int) -> tuple[int, ...]:
    """Return the lengths of the passages of a text of so many segments, ascending; the last is the whole of it."""
    return (*(length for length in LENGTHS if length < segments), segments)


def _distinct(
    weights: npt.NDArray[np.int32], found: Occurrences
) -> tuple[Places, Places, Places, npt.NDArray[np.float64]]:
    """Return first and last segments of occurrences, the first segment of each one's occurrence before, and weights."""
    # One number each, in the order of n-gram, first and last segment: sorting numbers is much faster than rows.
    ordered = np.sort(found.grams << 32 | found.firsts << 16 | found.lasts)
    grams, firsts, lasts = ordered >> 32, (ordered >> 16) & 0xFFFF, ordered & 0xFFFF
    befores = np.full(len(ordered), -1, np.int64)
    again = grams[1:] == grams[:-1]
    befores[1:][again] = firsts[:-1][again]
    # What begins in the same segment as the one before adds nothing to any passage.
    kept = befores != firsts
    return firsts[kept], lasts[kept], befores[kept], weights[grams[kept]].astype(np.float64)


def _running(
    low: Places, behind: Places, begins: int, values: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64]:
    changes = np.bincount(low, values, begins + 1) - np.bincount(behind, values, begins + 1)
    totals: npt.NDArray[np.float64] = np.cumsum(changes[:begins])
    return totals
