"""From labelled rows to a model: n-gram table, head and threshold, each fixed on training rows only.

The head and the threshold rest on what tables say of rows that they were not trained on: the training sources are split
in three, and each third is judged by a table of the other two. The threshold is the lowest that keeps the false alarms
among the corpus's own held-out rows within the recipe's shares.
"""

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from deploy.training.augment import augmented
from deploy.training.corpus import Row, folds_of, quoting, training_places
from deploy.training.grams import (
    Grams,
    Matrices,
    Numbers,
    Penalties,
    Places,
    fit_table,
    grams_of,
    matrices,
    supported,
    weights_of,
)
from deploy.training.linear import fit_logistic
from schemas.reading.evidence import WEIGHT_UNIT, Table, read_text, segment_numbers, sign_numbers
from schemas.reading.model import LONG_TEXT, Model

FOLDS = 10
"""Folds of sources that are held out in turn when the training is judged."""

SPLITS = 3
"""Folds of sources that thresholds are fixed on, in turn."""


class Recipe(msgspec.Struct, frozen=True):
    """What a model is to learn.

    ``without`` are categories left out of its training. ``benign`` and ``hard`` are the shares of false alarms allowed
    among held-out benign and hard benign training rows.
    """

    kind: str
    without: frozenset[str]
    penalties: Penalties
    benign: float
    hard: float


class Prepared(msgspec.Struct, frozen=True, eq=False):
    """A corpus, the rows made of it behind it, and all that is read of them once, whatever is held out later."""

    corpus: Sequence[Row]
    rows: Sequence[Row]
    folds: Sequence[int]
    quotes: dict[int, set[int]]
    grams: Grams
    signs: Numbers
    sources: Places
    written: npt.NDArray[np.bool_]
    attack: npt.NDArray[np.bool_]


def prepare(corpus: Sequence[Row], folds: int = FOLDS) -> Prepared:
    """Read a corpus and make its rows of our own."""
    rows = [*corpus, *augmented(corpus)]
    numbers: dict[str, int] = {}
    sources = [-1 if row.source.startswith("made:") else numbers.setdefault(row.source, len(numbers)) for row in rows]
    texts = [read_text(row.text) for row in rows]
    places = folds_of(corpus, folds)
    return Prepared(
        corpus=corpus,
        rows=rows,
        folds=places,
        quotes=quoting(corpus, places),
        grams=grams_of(texts),
        signs=np.stack([sign_numbers(text) for text in texts]),
        sources=np.array(sources),
        written=np.array([name.startswith("authored:") for name in numbers]),
        attack=np.array([row.attack for row in rows]),
    )


def fit(prepared: Prepared, recipe: Recipe, left_out: Collection[int] = ()) -> Model:
    """Train a model on all folds but those left out."""
    allowed = training_places(prepared.rows, prepared.folds, left_out, prepared.quotes)
    places = np.array([place for place in allowed if prepared.rows[place].category not in recipe.without])
    evidence = _held_out_evidence(prepared, recipe, places)
    weights = weights_of(prepared.rows, places)
    middle, spread = evidence.mean(axis=0), evidence.std(axis=0) + 0.01
    theta = fit_logistic((evidence - middle) / spread, prepared.attack[places], weights, penalty=5.0, steps=200)
    coefficients = theta[:-1] / spread
    bias = float(theta[-1] - coefficients @ middle)
    scores = evidence @ coefficients + bias
    threshold = _threshold(prepared, recipe, places, scores)
    table = _table(prepared, recipe, places)[1]
    return Model(
        recipe.kind,
        table,
        tuple(map(float, coefficients)),
        bias,
        threshold,
        max(threshold, _long_threshold(prepared, recipe, places, scores)),
    )


def log_odds_of(prepared: Prepared, model: Model, places: Places) -> Numbers:
    """Return what a model says of rows of a prepared corpus: the same as ``schemas.reading.model.log_odds``, faster."""
    built = matrices(prepared.grams, model.table.keys)
    found: Numbers = _evidence(prepared, built, model.table, places) @ np.array(model.coefficients) + model.bias
    return found


def _table(prepared: Prepared, recipe: Recipe, places: Places) -> tuple[Matrices, Table]:
    keys = supported(prepared.grams, places, prepared.sources, prepared.written)
    built = matrices(prepared.grams, keys)
    weights = weights_of(prepared.rows, places)
    return built, fit_table(prepared.grams, built, prepared.attack, places, weights, recipe.penalties)


def _held_out_evidence(prepared: Prepared, recipe: Recipe, places: Places) -> Numbers:
    corpus = len(prepared.corpus)
    split = np.array(
        [(prepared.folds[place] if place < corpus else number) % SPLITS for number, place in enumerate(places.tolist())]
    )
    evidence: Numbers | None = None
    for turn in range(SPLITS):
        built, table = _table(prepared, recipe, places[split != turn])
        judged = _evidence(prepared, built, table, places[split == turn])
        if evidence is None:
            evidence = np.zeros((len(places), judged.shape[1]))
        evidence[split == turn] = judged
    assert evidence is not None
    return evidence


def _evidence(prepared: Prepared, built: Matrices, table: Table, places: Places) -> Numbers:
    whole = built.by_row[places] @ (table.whole / WEIGHT_UNIT) + table.whole_bias
    parts = built.by_segment @ (table.part / WEIGHT_UNIT) + table.part_bias
    first = prepared.grams.first_segment
    segments = np.stack([segment_numbers(parts[first[place] : first[place + 1]]) for place in places])
    return np.concatenate([whole[:, None], segments, prepared.signs[places]], axis=1)


def _threshold(prepared: Prepared, recipe: Recipe, places: Places, scores: Numbers) -> float:
    labels = _labels(prepared, places)
    return max(
        _quantile(scores[labels == "benign"], recipe.benign), _quantile(scores[labels == "hard_benign"], recipe.hard)
    )


def _long_threshold(prepared: Prepared, recipe: Recipe, places: Places, scores: Numbers) -> float:
    labels = _labels(prepared, places)
    lengths = np.array([len(prepared.rows[place].text) for place in places])
    return _quantile(scores[np.isin(labels, ["benign", "hard_benign"]) & (lengths > LONG_TEXT)], 4 * recipe.benign)


def _labels(prepared: Prepared, places: Places) -> npt.NDArray[np.str_]:
    # Rows made of others say nothing about how often an alarm would be false.
    corpus = len(prepared.corpus)
    return np.array([prepared.rows[place].label if place < corpus else "made" for place in places])


def _quantile(scores: Numbers, share: float) -> float:
    return float(np.quantile(scores, 1.0 - share, method="higher")) if len(scores) else 0.0
