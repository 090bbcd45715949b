"""Signatures: a text as the set of its shingles, three words each. Pure.

By signatures, texts are compared with precedents (earlier situations with their outcome).

Two begin marks precede the text and two end marks follow it, so that texts of one or two words have shingles too, and
the beginning and end of a text count. A shingle is a linear combination, modulo 2^64 and with odd factors, of the
64-bit BLAKE2b hashes of its three words: it is the same in every process, and is computed for a whole text at once. A
signature covers the first :data:`MOST_WORDS` words.
"""

from functools import lru_cache

import numpy as np

from actors.intuition.index import Hashes
from actors.intuition.text_words import hash_of, read

MOST_WORDS = 4096
"""Most words of a text that its signature covers."""

_BEGIN, _END = hash_of("begin", "mark"), hash_of("end", "mark")
# Odd, so that each word's hash counts in full; different, so that the order of words counts.
_FACTORS = tuple(hash_of(name, "factor") | 1 for name in ("first", "second", "third"))
_FIRST, _SECOND, _THIRD = (np.uint64(factor) for factor in _FACTORS)
_MASK = 2**64 - 1  # hashes have 64 bits
# What marks add to a shingle: the digits are the places in it that hold a mark.
_BEGIN_1 = np.uint64(_BEGIN * _FACTORS[0] & _MASK)
_BEGIN_12 = np.uint64(_BEGIN * (_FACTORS[0] + _FACTORS[1]) & _MASK)
_END_3 = np.uint64(_END * _FACTORS[2] & _MASK)
_END_23 = np.uint64(_END * (_FACTORS[1] + _FACTORS[2]) & _MASK)
_BEFORE = np.array([_BEGIN, _BEGIN], np.uint64)
_AFTER = np.array([_END, _END], np.uint64)


def signature_of(words: Hashes) -> Hashes:
    """Return the ascending distinct shingles of a text given by its words' hashes; none for a text without words."""
    if not len(words):
        return words
    return distinct(shingles_of(np.concatenate((_BEFORE, words[:MOST_WORDS], _AFTER))))


def shingles_of(words: Hashes) -> Hashes:
    """Return the shingles of successive words, in order, where marks count as words; two fewer than there are words."""
    shingles: Hashes = words[:-2] * _FIRST + words[1:-1] * _SECOND + words[2:] * _THIRD
    return shingles


def opening_shingles(first: Hashes, second: Hashes) -> tuple[Hashes, Hashes]:
    """Return the two shingles with begin marks of texts that begin with these words."""
    return _BEGIN_12 + first * _THIRD, _BEGIN_1 + first * _SECOND + second * _THIRD


def closing_shingles(last_but_one: Hashes, last: Hashes) -> tuple[Hashes, Hashes]:
    """Return the two shingles with end marks of texts that end with these words."""
    return last_but_one * _FIRST + last * _SECOND + _END_3, last * _FIRST + _END_23


def distinct(shingles: Hashes) -> Hashes:
    """Return the shingles ascending, each once, without 0, which stands for none."""
    ordered = np.sort(shingles)
    keep = np.empty(len(ordered), np.bool_)
    keep[0] = ordered[0] != 0
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def to_bytes(signature: Hashes) -> bytes:
    """Return a signature in the form kept in states: 8 bytes for each shingle, little-endian."""
    return signature.astype("<u8").tobytes()


@lru_cache(maxsize=8)
def text_signature(text: str) -> Hashes:
    """Return the signature of a whole text (read-only); it is cached, since a precedent's is needed twice in a row."""
    return signature_of(read(text, most_words=MOST_WORDS).words)


@lru_cache(maxsize=1024)
def situation_hash(situation: str) -> int:
    """Return the hash of a kind of situation, a name that the caller of an input chooses."""
    return hash_of(situation, "situation")
