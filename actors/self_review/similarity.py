"""Similarity of lists of terms and of embeddings: cosines in millionths, exact on any machine.

Vectors are first rounded to integers that are small enough for sums of their products to be exact in 64-bit floats,
whatever order a machine's fast routines add them in. Division and square root are then rounded as IEEE 754 defines.
"""

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

MICRO = 1_000_000
"""Millionths in one."""

WIDTH = 256
"""Dimensions of a vector of terms."""

_LARGEST = float(1 << 20)
"""Largest absolute value in a vector. With it, sums of 4,096 products stay below 2^53."""

_PART_CHARACTERS = 3
"""Length of the parts of a term that are hashed with it, so that similar terms have similar vectors."""

_LONGEST_CACHED_TERMS = 256
"""Longest list of terms, in characters, whose vector is cached; a vector takes 2 KB."""

_LONGEST_CACHED_TERM = 32
"""Longest term, in characters, whose indices in a vector are cached."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def term_vectors(texts: Sequence[tuple[str, ...]]) -> Floats:
    """Return a vector for each list of terms: counts of the hashed terms and of their hashed parts."""
    return np.array([_vector(terms) for terms in texts])


def embedding_vectors(embeddings: Sequence[tuple[float, ...]]) -> Floats:
    """Return embeddings as integers. One with another width than the first non-empty one counts as unknown (zeros)."""
    width = next((len(each) for each in embeddings if each), 0)
    vectors = np.zeros((len(embeddings), width))
    for row, embedding in enumerate(embeddings):
        if len(embedding) == width:
            vectors[row] = embedding
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    largest[largest == 0.0] = 1.0
    scaled: Floats = np.rint(vectors / largest * _LARGEST)
    return scaled


def cosines(vectors: Floats) -> Ints:
    """Return the cosine of each pair of rows, in millionths; with a zero row it is 0, even with itself."""
    products = vectors @ vectors.T
    lengths = np.sqrt(products.diagonal())
    lengths[lengths == 0.0] = 1.0
    found: Ints = np.rint(products / (lengths[:, None] * lengths) * MICRO).astype(np.int64)
    return found


def _vector(terms: tuple[str, ...]) -> Floats:
    # The same memories are recalled again and again, so their vectors are cached. Long ones are rare and would fill the
    # cache.
    return _cached_vector(terms) if sum(map(len, terms)) <= _LONGEST_CACHED_TERMS else _new_vector(terms)


def _new_vector(terms: tuple[str, ...]) -> Floats:
    indices = [index for term in terms for index in _indices(term)]
    counts: Floats = np.bincount(np.array(indices, np.int64), minlength=WIDTH).astype(np.float64)
    return np.minimum(counts, _LARGEST)


def _indices(term: str) -> Sequence[int]:
    return _cached_indices(term) if len(term) <= _LONGEST_CACHED_TERM else _new_indices(term)


def _new_indices(term: str) -> tuple[int, ...]:
    marked = f"^{term}$"  # so that parts at the start and the end of a term differ from those within it
    parts = [marked, *(marked[start : start + _PART_CHARACTERS] for start in range(len(marked) - _PART_CHARACTERS + 1))]
    return tuple(zlib.crc32(part.encode("utf-8", "surrogatepass")) % WIDTH for part in parts)


_cached_vector = lru_cache(maxsize=4096)(_new_vector)
_cached_indices = lru_cache(maxsize=16384)(_new_indices)
