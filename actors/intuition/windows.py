"""Passages of a text: where in it a motif may be hidden among other words.

The similarity of a short motif to a long text that contains it is small by definition: most of the text is not the
motif. So every run of up to some number of successive phrases is compared as a text of its own, with its own
begin and end marks. A motif that stands in the text as whole phrases, in a document or behind a polite opening, has its
full similarity with one of these runs.

Nearly all runs are ruled out at once, by counting their shingles. A precedent of m elements is more similar than t to a
run of n only if m < n / t^2; with K shingles that a precedent of such a size holds (the situation's type counted in)
and U that none does, the similarity is at most sqrt(K / (K + U)). What is left is compared exactly, the most promising
runs first, :data:`MOST_COMPARED` of them at most.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.intuition.index import NONE, Hashes
from actors.intuition.library import Library
from actors.intuition.reading import Reading
from actors.intuition.signature import MOST_WORDS, closing_shingles, opening_shingles, shingles_of

Places = npt.NDArray[np.int64]

MOST_COMPARED = 1024
"""Runs of a text that are compared exactly."""


class Passage(NamedTuple):
    """A run of phrases: its words' hashes, and a bound on its similarity to any precedent."""

    words: Hashes
    bound: float


class _Counts(NamedTuple):
    """Sums up to each shingle of the text, and per phrase how many of the two shingles at each edge are held."""

    held: Places
    others: Places
    openings: Places
    closings: Places


class _Text:
    """A text's shingles, and the smallest precedents that hold them."""

    def __init__(self, library: Library, reading: Reading) -> None:
        words, phrases = reading.words, reading.phrases
        begins, lasts = phrases[:-1], phrases[1:] - 1
        opening = opening_shingles(words[begins], words[np.minimum(begins + 1, len(words) - 1)])
        closing = closing_shingles(words[np.maximum(lasts - 1, 0)], words[lasts])
        # Runs of two words have no shingle without a mark; a word more lets them be counted like the others.
        inner = shingles_of(np.concatenate((words, words[:1]))) if len(words) > 1 else words[:0]
        self._inner = library.smallest(inner)
        self._openings = [library.smallest(each) for each in opening]
        self._closings = [library.smallest(each) for each in closing]
        # Repetitions within a run count once; counting each shingle where the text first has it counts none twice.
        self._first = np.zeros(len(inner), np.bool_)
        self._first[np.unique(inner, return_index=True)[1]] = True

    def counts(self, largest: int) -> _Counts:
        """Count the shingles that a precedent of at most ``largest`` shingles holds."""
        held = self._inner <= largest
        return _Counts(
            held=_sums(held),
            others=_sums(~held & self._first),
            openings=(self._openings[0] <= largest).astype(np.int64) + (self._openings[1] <= largest),
            closings=(self._closings[0] <= largest).astype(np.int64) + (self._closings[1] <= largest),
        )


def passages(
    library: Library, reading: Reading, longest: int, fewest_words: int, threshold: float
) -> Iterator[Passage]:
    """Yield the runs of up to ``longest`` phrases that may be more similar than ``threshold`` to a precedent.

    The most promising come first. Runs of fewer than ``fewest_words`` words (2 at least) are too common to mean
    anything; the run of all phrases is the text itself, and is not among them.
    """
    if len(reading.phrases) < 3 or not longest:
        return
    first, length = _runs(reading, longest, max(fewest_words, 2))
    start, end = reading.phrases[first], reading.phrases[first + length]
    bounds = _bounds(_Text(library, reading), start, end, first, length, threshold)
    chosen = np.flatnonzero(bounds > threshold)
    # Stable: of equally promising runs the shorter ones, then the earlier ones.
    chosen = chosen[np.argsort(-bounds[chosen], kind="stable")][:MOST_COMPARED]
    for at in chosen.tolist():
        yield Passage(reading.words[start[at] : end[at]], float(bounds[at]))


def _runs(reading: Reading, longest: int, fewest_words: int) -> tuple[Places, Places]:
    """Return first phrase and length of every run that is long enough to count and short enough to have a signature."""
    count = len(reading.phrases) - 1
    lengths = range(1, min(longest, count - 1) + 1)
    first = np.concatenate([np.arange(count - length + 1) for length in lengths])
    length = np.repeat(lengths, [count - length + 1 for length in lengths])
    words = reading.phrases[first + length] - reading.phrases[first]
    fits = (words >= fewest_words) & (words <= MOST_WORDS)
    return first[fits], length[fits]


def _bounds(
    text: _Text, start: Places, end: Places, first: Places, length: Places, threshold: float
) -> npt.NDArray[np.float64]:
    """Return what the similarity of each run to a precedent is at most, or less where that is below the threshold."""
    # A run of n words has at most n + 2 shingles. Sizes are counted in powers of two, so that the text is counted a
    # few times and not once for each size of run.
    largest = np.minimum((end - start + 3) / max(threshold * threshold, 1e-9), NONE - 1)
    levels = np.ceil(np.log2(largest)).astype(np.int64)
    bounds = np.zeros(len(start))
    for level in np.unique(levels).tolist():
        of_level = levels == level
        begin, finish, phrase = start[of_level], end[of_level], first[of_level]
        counts = text.counts(min(2**level, NONE - 1))
        edges = counts.openings[phrase] + counts.closings[phrase + length[of_level] - 1]
        held = counts.held[finish - 2] - counts.held[begin] + edges + 1
        others = counts.others[finish - 2] - counts.others[begin] + 4 - edges
        bounds[of_level] = np.sqrt(held / (held + others))
    return bounds


def _sums(flags: npt.NDArray[np.bool_]) -> Places:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(flags)))
