"""A trained judge of texts, a linear classifier: n-gram weights, and a threshold for their sum in a passage.

The file is a NumPy archive; the hash of its content is part of the model's name. A margin is the log-odds minus the
threshold: it is positive above the threshold. The threshold was set for a false-alarm rate, measured on held-out data
in training.
"""

import hashlib

import msgspec
import numpy as np

from actors.contract.text.judge.weight_files import InvalidModel, are_sorted_keys, arrays_in, unfit_model, weights_file
from actors.contract.text.judge.worst_passage import ReadText, Table, worst_of

__all__ = ["InvalidModel", "Model", "dump_model", "load_model", "log_odds", "margin", "to_unit_interval"]

_HEAD = 2
"""Numbers in the array ``thresholds``: bias and threshold."""

_MOST = 1 << 15
"""Weights are between minus this and this, exclusive: ``passages`` packs them in 16 bits."""


class Model(msgspec.Struct, frozen=True, eq=False):
    """A judge: its weights (``table``), a ``bias`` added to their sum, and ``threshold``, the log-odds at which a
    margin is 0, for texts of any length.
    """

    name: str
    table: Table
    bias: float
    threshold: float


def load_model(data: bytes, kind: str) -> Model:
    """Read a weights file; the model is named ``kind`` and the first eight digits of the file's hash.

    Raises:
        InvalidModel: it is not a weights file, or does not fit this release.
    """
    found = arrays_in(data, kind, ("keys", "weights"), "thresholds")
    keys, weights, head = found["keys"], found["weights"], found["thresholds"]
    fits = are_sorted_keys(keys) and head.shape == (_HEAD,) and weights.shape == keys.shape and len(keys) > 0
    if not fits or not -_MOST < int(weights.min()) <= int(weights.max()) < _MOST:
        raise unfit_model(kind)
    name = f"{kind}-{hashlib.sha256(data).hexdigest()[:8]}"
    return Model(name, Table(keys, weights.astype(np.int32)), *map(float, head))


def dump_model(model: Model) -> bytes:
    """Return a model as a weights file; equal models give equal bytes."""
    return weights_file(
        keys=model.table.keys,
        weights=model.table.weights.astype(np.int16),
        thresholds=np.array([model.bias, model.threshold]),
    )


def log_odds(model: Model, text: ReadText) -> float:
    """Return the log-odds that the worst passage of a text is an attack."""
    return worst_of(model.table, text).score + model.bias


def margin(model: Model, text: ReadText) -> float:
    """Return how far the worst passage of a text is above the threshold."""
    return log_odds(model, text) - model.threshold


def to_unit_interval(margin: float) -> float:
    """Return a margin as a number in (0, 1): 0.5 at margin 0, 0.75 at margin 2.

    It uses division only: the same bits on every machine.
    """
    share = margin / 2.0
    return 0.5 + 0.5 * share / (1.0 + abs(share))
