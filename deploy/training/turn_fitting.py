"""Fitting the turn model: one softmax over five kinds of turns, from labels that may allow several kinds.

The kinds say what a user's turn asks for, such as a courtesy, a task, or a question that can be answered as it stands.

The loss of a row is minus the log of the summed probability of the kinds that its label allows. Features are selected
by how many rows and sources have them, then by their weights. The sharpness, a factor of the scores (the inverse of the
temperature in temperature scaling), is calibrated on held-out sources, so that a probability means the same for texts
unlike those of the training.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar

from actors.contract.text.dialogue_act.features import TurnFeatures, features_of, turn_of, word_keys
from actors.contract.text.dialogue_act.model import KINDS, MODEL_KIND, WEIGHT_UNIT, TurnKind, TurnModel, evidence_of
from actors.contract.text.hashing import Keys
from deploy.training.turn_rows import WRITTEN, TurnRow

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FOLDS = 4
"""Into how many folds the sources are divided, which are held out in turn."""

MOST_FEATURES = 24_000
"""The most features of a model; those with the largest weights are kept."""

LEAST_ROWS = 3
"""A feature is used if at least this many rows have it."""

KNOWN_ROWS = 2
"""A word is known to the model if at least this many rows have it."""

COMMON_ROWS, COMMON_SOURCES, MOST_COMMON = 12, 6, 1_500
"""Fewest rows, and fewest sources, that have a word which counts as common; and most such words of a model."""

PENALTY = 1.0
"""Weight of the squared norm of the coefficients."""

SINGLY_LABELLED_WEIGHT = 3.0
"""Weight of a row that was labelled by itself; rows that share the label of their category have 1."""

_LARGEST_WEIGHT = 127
"""The largest weight in the file, in units: one byte with its sign."""

_EVEN_SIZE = 60.0
"""Sources with more rows than this weigh less for each row, by the square root of their size."""

_STEPS, _LAST_STEPS = 35, 60
"""The most iterations of L-BFGS, for all features and then for the selected ones."""

PRIORS: dict[TurnKind, float] = {
    "answerable": 0.52,
    "underspecified": 0.10,
    "social": 0.06,
    "recall": 0.04,
    "task": 0.28,
}
"""The probability of each kind before a text is read. They are chosen, not fitted; a text in an unknown language keeps
them."""

SHARES: dict[str, float] = {
    "answerable": 0.12,
    "underspecified": 0.22,
    "social": 0.12,
    "recall": 0.07,
    "task": 0.12,
    "open": 0.35,
}
"""The weight of all rows of a kind together; ``open`` are those whose label allows several kinds."""


class Prepared(msgspec.Struct, frozen=True, eq=False):
    """Rows with what a fit reads of them; each array has one element, or line, for each row.

    ``allowed`` says which kinds the label allows, ``sources`` has the number of the source, and ``written`` says
    whether it is a phrase written for this project.
    """

    rows: tuple[TurnRow, ...]
    turns: tuple[TurnFeatures, ...]
    allowed: npt.NDArray[np.bool_]
    sources: Indices
    written: npt.NDArray[np.bool_]


def prepare(rows: Sequence[TurnRow]) -> Prepared:
    """Read what a fit needs of rows."""
    names = sorted({row.source for row in rows})
    number = {name: index for index, name in enumerate(names)}
    return Prepared(
        tuple(rows),
        tuple(turn_of(row.text) for row in rows),
        np.array([[kind in row.kinds for kind in KINDS] for row in rows]),
        np.array([number[row.source] for row in rows]),
        np.array([row.source.startswith(WRITTEN) for row in rows]),
    )


def fit_turns(prepared: Prepared, indices: Indices, sharpness: float = 1.0) -> TurnModel:
    """Fit a model on the rows at ``indices`` (ascending)."""
    common = _common_words(prepared, indices)
    features = [features_of(prepared.turns[index], common) for index in indices.tolist()]
    weights = weights_of([prepared.rows[index] for index in indices.tolist()])
    allowed = prepared.allowed[indices]
    keys = _supported(features, prepared, indices)
    theta = _fit(_matrix(features, keys), allowed, weights, _STEPS)
    if len(keys) > MOST_FEATURES:
        strength = np.abs(theta).max(axis=1)
        kept = np.sort(np.argsort(-strength, kind="stable")[:MOST_FEATURES])
        keys, theta = keys[kept], theta[kept]
        theta = _fit(_matrix(features, keys), allowed, weights, _LAST_STEPS, theta)
    rounded = np.clip(np.rint(theta * WEIGHT_UNIT), -_LARGEST_WEIGHT, _LARGEST_WEIGHT).astype(np.int16)
    priors = tuple(float(each) for each in np.log([PRIORS[kind] for kind in KINDS]).round(6))
    name = f"{MODEL_KIND}-unsaved"  # a model is named by the hash of its file, see ``load_turn_model``
    return TurnModel(name, keys, rounded, priors, common, _known_words(prepared, indices), sharpness)


def folds_of(prepared: Prepared, folds: int = FOLDS) -> Indices:
    """Return the fold of each row: whole sources, the largest first, each to the fold with fewest rows so far."""
    sizes = np.bincount(prepared.sources)
    load = [0] * folds
    fold_of = np.zeros(len(sizes), dtype=np.int64)
    for source in sorted(range(len(sizes)), key=lambda each: (-int(sizes[each]), each)):
        fold_of[source] = load.index(min(load))
        load[fold_of[source]] += int(sizes[source])
    return fold_of[prepared.sources]


def calibrated_sharpness(prepared: Prepared, folds: Indices, indices: Indices) -> float:
    """Return the sharpness at which models that were fitted without a fold predict it with the least loss."""
    found, allowed, weights = [], [], []
    for fold in sorted(set(folds[indices].tolist())):
        model = fit_turns(prepared, indices[folds[indices] != fold])
        held = indices[(folds[indices] == fold) & ~prepared.written[indices]]
        if len(held):
            found.append(scores_of(prepared, model, held))
            allowed.append(prepared.allowed[held])
            weights.append(weights_of([prepared.rows[index] for index in held.tolist()]))
    if not found:
        return 1.0
    scores, labels, shares = np.concatenate(found), np.concatenate(allowed), np.concatenate(weights)
    priors = np.log([PRIORS[kind] for kind in KINDS])

    def loss(sharpness: float) -> float:
        return float(shares @ _log_loss(priors + sharpness * scores, labels)[0])

    return round(float(minimize_scalar(loss, bounds=(0.05, 3.0), method="bounded").x), 3)


def scores_of(prepared: Prepared, model: TurnModel, indices: Indices) -> Numbers:
    """Return a model's scores of each kind for each row, times their certainty, without the sharpness."""
    found = [evidence_of(model, prepared.turns[index]) for index in indices.tolist()]
    return np.array([np.array(scores) * certainty for scores, certainty in found])


def weights_of(rows: Sequence[TurnRow]) -> Numbers:
    """Return the weight of each row.

    Rows of large sources weigh less, rows that were labelled singly more; all rows of a kind together have its share.
    """
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.source] = sizes.get(row.source, 0) + 1
    found = np.array([float(np.sqrt(_EVEN_SIZE / max(sizes[row.source], _EVEN_SIZE))) for row in rows])
    found *= np.where([row.labelled_singly for row in rows], SINGLY_LABELLED_WEIGHT, 1.0)
    group = np.array([next(iter(row.kinds)) if len(row.kinds) == 1 else "open" for row in rows])
    for kind, share in SHARES.items():
        total = float(found[group == kind].sum())
        if total:
            found[group == kind] *= share / total
    return found


def _common_words(prepared: Prepared, indices: Indices) -> Keys:
    """Return the hashes of the words that many rows and sources have (:data:`COMMON_ROWS`)."""
    rows: dict[str, int] = {}
    sources: dict[str, set[int]] = {}
    for index in indices.tolist():
        for word in set(prepared.turns[index].words):
            rows[word] = rows.get(word, 0) + 1
            sources.setdefault(word, set()).add(int(prepared.sources[index]))
    known = [word for word, count in rows.items() if count >= COMMON_ROWS and len(sources[word]) >= COMMON_SOURCES]
    known.sort(key=lambda word: (-len(sources[word]), word))
    return np.unique(word_keys(known[:MOST_COMMON])) if known else np.zeros(0, dtype=np.uint32)


def _known_words(prepared: Prepared, indices: Indices) -> Keys:
    """Return the hashes of the words that are known to the model (:data:`KNOWN_ROWS`)."""
    rows: dict[str, int] = {}
    for index in indices.tolist():
        for word in set(prepared.turns[index].words):
            rows[word] = rows.get(word, 0) + 1
    return np.unique(word_keys([word for word, count in rows.items() if count >= KNOWN_ROWS]))


def _supported(features: Sequence[Keys], prepared: Prepared, indices: Indices) -> Keys:
    """Return the features, by their hashes, that enough rows of at least two sources have."""
    keys = np.concatenate(features)
    sources = np.repeat(prepared.sources[indices], [len(each) for each in features])
    written = np.repeat(prepared.written[indices], [len(each) for each in features])
    # A feature and a source in one number: the source in the lowest 16 bits.
    pairs, first, counts = np.unique(keys.astype(np.int64) << 16 | sources, return_index=True, return_counts=True)
    found, begin = np.unique(pairs >> 16, return_index=True)
    spread = np.add.reduceat(1 + written[first].astype(np.int64), begin)  # sources; one of our own counts for two
    rows = np.add.reduceat(counts, begin)
    return found[(spread >= 2) & (rows >= LEAST_ROWS)].astype(np.uint32)


def _matrix(features: Sequence[Keys], keys: Keys) -> sparse.csr_matrix:
    """Return a matrix with a column for each of ``keys``; a feature of a row is one over the root of their number."""
    sizes = np.array([len(each) for each in features])
    flat = np.concatenate(features)
    nearest = np.minimum(np.searchsorted(keys, flat), len(keys) - 1)
    known = keys[nearest] == flat
    starts = np.concatenate([[0], np.cumsum(known)])[np.concatenate([[0], np.cumsum(sizes)])]
    values = np.repeat(1.0 / np.sqrt(np.maximum(sizes, 1)), sizes)[known]
    return sparse.csr_matrix((values, nearest[known], starts), shape=(len(features), len(keys)))


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
    transposed = rows.T.tocsr()

    def loss(flat: Numbers) -> tuple[float, Numbers]:
        theta = flat.reshape(shape)
        losses, slope = _log_loss(rows @ theta + priors, allowed)
        value = float(weights @ losses) + 0.5 * ridge * float(flat @ flat)
        return value, (transposed @ (weights[:, None] * slope) + ridge * theta).ravel()

    begin = np.zeros(shape) if start is None else start
    found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
    return np.asarray(found).reshape(shape)


def _log_loss(scores: Numbers, allowed: npt.NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """Return minus the log of the allowed kinds' probability, and its gradient by the scores."""
    scores = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    all_shares = shares / shares.sum(axis=1, keepdims=True)
    within = np.where(allowed, shares, 0.0)
    total = np.maximum(within.sum(axis=1, keepdims=True), 1e-300)
    return -np.log(np.maximum((all_shares * allowed).sum(axis=1), 1e-300)), all_shares - within / total
