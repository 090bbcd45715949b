"""Fitting a judge of passages to labelled rows, and its threshold to rows whose sources it was not trained on.

The labels do not say which passage of a text is the attack. So the fit goes in rounds. The first reads texts as wholes;
each further round adds, for every row, the passage that the previous round found worst. In an attack that is the attack
itself; in a harmless text it is the passage that would raise a false alarm, since the worst passage decides.

The threshold is the lowest one that keeps false alarms among held-out rows within the recipe's shares. For this, each
source is judged by a model that was trained neither on it nor on rows that quote it.
"""

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.judge.model import Model
from actors.contract.text.judge.passages import worst_passage
from actors.contract.text.judge.worst_passage import WEIGHT_UNIT, Table, read_text
from deploy.training.augmented_rows import augmented
from deploy.training.labelled_corpus import Row, family_of, folds_of, rows_quoted_elsewhere, training_places
from deploy.training.logistic_regression import fit_logistic
from deploy.training.ngrams import Flags, Grams, Numbers, Places, Sample, grams_of, matrix_of, supported

FOLDS = 5
"""Folds of sources that are held out in turn."""

_HARD = 3.0
_MADE = 0.5
_STRESSED = 12.0
_EVEN_SIZE = 40.0
_WHOLE = 48
"""Segments of the passages that longer texts are split into for the first round."""

_AGAIN = 0.3
"""What the passages of a long attack weigh once its worst one is known."""

_WORST = 0.7
_VIEW = 0.5
_STEPS, _LAST_STEPS = 30, 60
_DRAWN = 3


class Recipe(msgspec.Struct, frozen=True):
    """What a judge is to learn.

    ``without`` are categories left out of its training, ``stressed`` those that weigh more than the corpora would have
    them. ``benign`` and ``hard`` are the shares of false alarms allowed among held-out benign and
    hard benign rows.
    """

    kind: str
    without: frozenset[str]
    penalty: float
    rounds: int
    benign: float
    hard: float
    stressed: frozenset[str] = frozenset()


class Prepared(msgspec.Struct, frozen=True, eq=False):
    """A corpus, the rows made of it behind it, and all that is read of them once, whatever is held out later."""

    corpus: Sequence[Row]
    rows: Sequence[Row]
    folds: Sequence[int]
    quotes: dict[int, set[int]]
    grams: Grams
    families: Sequence[str]
    support: Places
    attack: Flags


def prepare(corpus: Sequence[Row], folds: int = FOLDS) -> Prepared:
    """Read a corpus and make its rows of our own."""
    rows = [*corpus, *augmented(corpus)]
    families: dict[str, int] = {}
    numbers = [
        -1 if row.source.startswith("made:") else families.setdefault(family_of(row.source), len(families))
        for row in rows
    ]
    support = np.array([1 + name.startswith("authored:") for name in families])
    texts = [read_text.__wrapped__(row.text) for row in rows]
    places = folds_of(corpus, folds)
    return Prepared(
        corpus=corpus,
        rows=rows,
        folds=places,
        quotes=rows_quoted_elsewhere(corpus, places),
        grams=grams_of(texts, np.array(numbers), support),
        families=tuple(families),
        support=support,
        attack=np.array([row.attack for row in rows]),
    )


def fit(prepared: Prepared, recipe: Recipe, left_out: Collection[int] = ()) -> tuple[Table, float]:
    """Train on all folds but those left out; return the table, with weights in whole units, and the bias."""
    allowed = training_places(prepared.rows, prepared.folds, left_out, prepared.quotes)
    places = np.array([place for place in allowed if prepared.rows[place].category not in recipe.without])
    held = {family_of(prepared.corpus[place].source) for place, fold in enumerate(prepared.folds) if fold in left_out}
    kept = supported(prepared.grams, np.array([name not in held for name in prepared.families]), prepared.support)
    numbers = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    weights = np.zeros(len(prepared.rows))
    stressed = np.array([prepared.rows[place].category in recipe.stressed for place in places])
    weights[places] = weights_of(prepared.rows, places) * np.where(stressed, _STRESSED, 1.0)
    units = np.nonzero(weights[prepared.grams.rows])[0]
    samples = _wholes(prepared, units, weights)
    theta: Numbers | None = None
    for turn in range(recipe.rounds + 1):
        worst = [] if theta is None else _worst(prepared, units, weights, numbers, theta)
        if turn == 1:
            samples = [_lighter(prepared, sample) for sample in samples]
        theta = _fitted(prepared, numbers, [*samples, *worst], recipe, last=turn == recipe.rounds, start=theta)
    assert theta is not None
    return Table(prepared.grams.keys[kept], np.rint(theta[:-1] * WEIGHT_UNIT).astype(np.int32)), float(theta[-1])


def scores_of(prepared: Prepared, table: Table, bias: float, places: Collection[int]) -> dict[int, float]:
    """Return what a table says of rows of a prepared corpus: the same as ``contract.text.judge.model.log_odds``."""
    grams = prepared.grams
    spots = np.minimum(np.searchsorted(table.keys, grams.keys), len(table.keys) - 1)
    numbers = np.where(table.keys[spots] == grams.keys, spots, -1).astype(np.int32)
    wanted = set(places)
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
        places = [place for place, number in enumerate(prepared.folds) if number == fold]
        table, bias = fit(prepared, recipe, [fold])
        for place, score in scores_of(prepared, table, bias, places).items():
            scores[place] = score
    return scores


def threshold_of(corpus: Sequence[Row], scores: Numbers, recipe: Recipe) -> float:
    """Return the lowest threshold that keeps false alarms among rows within a recipe's shares."""
    labels = np.array([row.label for row in corpus])
    return max(
        _quantile(scores[labels == "benign"], recipe.benign), _quantile(scores[labels == "hard_benign"], recipe.hard)
    )


def trained(prepared: Prepared, recipe: Recipe, scores: Numbers) -> Model:
    """Return the judge trained on the whole corpus, with its threshold from held-out ``scores``."""
    return Model(recipe.kind, *fit(prepared, recipe), threshold_of(prepared.corpus, scores, recipe))


def weights_of(rows: Sequence[Row], places: Places) -> Numbers:
    """Return the weight of each row: hard negatives more, rows of large sources and made rows less."""
    sizes: dict[str, int] = {}
    for place in places.tolist():
        family = family_of(rows[place].source)
        sizes[family] = sizes.get(family, 0) + 1
    return np.array(
        [
            (_HARD if row.label == "hard_benign" else 1.0)
            * (_MADE if row.source.startswith(("made:", "authored:")) else 1.0)
            * float(np.sqrt(_EVEN_SIZE / max(sizes[family_of(row.source)], _EVEN_SIZE)))
            for row in (rows[place] for place in places.tolist())
        ]
    )


def _wholes(prepared: Prepared, units: Places, weights: Numbers) -> list[Sample]:
    """Return texts as wholes, long ones in pieces; also some passages of harmless texts, drawn with one seed."""
    grams, samples = prepared.grams, []
    generator = np.random.default_rng(1)
    for unit in units.tolist():
        row, size = int(grams.rows[unit]), int(grams.segments[unit])
        weight = float(weights[row]) * (1.0 if grams.is_text[unit] else _VIEW)
        attack = bool(prepared.attack[row])
        pieces = range(0, max(size - _WHOLE, 0) + 1, _WHOLE)
        share = weight / (len(pieces) if attack else np.sqrt(len(pieces)))
        samples += [Sample(unit, first, min(size, _WHOLE), share) for first in pieces]
        if not attack and size > 1:
            for _ in range(_DRAWN):
                length = min(size, 2 ** int(generator.integers(0, 4)))
                first = int(generator.integers(0, size - length + 1))
                samples.append(Sample(unit, first, length, weight / _DRAWN))
    return samples


def _lighter(prepared: Prepared, sample: Sample) -> Sample:
    grams = prepared.grams
    if prepared.attack[grams.rows[sample.unit]] and grams.segments[sample.unit] > _WHOLE:
        return sample._replace(weight=_AGAIN * sample.weight)
    return sample


def _worst(
    prepared: Prepared, units: Places, weights: Numbers, numbers: npt.NDArray[np.int32], theta: Numbers
) -> list[Sample]:
    grams, samples = prepared.grams, []
    whole = np.rint(theta[:-1] * WEIGHT_UNIT).astype(np.int32)
    for unit in units.tolist():
        size = int(grams.segments[unit])
        worst = worst_passage(whole, grams.known(unit, numbers), size)
        if worst.length < size:
            samples.append(Sample(unit, worst.first, worst.length, _WORST * float(weights[grams.rows[unit]])))
    return samples


def _fitted(
    prepared: Prepared,
    numbers: npt.NDArray[np.int32],
    samples: Sequence[Sample],
    recipe: Recipe,
    *,
    last: bool,
    start: Numbers | None,
) -> Numbers:
    labels = prepared.attack[prepared.grams.rows[[sample.unit for sample in samples]]]
    return fit_logistic(
        matrix_of(prepared.grams, numbers, samples),
        labels,
        np.array([sample.weight for sample in samples]),
        penalty=recipe.penalty,
        steps=_LAST_STEPS if last else _STEPS,
        start=start,
    )


def _quantile(scores: Numbers, share: float) -> float:
    return float(np.quantile(scores, 1.0 - share, method="higher")) if len(scores) else -np.inf
