"""Fitting the turn model: one softmax over five kinds of turns, from labels that may allow several kinds.

The loss of a row is minus the log of the summed probability of the kinds that its label allows. Features are selected
by how many rows and sources have them, then by their weights. The sharpness of the probabilities is calibrated on
held-out sources, so that a probability means the same for texts unlike those of the training.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar

from actors.contract.text.dialogue_act.features import TurnFeatures, features_of, turn_of, word_keys
from actors.contract.text.dialogue_act.model import KINDS, WEIGHT_UNIT, TurnKind, TurnModel, evidence_of
from actors.contract.text.hashing import Keys
from deploy.training.turn_rows import WRITTEN, TurnRow

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

FOLDS = 4
MOST_FEATURES = 24_000
LEAST_ROWS = 3
MET_ROWS = 2
COMMON_ROWS, COMMON_SOURCES, MOST_COMMON = 12, 6, 1_500
PENALTY = 1.0
TOLD_WEIGHT = 3.0
_LARGEST = 127
_EVEN_SIZE = 60.0
_STEPS, _LAST_STEPS = 35, 60
PRIORS: dict[TurnKind, float] = {
    "answerable": 0.52,
    "underspecified": 0.10,
    "social": 0.06,
    "recall": 0.04,
    "task": 0.28,
}
"""What a text is before it is read. Held fixed in training: it is what an unknown language is left with."""


SHARES: dict[str, float] = {
    "answerable": 0.12,
    "underspecified": 0.22,
    "social": 0.12,
    "recall": 0.07,
    "task": 0.12,
    "open": 0.35,
}
"""What rows of one kind weigh together in training; ``open`` are those whose label allows several."""


class Prepared(msgspec.Struct, frozen=True, eq=False):
    """Rows with their features, and all that is needed to fit a part of them."""

    rows: tuple[TurnRow, ...]
    turns: tuple[TurnFeatures, ...]
    allowed: npt.NDArray[np.bool_]
    sources: Places
    written: npt.NDArray[np.bool_]


def prepare(rows: Sequence[TurnRow]) -> Prepared:
    """Read rows."""
    names = sorted({row.source for row in rows})
    number = {name: place for place, name in enumerate(names)}
    return Prepared(
        tuple(rows),
        tuple(turn_of(row.text) for row in rows),
        np.array([[kind in row.reads for kind in KINDS] for row in rows]),
        np.array([number[row.source] for row in rows]),
        np.array([row.source.startswith(WRITTEN) for row in rows]),
    )


def fit_turns(prepared: Prepared, places: Places, sharpness: float = 1.0) -> TurnModel:
    """Fit a model on the rows at ``places`` (ascending)."""
    common = _common(prepared, places)
    features = [features_of(prepared.turns[place], common) for place in places.tolist()]
    weights = weights_of([prepared.rows[place] for place in places.tolist()])
    allowed = prepared.allowed[places]
    keys = _supported(features, prepared, places)
    theta = _fit(_matrix(features, keys), allowed, weights, _STEPS)
    if len(keys) > MOST_FEATURES:
        strength = np.abs(theta).max(axis=1)
        kept = np.sort(np.argsort(-strength, kind="stable")[:MOST_FEATURES])
        keys, theta = keys[kept], theta[kept]
        theta = _fit(_matrix(features, keys), allowed, weights, _LAST_STEPS, theta)
    rounded = np.clip(np.rint(theta * WEIGHT_UNIT), -_LARGEST, _LARGEST).astype(np.int16)
    priors = tuple(float(each) for each in np.log([PRIORS[kind] for kind in KINDS]).round(6))
    return TurnModel("turn-untrained", keys, rounded, priors, common, _met(prepared, places), sharpness)


def folds_of(prepared: Prepared, folds: int = FOLDS) -> Places:
    """Return the fold of each row: whole sources, the largest first, each to the fold with fewest rows so far."""
    sizes = np.bincount(prepared.sources)
    load = [0] * folds
    fold_of = np.zeros(len(sizes), dtype=np.int64)
    for source in sorted(range(len(sizes)), key=lambda each: (-int(sizes[each]), each)):
        fold_of[source] = load.index(min(load))
        load[fold_of[source]] += int(sizes[source])
    return fold_of[prepared.sources]


def calibrated(prepared: Prepared, folds: Places, places: Places) -> float:
    """Return the sharpness at which models fitted without a fold are surest to be right about it."""
    found, allowed, weights = [], [], []
    for fold in sorted(set(folds[places].tolist())):
        model = fit_turns(prepared, places[folds[places] != fold])
        held = places[(folds[places] == fold) & ~prepared.written[places]]
        if len(held):
            found.append(scores_of(prepared, model, held))
            allowed.append(prepared.allowed[held])
            weights.append(weights_of([prepared.rows[place] for place in held.tolist()]))
    if not found:
        return 1.0
    scores, labels, shares = np.concatenate(found), np.concatenate(allowed), np.concatenate(weights)
    priors = np.log([PRIORS[kind] for kind in KINDS])

    def loss(sharpness: float) -> float:
        return float(shares @ _surprise(priors + sharpness * scores, labels)[0])

    return round(float(minimize_scalar(loss, bounds=(0.05, 3.0), method="bounded").x), 3)


def scores_of(prepared: Prepared, model: TurnModel, places: Places) -> Numbers:
    """Return what a model's weights say of rows, before sharpness."""
    found = [evidence_of(model, prepared.turns[place]) for place in places.tolist()]
    return np.array([np.array(scores) * certainty for scores, certainty in found])


def weights_of(rows: Sequence[TurnRow]) -> Numbers:
    """Return the weight of each row.

    Rows of large sources count less each, those whose label was told more; and each kind has its share in all.
    """
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.source] = sizes.get(row.source, 0) + 1
    found = np.array([float(np.sqrt(_EVEN_SIZE / max(sizes[row.source], _EVEN_SIZE))) for row in rows])
    found *= np.where([row.told for row in rows], TOLD_WEIGHT, 1.0)
    group = np.array([next(iter(row.reads)) if len(row.reads) == 1 else "open" for row in rows])
    for kind, share in SHARES.items():
        total = float(found[group == kind].sum())
        if total:
            found[group == kind] *= share / total
    return found


def _common(prepared: Prepared, places: Places) -> Keys:
    rows: dict[str, int] = {}
    sources: dict[str, set[int]] = {}
    for place in places.tolist():
        for word in set(prepared.turns[place].words):
            rows[word] = rows.get(word, 0) + 1
            sources.setdefault(word, set()).add(int(prepared.sources[place]))
    known = [word for word, count in rows.items() if count >= COMMON_ROWS and len(sources[word]) >= COMMON_SOURCES]
    known.sort(key=lambda word: (-len(sources[word]), word))
    return np.unique(word_keys(known[:MOST_COMMON])) if known else np.zeros(0, dtype=np.uint32)


def _met(prepared: Prepared, places: Places) -> Keys:
    rows: dict[str, int] = {}
    for place in places.tolist():
        for word in set(prepared.turns[place].words):
            rows[word] = rows.get(word, 0) + 1
    return np.unique(word_keys([word for word, count in rows.items() if count >= MET_ROWS]))


def _supported(features: Sequence[Keys], prepared: Prepared, places: Places) -> Keys:
    keys = np.concatenate(features)
    owners = np.repeat(prepared.sources[places], [len(each) for each in features])
    written = np.repeat(prepared.written[places], [len(each) for each in features])
    pairs, first, counts = np.unique(keys.astype(np.int64) << 16 | owners, return_index=True, return_counts=True)
    found, begin = np.unique(pairs >> 16, return_index=True)
    spread = np.add.reduceat(1 + written[first].astype(np.int64), begin)
    rows = np.add.reduceat(counts, begin)
    return found[(spread >= 2) & (rows >= LEAST_ROWS)].astype(np.uint32)


def _matrix(features: Sequence[Keys], keys: Keys) -> sparse.csr_matrix:
    sizes = np.array([len(each) for each in features])
    flat = np.concatenate(features)
    spots = np.minimum(np.searchsorted(keys, flat), len(keys) - 1)
    known = keys[spots] == flat
    starts = np.concatenate([[0], np.cumsum(known)])[np.concatenate([[0], np.cumsum(sizes)])]
    values = np.repeat(1.0 / np.sqrt(np.maximum(sizes, 1)), sizes)[known]
    return sparse.csr_matrix((values, spots[known], starts), shape=(len(features), len(keys)))


def _fit(
    rows: sparse.csr_matrix,
    allowed: npt.NDArray[np.bool_],
    weights: Numbers,
    steps: int,
    start: Numbers | None = None,
) -> Numbers:
    weights = weights / weights.sum()
    ridge = PENALTY / rows.shape[0]
    priors = np.log([PRIORS[kind] for kind in KINDS])
    shape = (rows.shape[1], len(KINDS))
    turned = rows.T.tocsr()

    def loss(flat: Numbers) -> tuple[float, Numbers]:
        theta = flat.reshape(shape)
        surprise, slope = _surprise(rows @ theta + priors, allowed)
        value = float(weights @ surprise) + 0.5 * ridge * float(flat @ flat)
        return value, (turned @ (weights[:, None] * slope) + ridge * theta).ravel()

    begin = np.zeros(shape) if start is None else start
    found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
    return np.asarray(found).reshape(shape)


def _surprise(scores: Numbers, allowed: npt.NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """Return minus the log of the allowed kinds' probability, and its gradient by the scores."""
    scores = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    all_shares = shares / shares.sum(axis=1, keepdims=True)
    within = np.where(allowed, shares, 0.0)
    total = np.maximum(within.sum(axis=1, keepdims=True), 1e-300)
    return -np.log(np.maximum((all_shares * allowed).sum(axis=1), 1e-300)), all_shares - within / total
