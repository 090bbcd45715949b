"""How alike texts and embeddings are: cosines in millionths, exact on any machine.

Vectors are made whole numbers first, small enough that sums of their products are exact in floats of 64 bits, in
whatever order a machine's fast routines add them up. What is then divided and rooted is rounded as IEEE 754 says.
"""

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

MICRO = 1_000_000

WIDTH = 256
"""Places of a vector of terms."""

_FINEST = float(1 << 20)
"""What embeddings are rounded to, and counts end at: products of 4,096 of them stay below 2^53."""

_GRAM = 3

Floats = npt.NDArray[np.float64]
Matrix = list[list[int]]
"""Cosines in millionths, of each two rows."""


def term_vectors(texts: Sequence[tuple[str, ...]]) -> Floats:
    """Return a vector for each list of terms: how often each hashed part of a term occurs, and each term itself."""
    return np.array([_vector(terms) for terms in texts])


def embedding_vectors(embeddings: Sequence[tuple[float, ...]]) -> Floats:
    """Return embeddings as whole numbers; those of another width than the first that is not empty are unknown."""
    width = next((len(each) for each in embeddings if each), 0)
    vectors = np.zeros((len(embeddings), width))
    for row, embedding in enumerate(embeddings):
        if len(embedding) == width:
            vectors[row] = embedding
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    largest[largest == 0.0] = 1.0
    scaled: Floats = np.rint(vectors / largest * _FINEST)
    return scaled


def cosines(vectors: Floats) -> Matrix:
    """Return the cosine of each two rows; those of a row of nothing are 0, its own too."""
    products = vectors @ vectors.T
    lengths = np.sqrt(products.diagonal())
    lengths[lengths == 0.0] = 1.0
    found: Matrix = np.rint(products / np.multiply.outer(lengths, lengths) * MICRO).astype(np.int64).tolist()
    return found


@lru_cache(maxsize=4096)
def _vector(terms: tuple[str, ...]) -> Floats:
    places = [place for term in terms for place in _places(term)]
    counts: Floats = np.bincount(np.array(places, np.int64), minlength=WIDTH).astype(np.float64)
    return np.minimum(counts, _FINEST)


@lru_cache(maxsize=65536)
def _places(term: str) -> tuple[int, ...]:
    marked = f"^{term}$"
    parts = [marked, *(marked[start : start + _GRAM] for start in range(len(marked) - _GRAM + 1))]
    return tuple(zlib.crc32(part.encode("utf-8", "surrogatepass")) % WIDTH for part in parts)
