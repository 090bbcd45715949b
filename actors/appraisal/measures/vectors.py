"""Embeddings as small integers: 128 of them in [-127, 127], kept as bytes.

Integer arithmetic is exact: sums do not depend on their order, so a fold gives the same state on every machine.
"""

import base64
import binascii

import numpy as np
import numpy.typing as npt

DIMENSIONS = 128
"""Numbers of an embedding."""

_LARGEST = 127
"""The largest of them, in absolute value: they are signed bytes."""

_CENTROID_UNIT = 64
"""Centroids have six more bits than embeddings, so that averaging loses little."""

_MOST_AVERAGED = 32
"""A new embedding has a weight of at least one part in 32 in its topic's centroid, so that topics can drift."""

Sums = npt.NDArray[np.int64]


def quantised_embedding(sums: Sums) -> bytes:
    """Return the direction of an integer vector as an embedding; all zeros for the zero vector."""
    largest = int(np.abs(sums).max(initial=0))
    if largest == 0:
        return bytes(DIMENSIONS)
    # Halves are rounded up in integer arithmetic, which gives the same result on every machine.
    scaled = (2 * sums * _LARGEST + largest) // (2 * largest)
    return scaled.astype(np.int8).tobytes()


def similarity(one: bytes, others: bytes) -> npt.NDArray[np.float64]:
    """Return the cosines of an embedding with concatenated embeddings, negative ones as 0."""
    left = np.frombuffer(one, np.int8).astype(np.int64)
    right = np.frombuffer(others, np.int8).astype(np.int64).reshape(-1, DIMENSIONS)
    return _cosines(left, right)


def centroid_similarity(one: bytes, centroid: bytes) -> float:
    """Return the cosine of an embedding with a centroid, a negative one as 0."""
    left = np.frombuffer(one, np.int8).astype(np.int64)
    right = np.frombuffer(centroid, "<i2").astype(np.int64).reshape(1, DIMENSIONS)
    return float(_cosines(left, right)[0])


def centroid_of(embedding: bytes) -> bytes:
    """Return the centroid of a topic with one input."""
    return (np.frombuffer(embedding, np.int8).astype(np.int16) * _CENTROID_UNIT).astype("<i2").tobytes()


def moved_centroid(centroid: bytes, embedding: bytes, inputs: int) -> bytes:
    """Return a topic's centroid after one more input; ``inputs`` is the number of inputs before."""
    weight = min(inputs, _MOST_AVERAGED - 1)
    before = np.frombuffer(centroid, "<i2").astype(np.int64)
    added = np.frombuffer(embedding, np.int8).astype(np.int64) * _CENTROID_UNIT
    return ((before * weight + added) // (weight + 1)).astype("<i2").tobytes()


def to_text(embedding: bytes) -> str:
    """Return an embedding as base64, as events carry it."""
    return base64.b64encode(embedding).decode("ascii")


def from_text(text: str) -> bytes | None:
    """Return the embedding that an event carries, or None for anything else."""
    try:
        embedding = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return embedding if len(embedding) == DIMENSIONS else None


def _cosines(left: Sums, right: Sums) -> npt.NDArray[np.float64]:
    dots = right @ left
    norms = np.sqrt((right * right).sum(axis=1).astype(np.float64)) * np.sqrt(float((left * left).sum()))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = np.where(norms > 0.0, dots / norms, 0.0)
    return np.clip(cosines, 0.0, 1.0)
