"""The n-grams of all training rows, and passages of them as the rows of a matrix.

A row of the corpus has one *unit* for its text and one for each decoded view of it (the ``readings`` of a text). A unit
keeps its n-grams, each with the segments (sentences, lines) in which it begins and ends:
``actors.contract.text.judge.passages`` scores passages by these.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse

from actors.contract.text.judge.passages import MIN_NGRAMS, Occurrences, packed_positions, spans_of
from actors.contract.text.judge.worst_passage import ReadText

Indices = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

LEAST_SOURCES = 3
"""An n-gram is used if at least this many sources have it: what one source alone says does not generalise."""

LEAST_ROWS = 6
"""An n-gram is used if at least this many rows have it."""


class Sample(NamedTuple):
    """A passage to train on: its unit, its first segment, the number of its segments, and its weight."""

    unit: int
    first: int
    length: int
    weight: float


class Uses(msgspec.Struct, frozen=True, eq=False):
    """How many rows of each source have each n-gram; rows made from others are not counted.

    Each index is a pair of an n-gram and a source: ``rows`` is the number of rows of ``sources`` that have ``grams``.
    """

    grams: npt.NDArray[np.int32]
    sources: npt.NDArray[np.int32]
    rows: Indices


class Grams(msgspec.Struct, frozen=True, eq=False):
    """The n-grams of rows that a training may use, whichever folds it leaves out.

    ``keys`` are their hashes, ascending. The occurrences, one in each element of ``grams``, ``firsts``, ``lasts`` and
    ``befores``, are sorted by unit, n-gram and segment: ``firsts`` and ``lasts`` have the segments in which an
    occurrence begins and ends, ``befores`` that in which the previous one of the same n-gram in the unit begins, or -1.
    Unit ``i`` has the occurrences from ``starts[i]`` on, ``segments[i]`` segments, and belongs to row ``rows[i]``;
    ``is_text[i]`` says whether it is a row's text and not a view of it.
    """

    keys: npt.NDArray[np.uint32]
    grams: npt.NDArray[np.int32]
    firsts: npt.NDArray[np.int16]
    lasts: npt.NDArray[np.int16]
    befores: npt.NDArray[np.int16]
    starts: Indices
    segments: Indices
    rows: Indices
    is_text: Flags
    uses: Uses

    def known(self, unit: int, numbers: npt.NDArray[np.int32]) -> Occurrences:
        """Return the occurrences of a unit's n-grams that a table of weights has.

        ``numbers`` is, for each of ``keys``, its number in the table, or -1.
        """
        span = slice(int(self.starts[unit]), int(self.starts[unit + 1]))
        grams = numbers[self.grams[span]]
        kept = grams >= 0
        firsts, lasts, befores = (each[span][kept].astype(np.int64) for each in (self.firsts, self.lasts, self.befores))
        return Occurrences(grams[kept].astype(np.int64), packed_positions(firsts, lasts, befores))


def grams_of(texts: Sequence[ReadText], sources: Indices, weights: Indices) -> Grams:
    """Collect the n-grams of texts and of their views.

    ``sources`` has the number of each text's source, -1 for texts made from others; ``weights`` is as for
    ``supported``.
    """
    readings = [reading for text in texts for reading in text.readings]
    sizes = [len(reading.found.grams) for reading in readings]
    units = np.repeat(np.arange(len(readings), dtype=np.int32), sizes)
    rows = np.repeat(np.arange(len(texts)), [len(text.readings) for text in texts])
    keys, grams = np.unique(
        np.concatenate([reading.found.grams for reading in readings]).astype(np.uint32), return_inverse=True
    )
    uses = _uses(grams.astype(np.int64), rows[units], sources)
    kept = _supported(uses, len(keys), weights)
    numbers = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    used = kept[uses.grams]
    found = numbers[grams]
    known = found >= 0
    spans = [spans_of(reading.found.positions) for reading in readings]
    firsts = np.concatenate([span[0].astype(np.int16) for span in spans])[known]
    lasts = np.concatenate([span[1].astype(np.int16) for span in spans])[known]
    found, units = found[known], units[known]
    order = np.lexsort((lasts, firsts, found, units))
    found, units, firsts, lasts = found[order], units[order], firsts[order], lasts[order]
    befores = np.full(len(found), -1, dtype=np.int16)
    repeated = (found[1:] == found[:-1]) & (units[1:] == units[:-1])
    befores[1:][repeated] = firsts[:-1][repeated]
    return Grams(
        keys=keys[kept],
        grams=found,
        firsts=firsts,
        lasts=lasts,
        befores=befores,
        starts=np.searchsorted(units, np.arange(len(readings) + 1)),
        segments=np.array([reading.segments for reading in readings]),
        rows=rows,
        is_text=np.append(True, rows[1:] != rows[:-1]),
        uses=Uses(numbers[uses.grams[used]], uses.sources[used], uses.rows[used]),
    )


def _uses(grams: Indices, rows: Indices, sources: Indices) -> Uses:
    pairs = np.unique(grams * len(sources) + rows)
    grams, source_of_pair = pairs // len(sources), sources[pairs % len(sources)]
    original = source_of_pair >= 0
    # An n-gram and a source in one number: the source in the lowest 16 bits.
    counted, rows = np.unique(grams[original] << 16 | source_of_pair[original], return_counts=True)
    return Uses((counted >> 16).astype(np.int32), (counted & 0xFFFF).astype(np.int32), rows)


def supported(grams: Grams, sources: Flags, weights: Indices) -> Flags:
    """Return which n-grams occur in enough rows of enough of the allowed ``sources``.

    ``weights`` has for how many sources each one counts: 2 for phrases written for this project, where every word has a
    purpose, so one more source is enough; 1 for others.
    """
    uses = grams.uses
    allowed = sources[uses.sources]
    return _supported(Uses(uses.grams[allowed], uses.sources[allowed], uses.rows[allowed]), len(grams.keys), weights)


def _supported(uses: Uses, count: int, weights: Indices) -> Flags:
    # ``spread`` is the number of sources that have an n-gram, each counted by its weight.
    spread = np.bincount(uses.grams, weights[uses.sources], count)
    enough: Flags = (spread >= LEAST_SOURCES) & (np.bincount(uses.grams, uses.rows, count) >= LEAST_ROWS)
    return enough


def matrix_of(grams: Grams, numbers: npt.NDArray[np.int32], samples: Sequence[Sample]) -> sparse.csr_matrix:
    """Return passages as rows of a matrix, scaled as ``actors.contract.text.judge.passages`` scales their sums.

    Each n-gram of a passage counts one over the square root of their number (``MIN_NGRAMS`` at least), so that a long
    passage does not count more than a short one.
    ``numbers`` is the column of each of ``grams.keys``, or -1 for none.
    """
    found = []
    for unit, first, length, _ in samples:
        span = slice(int(grams.starts[unit]), int(grams.starts[unit + 1]))
        # An n-gram counts once: where it occurs within the passage, and not before in it.
        within = (grams.firsts[span] >= first) & (grams.lasts[span] < first + length) & (grams.befores[span] < first)
        columns = numbers[grams.grams[span][within]]
        found.append(columns[columns >= 0])
    sizes = np.array([len(columns) for columns in found])
    values = np.repeat((1.0 / np.sqrt(np.maximum(sizes, MIN_NGRAMS))).astype(np.float32), sizes)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return sparse.csr_matrix((values, np.concatenate(found), ends), shape=(len(samples), int(numbers.max()) + 1))
