"""What a text and its decoded views say, by n-grams, views and conjunctions, as one row of numbers for a judgement.

Sums are taken over whole numbers, so that they do not depend on their order; what follows are divisions, square roots
and comparisons, which are exact everywhere. Equal texts give equal bits on every machine.
"""

from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.decoding import read_of
from schemas.reading.conjunctions import conjunction_names, conjunctions_in
from schemas.reading.excerpt import excerpt_of
from schemas.reading.features import Keys, Reading, read
from schemas.reading.views import KINDS, View, read_views
from schemas.unread import DECIMALS

Numbers = npt.NDArray[np.float64]

WEIGHT_UNIT = 1024.0
"""N-gram weights are whole multiples of one over this."""

_SIEVED = np.uint32(12)
"""Bits of a key that a first look leaves out: the table of the others has a million entries."""

_NO_EVIDENCE = -6.0
_HOT, _WARM = 0.0, -1.0

SEGMENT_NAMES = ("first", "second", "top_three", "top_eight", "mean", "hot", "warm", "contrast", "hot_share", "count")
"""What is kept of the scores of a text's segments, highest first."""


class Table(msgspec.Struct, frozen=True, eq=False):
    """Weights by n-gram: ``keys`` ascending, never empty; ``whole`` for the text as a whole, ``part`` for a segment."""

    keys: Keys
    whole: npt.NDArray[np.int32]
    part: npt.NDArray[np.int32]
    whole_bias: float
    part_bias: float


class Text(msgspec.Struct, frozen=True, eq=False):
    """A text and its decoded views, read.

    ``unread`` counts what should have been read and was not: characters around telling words, of decoded views, and
    tokens. ``shown`` counts the characters that were.
    """

    readings: tuple[Reading, ...]
    views: tuple[View, ...]
    shown: int = 0
    unread: int = 0

    @property
    def tokens(self) -> int:
        """How many tokens the text itself has."""
        return len(self.readings[0].kinds)


@lru_cache(maxsize=32)
def read_text(text: str) -> Text:
    """Read a text of any length, and what it says once decoded; the work is bounded.

    Appraisal and intuition read the same texts one after the other: the latest are read once.
    """
    shown, unread = excerpt_of(text)
    views = read_views(shown)
    known = {view.text for view in views.found}
    readings = (
        read(shown),
        *(read(view.text) for view in views.found),
        *(read(said) for said in read_of(shown) if said not in known),
    )
    unread += views.unread + sum(reading.unread for reading in readings)
    return Text(readings, views.found, len(shown), unread)


def unread_share(read: int, unread: int) -> float:
    """Return how much of what should have been read was not, from 0 to 1; in characters."""
    return round(unread / (read + unread), DECIMALS) if unread > 0 else 0.0


def evidence_names() -> tuple[str, ...]:
    """Return the names of the numbers that ``evidence`` gives, in order."""
    return (
        "whole",
        *(f"segment:{name}" for name in SEGMENT_NAMES),
        *(f"view:{kind}" for kind in KINDS),
        "view:any",
        *conjunction_names(),
    )


def known(table: Table, reading: Reading) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the places in the table of a reading's n-grams that it knows, and the segment of each."""
    # Most n-grams are none of the table's, and nearly all of these are told by their first bits alone.
    likely = np.nonzero(_sieve(table)[reading.keys >> _SIEVED])[0]
    keys = reading.keys[likely]
    spots = np.searchsorted(table.keys, keys)
    right = table.keys[np.minimum(spots, len(table.keys) - 1)] == keys
    found = likely[right]
    segments = np.searchsorted(reading.starts, reading.places[found], side="right") - 1
    return spots[right].astype(np.int64), segments.astype(np.int64)


@lru_cache(maxsize=8)
def _sieve(table: Table) -> npt.NDArray[np.bool_]:
    begins = np.zeros(1 << (32 - int(_SIEVED)), dtype=np.bool_)
    begins[table.keys >> _SIEVED] = True
    return begins


def evidence(table: Table, text: Text) -> Numbers:
    """Return the numbers of ``evidence_names`` for a text; of a text and its views the stronger counts."""
    rows = [known(table, reading) for reading in text.readings]
    whole = _whole(table, _distinct(np.concatenate([keys for keys, _ in rows])))
    parts = np.concatenate(
        [_parts(table, keys, segments, reading) for (keys, segments), reading in zip(rows, text.readings, strict=True)]
    )
    return np.concatenate([[whole], segment_numbers(parts), sign_numbers(text)])


@lru_cache(maxsize=8)
def sign_numbers(text: Text) -> Numbers:
    """Return the evidence that needs no weights: which views a text has, and which conjunctions it holds.

    It is the same for every model, and several judge a text one after the other. Not to be written to.
    """
    kinds = {view.kind for view in text.views}
    signs = np.max([conjunctions_in(reading.kinds) for reading in text.readings], axis=0)
    return np.concatenate([[float(kind in kinds) for kind in KINDS], [float(bool(kinds))], signs])


def segment_numbers(scores: Numbers) -> Numbers:
    """Return the numbers of ``SEGMENT_NAMES`` for the scores of segments."""
    ranked = np.sort(scores)[::-1]
    hot = float((ranked > _HOT).sum())
    return np.array(
        [
            ranked[0],
            ranked[1] if len(ranked) > 1 else _NO_EVIDENCE,
            _mean(ranked[:3]),
            _mean(ranked[:8]),
            _mean(ranked),
            np.sqrt(hot),
            np.sqrt(float((ranked > _WARM).sum())),
            ranked[0] - ranked[len(ranked) // 2],
            hot / len(ranked),
            np.sqrt(float(len(ranked))),
        ]
    )


def _mean(ranked: Numbers) -> float:
    # In whole units, so that the sum is exact whatever its order.
    return float(np.rint(ranked * WEIGHT_UNIT).astype(np.int64).sum()) / WEIGHT_UNIT / len(ranked)


def _distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return numbers once each, ascending: ``np.unique`` for the few hundred of a text, in a tenth of its time."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _whole(table: Table, keys: npt.NDArray[np.int64]) -> float:
    total = int(table.whole[keys].sum(dtype=np.int64))
    return float(total / WEIGHT_UNIT / np.sqrt(max(len(keys), 1)) + table.whole_bias)


def _parts(table: Table, keys: npt.NDArray[np.int64], segments: npt.NDArray[np.int64], reading: Reading) -> Numbers:
    count = len(reading.starts)
    pairs = _distinct(segments * len(table.keys) + keys)
    of, distinct = pairs // max(len(table.keys), 1), pairs % max(len(table.keys), 1)
    sizes = np.bincount(of, minlength=count)
    totals = np.zeros(count, dtype=np.int64)
    np.add.at(totals, of, table.part[distinct])
    return totals / WEIGHT_UNIT / np.sqrt(np.maximum(sizes, 4)) + table.part_bias
