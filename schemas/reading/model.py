"""A trained judge of texts: n-gram weights, and the threshold from which their sum over a passage speaks up.

The file is a NumPy archive; its content hash is part of the model's name. A margin is positive from the threshold on
that was fixed, on rows held out in training, for a false-alarm rate; its unit is that of a log-odds.
"""

import hashlib
import io
from zipfile import BadZipFile

import msgspec
import numpy as np

from schemas.reading.evidence import Table, Text, worst_of

_HEAD = 2
_MOST = 1 << 15
"""Weights have 16 bits (``passages``)."""


class InvalidModel(ValueError):
    """A weights file that was trained on other numbers than this release reads, or that is damaged."""

    code = "invalid_model"


class Model(msgspec.Struct, frozen=True, eq=False):
    """A judge: ``threshold`` is the log-odds at which margins are 0, for texts of any length."""

    name: str
    table: Table
    bias: float
    threshold: float


def load_model(data: bytes, kind: str) -> Model:
    """Read a weights file; the model is named ``kind`` and the first eight digits of the file's hash.

    Raises:
        InvalidModel: it is no such file, or does not fit this release.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            head = archive["thresholds"].astype(np.float64)
            table = Table(archive["keys"].astype(np.uint32), archive["weights"].astype(np.int32))
    except (OSError, ValueError, KeyError, IndexError, EOFError, BadZipFile) as wrong:
        raise InvalidModel(f"{kind}: not a weights file: {wrong}; train it anew") from wrong
    if head.shape != (_HEAD,) or not len(table.keys) == len(table.weights) > 0 or np.abs(table.weights).max() >= _MOST:
        raise InvalidModel(f"{kind}: trained on other numbers than this release reads; train it anew")
    name = f"{kind}-{hashlib.sha256(data).hexdigest()[:8]}"
    return Model(name, table, *map(float, head))


def dump_model(model: Model) -> bytes:
    """Return a model as a weights file; equal models give equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        keys=model.table.keys,
        weights=model.table.weights.astype(np.int16),
        thresholds=np.array([model.bias, model.threshold]),
    )
    return buffer.getvalue()


def log_odds(model: Model, text: Text) -> float:
    """Return the log-odds of the worst passage of a text being an attack."""
    return worst_of(model.table, text).score + model.bias


def margin(model: Model, text: Text) -> float:
    """Return how far the worst passage of a text is beyond the threshold."""
    return log_odds(model, text) - model.threshold


def squashed(margin: float, scale: float = 2.0) -> float:
    """Return a margin as a number in (0, 1), 0.5 at margin 0, by division only, which is exact everywhere."""
    share = margin / scale
    return 0.5 + 0.5 * share / (1.0 + abs(share))
