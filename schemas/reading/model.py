"""A trained judge of texts: n-gram weights, a linear head over what they say, and the margin from which it speaks up.

The file is a NumPy archive; its content hash is part of the model's name. A margin is positive from the threshold on
that was fixed, on rows held out in training, for a false-alarm rate; its unit is that of a log-odds.
"""

import hashlib
import io
from zipfile import BadZipFile

import msgspec
import numpy as np

from schemas.reading.evidence import Table, Text, evidence, evidence_names

LONG_TEXT = 5_000
"""Longer texts are held to a threshold of their own: of many segments one may look like an attack by chance."""


class InvalidModel(ValueError):
    """A weights file that was trained on other numbers than this release reads, or that is damaged."""

    code = "invalid_model"


class Model(msgspec.Struct, frozen=True, eq=False):
    """A judge: ``coefficients`` pair with ``evidence_names``, ``threshold`` is the log-odds at which margins are 0.

    ``long_threshold`` is that of texts over ``LONG_TEXT`` characters.
    """

    name: str
    table: Table
    coefficients: tuple[float, ...]
    bias: float
    threshold: float
    long_threshold: float


def load_model(data: bytes, kind: str) -> Model:
    """Read a weights file; the model is named ``kind`` and the first eight digits of the file's hash.

    Raises:
        InvalidModel: it is no such file, or does not fit this release.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            head = archive["head"].astype(np.float64)
            table = Table(
                archive["keys"].astype(np.uint32),
                archive["whole"].astype(np.int32),
                archive["part"].astype(np.int32),
                float(archive["biases"][0]),
                float(archive["biases"][1]),
            )
    except (OSError, ValueError, KeyError, IndexError, EOFError, BadZipFile) as wrong:
        raise InvalidModel(f"{kind}: not a weights file: {wrong}; train it anew") from wrong
    width = len(evidence_names())
    if len(head) != width + 3 or not len(table.keys) == len(table.whole) == len(table.part) > 0:
        raise InvalidModel(f"{kind}: trained on other numbers than this release reads; train it anew")
    name = f"{kind}-{hashlib.sha256(data).hexdigest()[:8]}"
    return Model(name, table, tuple(map(float, head[:width])), *map(float, head[width:]))


def dump_model(model: Model) -> bytes:
    """Return a model as a weights file; equal models give equal bytes."""
    buffer = io.BytesIO()
    table = model.table
    np.savez_compressed(
        buffer,
        keys=table.keys,
        whole=table.whole.astype(np.int16),
        part=table.part.astype(np.int16),
        biases=np.array([table.whole_bias, table.part_bias]),
        head=np.array([*model.coefficients, model.bias, model.threshold, model.long_threshold]),
    )
    return buffer.getvalue()


def log_odds(model: Model, text: Text) -> float:
    """Return the log-odds of a text being an attack, summed in a fixed order."""
    total = model.bias
    for coefficient, number in zip(model.coefficients, evidence(model.table, text).tolist(), strict=True):
        total += coefficient * number
    return total


def squashed(margin: float, scale: float = 2.0) -> float:
    """Return a margin as a number in (0, 1), 0.5 at margin 0, by division only, which is exact everywhere."""
    share = margin / scale
    return 0.5 + 0.5 * share / (1.0 + abs(share))
