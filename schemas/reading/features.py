"""A text as numbers: hashed n-grams of words and of word classes, by place.

All hashes are integers computed here, so that they are the same in every process, on every machine and in every
version of the libraries.
"""

import zlib
from bisect import bisect_left
from functools import cache, lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.reading.folding import fold
from schemas.reading.lexicon import classify, lexicon
from schemas.reading.tokens import split_tokens

FIRST_TOKENS, LAST_TOKENS = 12_288, 4_096
"""Tokens looked at from either end of one text; callers cut longer texts first (``excerpt``), to no more than these."""

PAIR_SPAN = 10
"""Two classes are a pair when they stand at most this many tokens apart, with at most five others between them."""

SEGMENT_LEAST, SEGMENT_MOST = 10, 40
"""A segment ends with a sentence or line from the first length on, and at the second at the latest."""

Keys = npt.NDArray[np.uint32]

_MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_SALTS = np.array([11, 23, 37, 51, 67, 83], dtype=np.uint64)
"""One for each kind of n-gram: a symbol, a word of a class, two symbols, three, a pair of classes, a chain of three."""

_SUFFIXES = ("ings", "ing", "edly", "ed", "es", "s", "ly")
_ENDS = frozenset(".!?;\u3002\uff01\uff1f")
_OPEN_ENDS = _ENDS | {"\n"}
_NEIGHBOURS = 6


class Reading(msgspec.Struct, frozen=True, eq=False):
    """A text as numbers.

    ``keys[i]`` is the hash of an n-gram that ends at token ``places[i]``; ``starts`` are the first tokens of the
    segments, ascending from 0; ``kinds`` is the class of each token, ``lexicon.NO_CLASS`` for most. ``unread`` counts
    the tokens that were not looked at.
    """

    keys: Keys
    places: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    unread: int = 0


def read(text: str) -> Reading:
    """Return a text as numbers; looks at no more than its first and last tokens."""
    tokens = split_tokens(fold(text))
    unread = max(0, len(tokens) - FIRST_TOKENS - LAST_TOKENS)
    if unread:
        tokens = tokens[:FIRST_TOKENS] + tokens[-LAST_TOKENS:]
    words, classes = classify(tokens)
    kinds = np.array(classes, dtype=np.int64)
    keys, places = _ngrams(words, kinds)
    return Reading(keys, places, _segments(words), kinds, unread)


@lru_cache(maxsize=65536)
def _symbol_hash(symbol: str) -> int:
    # Two checksums of different text give 64 bits; either alone is too short to keep n-grams apart.
    data = symbol.encode("utf-8", "surrogatepass")
    return zlib.crc32(data) << 32 | zlib.crc32(data[::-1], 0x5A17)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return an ASCII word without a common English ending, any other word as it is."""
    if word.isascii():
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 4:
                return word[: -len(suffix)]
    return word


@lru_cache(maxsize=65536)
def _plain_hash(word: str) -> int:
    if word.isdecimal():
        return _symbol_hash("<number>")
    return _symbol_hash("<line>" if word[0] == "\n" else stem(word))


@cache
def _class_hashes() -> tuple[int, ...]:
    return tuple(_symbol_hash(f"<{name}>") for name in lexicon().classes)


def _mix(first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = (first * _MIX_A) ^ ((second + _MIX_B) * _MIX_B)
    folded: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(29))
    return folded


def _finish(hashes: npt.NDArray[np.uint64], salts: npt.NDArray[np.uint64]) -> Keys:
    mixed = (hashes ^ salts) * _MIX_A
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _MIX_B
    return (mixed >> np.uint64(32)).astype(np.uint32)


def _ngrams(words: list[str], kinds: npt.NDArray[np.int64]) -> tuple[Keys, npt.NDArray[np.int64]]:
    """Return the hashed n-grams and the token each ends at.

    Words of a class count as that class in n-grams of one to three symbols, and as themselves once more. Classes near
    each other are pairs and chains of three, whatever words stand between them.
    """
    class_hashes = _class_hashes()
    symbols = np.array(
        [
            _plain_hash(word) if kind < 0 else class_hashes[kind]
            for word, kind in zip(words, kinds.tolist(), strict=True)
        ],
        dtype=np.uint64,
    )
    at = np.arange(len(words), dtype=np.int64)
    classed = np.nonzero(kinds >= 0)[0]
    own = np.array([_symbol_hash(words[place]) for place in classed.tolist()], dtype=np.uint64)
    bigrams = _mix(symbols[:-1], symbols[1:])
    trigrams = _mix(bigrams[:-1], symbols[2:])
    near = symbols[classed]
    gaps = [(gap, classed[gap:] - classed[:-gap] <= PAIR_SPAN) for gap in range(1, _NEIGHBOURS)]
    firsts = np.concatenate([near[:-gap][close] for gap, close in gaps])
    seconds = np.concatenate([near[gap:][close] for gap, close in gaps])
    chained = classed[2:] - classed[:-2] <= PAIR_SPAN + 4
    chains = _mix(_mix(near[:-2], near[1:-1]), near[2:])[chained]
    hashes = (symbols, own, bigrams, trigrams, _mix(firsts, seconds), chains)
    ends = (at, classed, at[1:], at[2:], *(classed[gap:][close] for gap, close in gaps), classed[2:][chained])
    # All kinds at once: of a text's few hundred n-grams, most of what is computed is the calls.
    salts = np.repeat(_SALTS, [len(each) for each in hashes])
    return _finish(np.concatenate(hashes), salts), np.concatenate(ends)


def _segments(words: list[str]) -> npt.NDArray[np.int64]:
    # How many words have gone by at each end of a sentence or line.
    ends = [number for number, word in enumerate(words, 1) if word[0] in _OPEN_ENDS and _ends(word)]
    starts = [0]
    while True:
        start = starts[-1]
        place = bisect_left(ends, start + SEGMENT_LEAST)
        close = min(ends[place] if place < len(ends) else len(words) + 1, start + SEGMENT_MOST)
        if close > len(words):
            break
        starts.append(close)
    # A short rest belongs to the segment before it; an empty text is one empty segment.
    if len(starts) > 1 and len(words) - starts[-1] < SEGMENT_LEAST // 2:
        starts.pop()
    return np.array(starts, dtype=np.int64)


def _ends(word: str) -> bool:
    return word in _ENDS or word[0] == "\n"
