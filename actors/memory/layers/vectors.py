"""Compares embeddings exactly, in the form in which events carry them.

Embeddings are vectors of one-byte integers. Sums of their products stay below 2^24 up to ``WIDEST`` dimensions, and up
to 2^24 a 32-bit float holds every integer. So a matrix product in floats is exact in any order of summation, and the
fast routines of all machines give the same bits.
"""

import base64
import binascii
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from actors.memory.terms import DECIMALS

WIDEST = 1024
"""Dimensions up to which products are exact."""

_CELLS_AT_ONCE = 1 << 17
"""Numbers converted at once. They fit into the processor's cache; for more, numpy would start threads to no use."""

Bytes = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
Sums = npt.NDArray[np.float32]


def from_text(text: str) -> bytes:
    """Return the embedding that an event carries; empty for one that is absent or cannot be read."""
    try:
        embedding = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return embedding if len(embedding) <= WIDEST and any(embedding) else b""


def dots(vectors: Bytes, embedding: bytes) -> Sums:
    """Return the exact products of the rows with an embedding of the same width."""
    query = np.frombuffer(embedding, np.int8).astype(np.float32)
    found = np.empty(len(vectors), np.float32)
    at_once = max(1, _CELLS_AT_ONCE // len(query))
    buffer = np.empty((min(at_once, len(vectors)), len(query)), np.float32)
    for start in range(0, len(vectors), at_once):
        rows = vectors[start : start + at_once]
        converted = buffer[: len(rows)]
        np.copyto(converted, rows)
        np.dot(converted, query, out=found[start : start + len(rows)])
    return found


def square(embedding: bytes) -> int:
    """Return the product of an embedding with itself."""
    values = np.frombuffer(embedding, np.int8).astype(np.int64)
    return int(values @ values)


def cosines(vectors: Bytes, squares: npt.NDArray[np.int64], embedding: bytes) -> Floats:
    """Return the cosines of the rows with an embedding, negative ones as 0; ``squares`` are the rows' own products."""
    # Each step is rounded as IEEE 754 requires, and the product of two squares is exact: the same bits on every
    # machine.
    found: Floats = dots(vectors, embedding) / np.sqrt((squares * square(embedding)).astype(np.float64))
    return np.maximum(found, 0.0)


def cosines_of(embedding: bytes, others: Sequence[bytes]) -> list[float]:
    """Return the cosines with a few embeddings, rounded; 0 for another width, or for a missing embedding."""
    found = [0.0] * len(others)
    indices = [index for index, other in enumerate(others) if other and len(other) == len(embedding)]
    if indices:
        vectors = np.frombuffer(b"".join(others[index] for index in indices), np.int8).reshape(-1, len(embedding))
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
        for index, cosine in zip(indices, cosines(vectors, squares, embedding).round(DECIMALS).tolist(), strict=True):
            found[index] = min(cosine, 1.0)
    return found
