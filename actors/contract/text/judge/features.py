"""The features of a text, for linear classifiers: hashed n-grams of words and word classes, with their positions.

A *segment* is a sentence, a line, a cell or the like. A word class holds words of similar meaning in instructions to a
model (``lexicon``).

All hashes are integers computed here, so that they are the same in every process, on every machine and with every
version of the libraries.
"""

from functools import cache, lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.hashing import Keys, finish, mix, symbol_hash
from actors.contract.text.judge.conjunctions import conjunction_names, conjunctions_at
from actors.contract.text.judge.lexicon import classify, lexicon
from actors.contract.text.judge.passages import Occurrences, occurrences_of
from actors.contract.text.tokens import tokens_of

FIRST_TOKENS, LAST_TOKENS = 24_576, 8_192
"""Tokens that are read at either end of one text; callers shorten longer texts first (``excerpt``)."""

PAIR_SPAN = 10
"""Two classes form a pair if they are at most this many tokens apart, with at most four others between them."""

SEGMENT_LEAST, SEGMENT_MOST = 2, 40
"""Fewest words of a sentence to be a segment of its own, and the token count at which a segment is cut."""

_CHAIN_SPAN = PAIR_SPAN + 4
"""Three successive classes form a chain if the first and the last are at most this many tokens apart."""

Integers = npt.NDArray[np.int64]

_SALTS = np.array([11, 23, 37, 51, 67, 83, 97, 113, 131, 149], dtype=np.uint64)
"""One salt for each kind of n-gram, in this order.

A symbol; a word of a class; two symbols; three; a pair of classes; a chain of three; the first symbol of a segment; the
first two; letters of a word; a conjunction.
"""

_LETTERS, _LONGEST_SPELLED = 4, 24
"""Letters of an n-gram of letters, and of the longest word that has such n-grams."""

_SUFFIXES = ("ings", "ing", "edly", "ed", "es", "s", "ly")
# Tokens that end a segment, are a segment of their own, introduce a list item or a quoted line, quote a value, or stand
# before a value.
_ENDS = frozenset(".!?;\u3002\uff01\uff1f")
_ALONE, _BULLETS = frozenset("\n|<"), frozenset("-*+\u2022#>/;%")
_QUOTES, _BEFORE_VALUE = frozenset("\"'*`"), frozenset(",:{[(=\"'*`")
_ENDS_OF_NUMBERS = frozenset(".)")
_LONGEST_NUMBER, _LEADING_MOST = 3, 3
"""Most digits of the number of a list item, and most tokens that introduce an item, such as ``1.`` or ``> -``."""

_NEIGHBOURS = 6
"""A class forms pairs with fewer than this many of the classes that follow it."""


class TextFeatures(msgspec.Struct, frozen=True, eq=False):
    """The features of a text.

    ``found`` are its n-grams, by 32-bit hash. ``segments`` counts its segments, ``tokens`` the tokens that were read,
    and ``unread`` those that were not.
    """

    found: Occurrences
    segments: int
    tokens: int
    unread: int = 0


def read(text: str, decoded_from: str = "") -> TextFeatures:
    """Return the features of a text; reads only its first and last tokens.

    ``decoded_from`` is the kind of decoded view that the text is: it adds one n-gram to each segment.
    """
    tokens = tokens_of(text)
    unread = max(0, len(tokens) - FIRST_TOKENS - LAST_TOKENS)
    if unread:
        tokens = tokens[:FIRST_TOKENS] + tokens[-LAST_TOKENS:]
    words, classes = classify(tokens)
    kinds = np.array(classes, dtype=np.int64)  # the number of each word's class, NO_CLASS for most
    starts = _segments(words)
    keys, begins, ends = _ngrams(words, kinds, starts)
    if decoded_from:
        keys = np.append(keys, np.full(len(starts), _view_key(decoded_from), np.uint32))
        begins, ends = np.append(begins, starts), np.append(ends, starts)
    segment_of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, max(len(words), 1))))
    found = occurrences_of(keys, segment_of[begins], segment_of[ends])
    return TextFeatures(found, len(starts), len(words), unread)


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
        return symbol_hash("<number>")
    return symbol_hash("<line>" if word[0] == "\n" else stem(word))


@cache
def _class_hashes() -> npt.NDArray[np.uint64]:
    return np.array([symbol_hash(f"<{name}>") for name in lexicon().classes], dtype=np.uint64)


def _ngrams(words: list[str], kinds: Integers, starts: Integers) -> tuple[Keys, Integers, Integers]:
    """Return the hashed n-grams, with the first and last token of each.

    In n-grams of one to three symbols, words of a class count as the class; they also count once as themselves. Classes
    near each other form pairs and chains of three, whatever words are between them.
    """
    symbols = np.array(list(map(_plain_hash, words)), dtype=np.uint64)
    at = np.arange(len(words), dtype=np.int64)
    classed = np.nonzero(kinds >= 0)[0]
    symbols[classed] = _class_hashes()[kinds[classed]]
    own = np.array([symbol_hash(words[index]) for index in classed.tolist()], dtype=np.uint64)
    bigrams = mix(symbols[:-1], symbols[1:])
    trigrams = mix(bigrams[:-1], symbols[2:])
    near = symbols[classed]
    gaps = [(gap, classed[gap:] - classed[:-gap] <= PAIR_SPAN) for gap in range(1, _NEIGHBOURS)]
    firsts = np.concatenate([near[:-gap][close] for gap, close in gaps])
    seconds = np.concatenate([near[gap:][close] for gap, close in gaps])
    chained = classed[2:] - classed[:-2] <= _CHAIN_SPAN
    chains = mix(mix(near[:-2], near[1:-1]), near[2:])[chained]
    opening = starts[starts < len(words)]
    two = opening[opening + 1 < len(words)]
    letters = list(map(_letter_hashes, words))
    spelled = np.repeat(at, list(map(len, letters)))
    conjunctions, conjunction_places = conjunctions_at(kinds)
    conjunction_hashes = np.array(_conjunction_hashes(), dtype=np.uint64)[conjunctions]
    hashes = (
        symbols,
        own,
        bigrams,
        trigrams,
        mix(firsts, seconds),
        chains,
        symbols[opening],
        bigrams[two],
        np.concatenate((_NO_HASHES, *letters)),
        conjunction_hashes,
    )
    begins = (
        at,
        classed,
        at[:-1],
        at[:-2],
        *(classed[:-gap][close] for gap, close in gaps),
        classed[:-2][chained],
        opening,
        two,
        spelled,
        conjunction_places,
    )
    ends = (
        at,
        classed,
        at[1:],
        at[2:],
        *(classed[gap:][close] for gap, close in gaps),
        classed[2:][chained],
        opening,
        two + 1,
        spelled,
        conjunction_places,
    )
    # All kinds at once: for the few hundred n-grams of a text, most of the time is the overhead of calls.
    salts = np.repeat(_SALTS, [len(each) for each in hashes])
    return finish(np.concatenate(hashes), salts), np.concatenate(begins), np.concatenate(ends)


_NO_HASHES = np.zeros(0, dtype=np.uint64)


@lru_cache(maxsize=32768)
def _letter_hashes(word: str) -> npt.NDArray[np.uint64]:
    """Return the hashes of a word's sequences of four letters, with its ends marked; none for short or long tokens."""
    if not _LETTERS <= len(word) <= _LONGEST_SPELLED or not word[0].isalpha() or " " in word:
        return _NO_HASHES
    marked = f"^{word}$"
    found = [symbol_hash(marked[start : start + _LETTERS]) for start in range(len(marked) - _LETTERS + 1)]
    return np.array(found, dtype=np.uint64)


@cache
def _conjunction_hashes() -> tuple[int, ...]:
    return tuple(symbol_hash(f"<&{name}>") for name in conjunction_names())


@cache
def _view_key(kind: str) -> int:
    return int(finish(np.array([symbol_hash(f"<view {kind}>")], dtype=np.uint64), _SALTS[-1:])[0])


def _segments(words: list[str]) -> Integers:
    """Return the first token of each segment: sentences, lines, cells, values; long ones are cut.

    Segments of their own are line ends, bars, and whatever introduces an item of a list, a comment line, a line of
    quoted mail, a value, or text between tags. So the same sentence is the same segment wherever it occurs.
    """
    if not words:
        return np.zeros(1, dtype=np.int64)
    # For each token its roles and those of its neighbours; only where a segment may begin is it examined by itself.
    roles = np.fromiter(map(_roles_of, words), dtype=np.uint16, count=len(words))
    words_before = np.concatenate(([0], np.cumsum(roles & _WORD != 0)))
    before = np.concatenate(([_LINE], roles[:-1]))
    # Tokens that introduce an item or a quoted line: first those at the beginning of a line, then those after them.
    leads = (before & _LINE != 0) & (roles & (_BULLET | _NUMBER) != 0)
    begins = (roles & (_LONE | _TAG_END) != 0) | (leads & (roles & _BULLET != 0))
    for _ in range(_LEADING_MOST - 1):
        leads = np.concatenate(([False], leads[:-1]))
        numbered = (before & _NUMBER != 0) & (roles & _AFTER_NUMBER != 0)
        leads &= numbered | ((before & _BULLET != 0) & (roles & _BULLET != 0))
        begins |= leads
    begins |= ((roles & _QUOTE) != 0) & (before & _OPENS_VALUE != 0)
    # Where a segment ends, however short it is.
    forced = begins[:-1].astype(np.bool_) | (roles[1:] & _LONE != 0)
    ends = roles[:-1] & _END != 0
    starts = [0]
    start = 0
    for last in np.flatnonzero(forced | ends).tolist():
        following = last + 1
        while following - start > SEGMENT_MOST:
            start += SEGMENT_MOST
            starts.append(start)
        if (
            forced[last]
            or following - start == SEGMENT_MOST
            or (
                words_before[following] - words_before[start] >= SEGMENT_LEAST
                and not (words[last] == "." and words[following].isdecimal())  # a number with decimals
            )
        ):
            start = following
            starts.append(start)
    return np.array([*starts, *range(start + SEGMENT_MOST, len(words), SEGMENT_MOST)], dtype=np.int64)


_WORD, _LONE, _END, _BULLET, _QUOTE, _OPENS_VALUE, _LINE = (1 << bit for bit in range(7))
_NUMBER, _AFTER_NUMBER, _TAG_END = (1 << bit for bit in range(7, 10))
"""Roles of a token in splitting segments, one bit each; ``_roles_of`` says which tokens have them.

``_LONE``: it is a segment of its own. ``_LINE``: it is a line end.
"""


@lru_cache(maxsize=65536)
def _roles_of(word: str) -> int:
    """Return the roles of a token in splitting segments."""
    first = word[0]
    return (
        _WORD * first.isalpha()
        | _LONE * (first in _ALONE)
        | _END * (word in _ENDS)
        | _BULLET * (word in _BULLETS)
        | _QUOTE * (word in _QUOTES)
        | _OPENS_VALUE * (word in _BEFORE_VALUE)
        | _LINE * (first == "\n")
        | _NUMBER * (len(word) <= _LONGEST_NUMBER and word.isdecimal())
        | _AFTER_NUMBER * (word in _ENDS_OF_NUMBERS)
        | _TAG_END * (word == ">")
    )
