"""Fitting a judge, a linear model of n-grams that scores passages, and its threshold, from labelled rows.

The labels do not say which passage of a text is the attack. So the fit goes in rounds. The first reads texts as wholes;
each further round adds, for every row, the passage with the highest score in the round before. In an attack that is the
attack itself; in a harmless text it is the passage that would raise a false alarm, since the worst passage decides.

The threshold is the lowest one that keeps false alarms among held-out rows within the recipe's shares. For this, each
source is judged by a model that was trained neither on it nor on rows that quote it.
"""

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.judge.model import Model
from actors.contract.text.judge.passages import worst_passage
from actors.contract.text.judge.worst_passage import WEIGHT_UNIT, Table, read_anew
from deploy.training.augmented_rows import augmented
from deploy.training.labelled_corpus import Row, family_of, folds_of, rows_quoted_elsewhere, training_indices
from deploy.training.logistic_regression import fit_logistic
from deploy.training.ngrams import Flags, Grams, Indices, Numbers, Sample, grams_of, matrix_of, supported

FOLDS = 5
"""Into how many folds the sources are divided, which are held out in turn."""

# Weights of rows in training; 1 is that of a benign row or an attack of the corpus. Own rows are those that the project
# made or wrote; stressed ones are of the categories that the recipe stresses.
_HARD_BENIGN_WEIGHT = 3.0
_OWN_ROW_WEIGHT = 0.5
_STRESSED_WEIGHT = 12.0
_EVEN_SIZE = 40.0
"""Sources with more rows than this weigh less for each row, by the square root of their size."""

# Weights of samples, as shares of their row's weight.
_VIEW_WEIGHT = 0.5
"""The weight of a sample from a decoded view, which is a row's text with its encodings undone."""

_WORST_PASSAGE_WEIGHT = 0.7
_LATER_ATTACK_WEIGHT = 0.3
"""The weight of each piece of a long attack from the second round on, when its worst passage is a sample, too."""

_PIECE_SEGMENTS = 48
"""Segments (sentences, lines, table cells, JSON values) of a piece; the first round splits longer texts into pieces."""

_DRAWN_PASSAGES = 3
"""How many random passages of each harmless text are trained on."""

_STEPS, _LAST_STEPS = 30, 60
"""The most iterations of L-BFGS in a round, and in the last one."""


class Recipe(msgspec.Struct, frozen=True):
    """How a judge is trained.

    ``kind`` is its name: the first part of the model's name and of its file's name. ``without`` are categories left out
    of its training; ``stressed`` are those that get a higher weight. ``penalty`` is the weight of the squared norm of
    the coefficients (L2). ``rounds`` follow the first one. ``benign`` and ``hard`` are the shares of false alarms
    allowed among held-out benign rows, and among those that only look like attacks.
    """

    kind: str
    without: frozenset[str]
    penalty: float
    rounds: int
    benign: float
    hard: float
    stressed: frozenset[str] = frozenset()


class Prepared(msgspec.Struct, frozen=True, eq=False):
    """A corpus, its rows followed by those made from it, and what is computed from them once for all folds.

    ``folds`` has the fold of each corpus row; ``quotes`` the rows that share wording with a fold. A family is the
    sources of one project or collection (``family_of``), which are held out together. An n-gram must occur in
    several sources; ``support`` has for each of ``families`` how many sources it counts for. ``attack`` says whether
    a row is one.
    """

    corpus: Sequence[Row]
    rows: Sequence[Row]
    folds: Sequence[int]
    quotes: dict[int, set[int]]
    grams: Grams
    families: Sequence[str]
    support: Indices
    attack: Flags


def prepare(corpus: Sequence[Row], folds: int = FOLDS) -> Prepared:
    """Read a corpus, make the rows beside it, and collect the n-grams of all."""
    rows = [*corpus, *augmented(corpus)]
    families: dict[str, int] = {}
    numbers = [
        -1 if row.source.startswith("made:") else families.setdefault(family_of(row.source), len(families))
        for row in rows
    ]
    support = np.array([1 + name.startswith("authored:") for name in families])
    # Without the cache of ``read_text``, which would keep the latest of all these texts.
    texts = [read_anew(row.text) for row in rows]
    indices = folds_of(corpus, folds)
    return Prepared(
        corpus=corpus,
        rows=rows,
        folds=indices,
        quotes=rows_quoted_elsewhere(corpus, indices),
        grams=grams_of(texts, np.array(numbers), support),
        families=tuple(families),
        support=support,
        attack=np.array([row.attack for row in rows]),
    )


def fit(prepared: Prepared, recipe: Recipe, left_out: Collection[int] = ()) -> tuple[Table, float]:
    """Train on all folds except those left out; return the weights, times ``WEIGHT_UNIT`` and rounded, and the bias."""
    allowed = training_indices(prepared.rows, prepared.folds, left_out, prepared.quotes)
    indices = np.array([index for index in allowed if prepared.rows[index].category not in recipe.without])
    held = {family_of(prepared.corpus[index].source) for index, fold in enumerate(prepared.folds) if fold in left_out}
    # The n-grams that this training may use, and the column of each in its matrix; -1 for the others.
    kept = supported(prepared.grams, np.array([name not in held for name in prepared.families]), prepared.support)
    columns = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    weights = np.zeros(len(prepared.rows))
    stressed = np.array([prepared.rows[index].category in recipe.stressed for index in indices])
    weights[indices] = weights_of(prepared.rows, indices) * np.where(stressed, _STRESSED_WEIGHT, 1.0)
    # A unit is a row's text or one of its decoded views, see ``ngrams``.
    units = np.nonzero(weights[prepared.grams.rows])[0]
    samples = _first_samples(prepared, units, weights)
    theta: Numbers | None = None
    for round_number in range(recipe.rounds + 1):
        worst = [] if theta is None else _worst_passages(prepared, units, weights, columns, theta)
        if round_number == 1:
            samples = [_later_sample(prepared, sample) for sample in samples]
        is_last = round_number == recipe.rounds
        theta = _fit_samples(prepared, columns, [*samples, *worst], recipe, is_last=is_last, start=theta)
    assert theta is not None
    return Table(prepared.grams.keys[kept], np.rint(theta[:-1] * WEIGHT_UNIT).astype(np.int32)), float(theta[-1])


def scores_of(prepared: Prepared, table: Table, bias: float, indices: Collection[int]) -> dict[int, float]:
    """Return a table's log-odds of rows of a prepared corpus, as ``contract.text.judge.model.log_odds`` does."""
    grams = prepared.grams
    nearest = np.minimum(np.searchsorted(table.keys, grams.keys), len(table.keys) - 1)
    numbers = np.where(table.keys[nearest] == grams.keys, nearest, -1).astype(np.int32)
    wanted = set(indices)
    found: dict[int, float] = {}
    for unit, row in enumerate(grams.rows.tolist()):
        if row in wanted:
            worst = worst_passage(table.weights, grams.known(unit, numbers), int(grams.segments[unit]))
            found[row] = max(found.get(row, -np.inf), worst.score / WEIGHT_UNIT + bias)
    return found


def held_out_scores(prepared: Prepared, recipe: Recipe) -> Numbers:
    """Return the log-odds of every row of the corpus by a judge that was not trained on its source."""
    scores = np.zeros(len(prepared.corpus))
    for fold in sorted(set(prepared.folds)):
        indices = [index for index, number in enumerate(prepared.folds) if number == fold]
        table, bias = fit(prepared, recipe, [fold])
        for index, score in scores_of(prepared, table, bias, indices).items():
            scores[index] = score
    return scores


def threshold_of(corpus: Sequence[Row], scores: Numbers, recipe: Recipe) -> float:
    """Return the lowest threshold with which false alarms among rows stay within a recipe's shares."""
    labels = np.array([row.label for row in corpus])
    return max(
        _quantile(scores[labels == "benign"], recipe.benign), _quantile(scores[labels == "hard_benign"], recipe.hard)
    )


def train(prepared: Prepared, recipe: Recipe, scores: Numbers) -> Model:
    """Return the judge trained on the whole corpus, with its threshold from held-out ``scores``."""
    return Model(recipe.kind, *fit(prepared, recipe), threshold_of(prepared.corpus, scores, recipe))


def weights_of(rows: Sequence[Row], indices: Indices) -> Numbers:
    """Return the weight of each row: more for hard negatives, less for rows of large sources and for our own rows."""
    sizes: dict[str, int] = {}
    for index in indices.tolist():
        family = family_of(rows[index].source)
        sizes[family] = sizes.get(family, 0) + 1
    return np.array(
        [
            (_HARD_BENIGN_WEIGHT if row.label == "hard_benign" else 1.0)
            * (_OWN_ROW_WEIGHT if row.source.startswith(("made:", "authored:")) else 1.0)
            * float(np.sqrt(_EVEN_SIZE / max(sizes[family_of(row.source)], _EVEN_SIZE)))
            for row in (rows[index] for index in indices.tolist())
        ]
    )


def _first_samples(prepared: Prepared, units: Indices, weights: Numbers) -> list[Sample]:
    """Return whole texts, long ones in pieces, and some passages of harmless texts, drawn with a fixed seed."""
    grams, samples = prepared.grams, []
    generator = np.random.default_rng(1)
    for unit in units.tolist():
        row, size = int(grams.rows[unit]), int(grams.segments[unit])
        weight = float(weights[row]) * (1.0 if grams.is_text[unit] else _VIEW_WEIGHT)
        attack = bool(prepared.attack[row])
        pieces = range(0, max(size - _PIECE_SEGMENTS, 0) + 1, _PIECE_SEGMENTS)
        # A piece of an attack may be harmless, so that each counts for little; all pieces of a harmless text are.
        share = weight / (len(pieces) if attack else np.sqrt(len(pieces)))
        samples += [Sample(unit, first, min(size, _PIECE_SEGMENTS), share) for first in pieces]
        if not attack and size > 1:
            for _ in range(_DRAWN_PASSAGES):
                length = min(size, 2 ** int(generator.integers(0, 4)))
                first = int(generator.integers(0, size - length + 1))
                samples.append(Sample(unit, first, length, weight / _DRAWN_PASSAGES))
    return samples


def _later_sample(prepared: Prepared, sample: Sample) -> Sample:
    """Return a sample with its weight from the second round on: the pieces of a long attack then weigh less."""
    grams = prepared.grams
    if prepared.attack[grams.rows[sample.unit]] and grams.segments[sample.unit] > _PIECE_SEGMENTS:
        return sample._replace(weight=_LATER_ATTACK_WEIGHT * sample.weight)
    return sample


def _worst_passages(
    prepared: Prepared, units: Indices, weights: Numbers, columns: npt.NDArray[np.int32], theta: Numbers
) -> list[Sample]:
    """Return of each unit the passage that a model with the coefficients ``theta`` takes most for an attack."""
    grams, samples = prepared.grams, []
    rounded = np.rint(theta[:-1] * WEIGHT_UNIT).astype(np.int32)
    for unit in units.tolist():
        size = int(grams.segments[unit])
        worst = worst_passage(rounded, grams.known(unit, columns), size)
        if worst.length < size:
            samples.append(
                Sample(unit, worst.first, worst.length, _WORST_PASSAGE_WEIGHT * float(weights[grams.rows[unit]]))
            )
    return samples


def _fit_samples(
    prepared: Prepared,
    columns: npt.NDArray[np.int32],
    samples: Sequence[Sample],
    recipe: Recipe,
    *,
    is_last: bool,
    start: Numbers | None,
) -> Numbers:
    labels = prepared.attack[prepared.grams.rows[[sample.unit for sample in samples]]]
    return fit_logistic(
        matrix_of(prepared.grams, columns, samples),
        labels,
        np.array([sample.weight for sample in samples]),
        penalty=recipe.penalty,
        steps=_LAST_STEPS if is_last else _STEPS,
        start=start,
    )


def _quantile(scores: Numbers, share: float) -> float:
    """Return the lowest score that no more than ``share`` of all scores exceed."""
    return float(np.quantile(scores, 1.0 - share, method="higher")) if len(scores) else -np.inf
