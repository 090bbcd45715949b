"""The n-grams of all training rows as matrices, and the two linear models over them.

``whole`` judges a text by its set of n-grams. ``part`` judges segments; which segments of a long attack carry it is not
labelled, so it is fitted in rounds: each keeps, of every attack, the segments that the round before found worst.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse

from deploy.training.corpus import Row
from deploy.training.linear import fit_logistic
from schemas.reading.evidence import WEIGHT_UNIT, Table, Text

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

LEAST_SOURCES = 3
"""An n-gram counts when this many sources use it: what one source alone says does not generalise."""

LEAST_ROWS = 5
_HARD = 3.0
_MADE = 0.5
_EVEN_SIZE = 40.0
_PART_ROUNDS = 2


class Distinct(msgspec.Struct, frozen=True, eq=False):
    """Distinct n-grams by owner: owner ``i`` has ``keys[starts[i]:starts[i + 1]]``, ascending."""

    keys: npt.NDArray[np.uint32]
    starts: Places

    def owners(self) -> Places:
        """Return the owner of each key."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class Grams(msgspec.Struct, frozen=True, eq=False):
    """The n-grams of rows and of their segments; row ``i`` has the segments from ``first_segment[i]`` on."""

    of_rows: Distinct
    of_segments: Distinct
    first_segment: Places


def grams_of(texts: Sequence[Text]) -> Grams:
    """Collect the n-grams of read texts, those of their views included."""
    by_row: list[npt.NDArray[np.uint32]] = []
    by_segment: list[npt.NDArray[np.uint32]] = []
    first = [0]
    for text in texts:
        by_row.append(np.unique(np.concatenate([reading.keys for reading in text.readings])))
        for reading in text.readings:
            segments = np.searchsorted(reading.starts, reading.places, side="right") - 1
            order = np.argsort(segments, kind="stable")
            cuts = np.searchsorted(segments[order], np.arange(1, len(reading.starts)))
            by_segment += [np.unique(keys) for keys in np.split(reading.keys[order], cuts)]
        first.append(len(by_segment))
    return Grams(_joined(by_row), _joined(by_segment), np.array(first))


def _joined(owned: Sequence[npt.NDArray[np.uint32]]) -> Distinct:
    return Distinct(np.concatenate(owned), np.concatenate([[0], np.cumsum([len(keys) for keys in owned])]))


def supported(grams: Grams, places: Places, sources: Places, written: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return the n-grams that enough rows and sources of those at ``places`` use.

    ``sources`` numbers the source of each row, -1 for rows made of others, which lend no support. ``written`` marks
    sources of our own phrases, by number: what stands there was put there for a reason, and one more source will do.
    """
    used = np.full(len(sources), -1, dtype=np.int64)
    used[places] = sources[places]
    source_of = used[grams.of_rows.owners()]
    real = source_of >= 0
    pairs, rows = np.unique(grams.of_rows.keys[real].astype(np.int64) << 16 | source_of[real], return_counts=True)
    keys, begin = np.unique(pairs >> 16, return_index=True)
    spread = np.add.reduceat(1 + written[pairs & 0xFFFF].astype(np.int64), begin)
    return keys[(spread >= LEAST_SOURCES) & (np.add.reduceat(rows, begin) >= LEAST_ROWS)].astype(np.uint32)


def weights_of(rows: Sequence[Row], places: Places) -> Numbers:
    """Return the weight of each row: hard negatives more, rows of large sources and made rows less."""
    sizes: dict[str, int] = {}
    for place in places.tolist():
        sizes[rows[place].source] = sizes.get(rows[place].source, 0) + 1
    return np.array(
        [
            (_HARD if row.label == "hard_benign" else 1.0)
            * (_MADE if row.source.startswith(("made:", "authored:")) else 1.0)
            * float(np.sqrt(_EVEN_SIZE / max(sizes[row.source], _EVEN_SIZE)))
            for row in (rows[place] for place in places.tolist())
        ]
    )


class Penalties(msgspec.Struct, frozen=True):
    """Penalties on the squared weights of the model of whole texts and of that of segments."""

    whole: float
    part: float


class Matrices(msgspec.Struct, frozen=True, eq=False):
    """The supported n-grams of all rows, by row and by segment, scaled as in ``schemas.reading.evidence``."""

    keys: npt.NDArray[np.uint32]
    by_row: sparse.csr_matrix
    by_segment: sparse.csr_matrix


def matrices(grams: Grams, keys: npt.NDArray[np.uint32]) -> Matrices:
    """Return the matrices of all rows for a vocabulary."""
    return Matrices(keys, _scaled(grams.of_rows, keys, 1), _scaled(grams.of_segments, keys, 4))


def _scaled(grams: Distinct, keys: npt.NDArray[np.uint32], least: int) -> sparse.csr_matrix:
    spots = np.minimum(np.searchsorted(keys, grams.keys), len(keys) - 1)
    kept = keys[spots] == grams.keys
    before = np.concatenate([[0], np.cumsum(kept)])
    starts = before[grams.starts]
    sizes = np.diff(starts)
    values = np.repeat(1.0 / np.sqrt(np.maximum(sizes, least)), sizes)
    return sparse.csr_matrix((values, spots[kept], starts), shape=(len(sizes), len(keys)))


def fit_table(
    grams: Grams,
    built: Matrices,
    attack: npt.NDArray[np.bool_],
    places: Places,
    weights: Numbers,
    penalties: Penalties,
) -> Table:
    """Fit both linear models on the rows at ``places`` (ascending), and round their weights to whole units."""
    whole = fit_logistic(built.by_row[places], attack[places], weights, penalty=penalties.whole, steps=50)
    part = _fit_part(grams, built, attack, places, weights, penalties)
    return Table(
        built.keys,
        np.rint(whole[:-1] * WEIGHT_UNIT).astype(np.int32),
        np.rint(part[:-1] * WEIGHT_UNIT).astype(np.int32),
        float(whole[-1]),
        float(part[-1]),
    )


def _fit_part(
    grams: Grams,
    built: Matrices,
    attack: npt.NDArray[np.bool_],
    places: Places,
    weights: Numbers,
    penalties: Penalties,
) -> Numbers:
    first = grams.first_segment
    counts = first[places + 1] - first[places]
    segments = np.concatenate([np.arange(first[place], first[place + 1]) for place in places])
    rows = built.by_segment[segments]
    labels = np.repeat(attack[places], counts)
    begin = np.concatenate([[0], np.cumsum(counts)])
    weighed = np.repeat(np.where(attack[places], weights / counts, weights / np.sqrt(counts)), counts)
    theta: Numbers | None = None
    for turn in range(_PART_ROUNDS + 1):
        used = weighed > 0
        theta = fit_logistic(rows[used], labels[used], weighed[used], penalty=penalties.part, steps=25, start=theta)
        if turn == _PART_ROUNDS:
            break
        scores = rows @ theta[:-1]
        for number in np.nonzero(attack[places])[0].tolist():
            span = slice(begin[number], begin[number + 1])
            kept = max(1, int(counts[number]) // 5)
            worst = np.argsort(-scores[span], kind="stable")[:kept]
            weighed[span] = 0.0
            weighed[begin[number] + worst] = weights[number] / kept
    assert theta is not None
    return theta
