"""Hashes of symbols and of n-grams of them, which the classifiers of texts have as features. Exact on any machine."""

import zlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint32]
"""Hashed features."""

# Odd 64-bit constants of well-known hash functions (2^64 divided by the golden ratio, and a prime of xxHash).
_MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@lru_cache(maxsize=131_072)
def symbol_hash(symbol: str) -> int:
    """Return 64 bits of a symbol, made of two checksums: one alone is too short to keep n-grams distinct."""
    data = symbol.encode("utf-8", "surrogatepass")
    return zlib.crc32(data) << 32 | zlib.crc32(data[::-1], 0x5A17)


def mix(first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the hashes of pairs: of each n-gram in ``first`` and the symbol in ``second`` that follows it."""
    mixed = (first * _MIX_A) ^ ((second + _MIX_B) * _MIX_B)
    folded: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(29))
    return folded


def finish(hashes: npt.NDArray[np.uint64], salts: npt.NDArray[np.uint64] | int) -> Keys:
    """Return the features of n-grams; salts keep apart those of different kinds."""
    mixed = (hashes ^ np.asarray(salts, dtype=np.uint64)) * _MIX_A
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _MIX_B
    return (mixed >> np.uint64(32)).astype(np.uint32)
