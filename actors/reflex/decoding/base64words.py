"""Finds possible base64 in a text: words that mix cases or digits as words of a language rarely do.

Base64 split by white space is a series of such words. Only one in a dozen pieces of four characters has a single case.
So a single plain word between two mixed ones belongs to the series.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MIN_DIGITS = 11
"""Fewest characters of a series: the encoded length of eight letters, as many as the shortest phrase of reflex's
smallest library has (profile ``seed``)."""

LONG_WORD = 16
"""A mixed word of this length likely starts its series; if the first word is shorter, its neighbours are tried, too.

A long word may still be something else, such as a key, right before the run, perhaps with a plain word between. So the
next two words are tried as well if their digits begin within a group of four.
"""

FEW_WORDS = 256
"""Up to this many words are examined one by one; for more, sums over the whole text are faster.

A text that is one run of base64 is a single word.
"""

MAX_STARTS = 8
"""Most words of a series that are tried as its first word."""

Flags = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]

_OTHER, _SPACE, _PADDING, _SYMBOL, _DIGIT, _UPPER, _LOWER = range(7)
"""Kinds of characters. Those from ``_SYMBOL`` (one of ``+/-_``) on are digits of base64."""


def _kind(char: str) -> int:
    if not char.isascii():
        return _OTHER
    if char.isalpha():
        return _LOWER if char.islower() else _UPPER
    if char.isdigit():
        return _DIGIT
    return _SPACE if char.isspace() else _SYMBOL if char in "+/-_" else _PADDING if char == "=" else _OTHER


_KINDS = bytes(_kind(chr(code)) for code in range(256))
# Two successive kinds of characters that make a word mixed.
_MIXED_PAIRS = (
    (_LOWER, _UPPER),
    (_LOWER, _DIGIT),
    (_DIGIT, _LOWER),
    (_UPPER, _DIGIT),
    (_DIGIT, _UPPER),
    (_UPPER, _LOWER),
)

MIXTURES = (*(bytes(pair) for pair in _MIXED_PAIRS[:-1]), bytes((_UPPER, _UPPER, _LOWER)))
"""Kinds of characters in a row: a text with a mixed word contains at least one of these.

A word with one capital at its beginning is not mixed, so a capital before a small letter needs another before it.
"""

_IS_MIXED = np.zeros(64, dtype=bool)
_IS_MIXED[[8 * first + second for first, second in _MIXED_PAIRS]] = True


class _Words(NamedTuple):
    """For each word its start and end, and whether padding follows.

    ``near``: only white space separates it from the word before.
    """

    starts: Offsets
    ends: Offsets
    padded: Flags
    near: Flags


class WordRuns(NamedTuple):
    """Series of words, in order: the start and end of the likeliest digits of each, and the alternatives.

    ``firsts`` and ``lasts`` are the indexes of the first and last word of each series in ``words``.
    """

    starts: Offsets
    ends: Offsets
    words: _Words
    firsts: Offsets
    lasts: Offsets
    several: Flags
    """Whether a series may have other starts or ends than the likeliest."""

    def spans(self, index: int) -> tuple[tuple[int, int], ...]:
        """Return the spans that the digits of a series may have, the likeliest first."""
        return _spans(self.words, int(self.firsts[index]), int(self.lasts[index]))


def kinds_of(ascii_text: bytes) -> bytes:
    """Return the kind of every character: lower, upper, digit, base64 symbol, padding, white space, or other."""
    return ascii_text.translate(_KINDS)


def runs_of_words(kinds: bytes) -> WordRuns | None:
    """Return the series of mixed words that are long enough, from the kinds of a text's characters; None for none."""
    codes = np.frombuffer(kinds, dtype=np.uint8)
    in_word = codes >= _SYMBOL
    edges = np.flatnonzero(in_word[1:] != in_word[:-1]) + 1
    edges = np.concatenate((([0] if in_word[0] else []), edges, ([len(codes)] if in_word[-1] else []))).astype(np.int64)
    starts, ends = edges[::2], edges[1::2]
    mixed = _mixed_words(codes, in_word, starts, ends)
    near = _neighbours(codes, starts, ends)
    # A plain word between two mixed neighbours belongs to the series.
    in_series = mixed.copy()
    in_series[1:-1] |= mixed[:-2] & mixed[2:] & near[:-1] & near[1:]
    words = np.flatnonzero(in_series)
    if not len(words):
        return None
    is_first = np.concatenate(([True], (np.diff(words) > 1) | ~near[words[1:] - 1]))
    firsts, lasts = words[is_first], words[np.concatenate((is_first[1:], [True]))]
    # Series of too few characters are dropped.
    lengths = np.concatenate(([0], np.cumsum(ends - starts)))
    long_enough = lengths[lasts + 1] - lengths[firsts] >= MIN_DIGITS
    firsts, lasts = firsts[long_enough], lasts[long_enough]
    if not len(firsts):
        return None
    near = np.concatenate(([False], near, [False]))
    # A plain word after a series may belong to it, and surely does if padding follows it.
    padded = (codes.take(ends, mode="clip") == _PADDING) & (ends < len(codes))
    nexts = np.minimum(lasts + 1, len(starts) - 1)
    word_follows, padded_word_follows = near[lasts + 1], near[lasts + 1] & padded[nexts]
    may_start_elsewhere = ends[firsts] - starts[firsts] < LONG_WORD
    out_of_step = np.zeros(len(firsts), dtype=bool)
    for skipped in (1, 2):
        digits_before = lengths[np.minimum(firsts + skipped, lasts)] - lengths[firsts]
        out_of_step |= digits_before % 4 != 0
    several = np.where(may_start_elsewhere, near[firsts] | (lasts > firsts), out_of_step)
    several |= word_follows & ~padded_word_follows
    words_at = _Words(starts, ends, padded, near)
    return WordRuns(
        starts[firsts], np.where(padded_word_follows, ends[nexts], ends[lasts]), words_at, firsts, lasts, several
    )


def _neighbours(codes: npt.NDArray[np.uint8], starts: Offsets, ends: Offsets) -> Flags:
    """Return for every word but the last whether only white space separates it from the next."""
    begins, closes = ends[:-1], starts[1:]
    near: Flags = (codes[begins] == _SPACE) & (codes[closes - 1] == _SPACE)
    # A gap that begins and ends with white space is examined if there is anything between.
    long_gaps = np.flatnonzero(near & (closes - begins > 2))
    if len(long_gaps):
        separators = np.concatenate(([0], np.cumsum((codes == _OTHER) | (codes == _PADDING), dtype=np.int32)))
        near[long_gaps] = separators[begins[long_gaps]] == separators[closes[long_gaps]]
    return near


def _mixed_words(codes: npt.NDArray[np.uint8], in_word: Flags, starts: Offsets, ends: Offsets) -> Flags:
    """Return for every word whether it is mixed.

    Words that only begin with a capital are not, nor is the exponent of a number (``1.5e-07``).
    """
    is_mixed = _IS_MIXED.take(codes[:-1] * 8 + codes[1:])
    capital = (codes[:-1] == _UPPER) & (codes[1:] == _LOWER)
    capital[1:] &= ~in_word[:-2]
    is_mixed &= ~capital
    letter = (codes[1:-2] == _LOWER) | (codes[1:-2] == _UPPER)
    exponent = (codes[:-3] == _DIGIT) & letter & (codes[2:-1] == _SYMBOL) & (codes[3:] == _DIGIT)
    is_mixed[: len(exponent)] &= ~exponent
    if len(starts) <= FEW_WORDS:
        pairs = zip(starts.tolist(), (ends - 1).tolist(), strict=True)
        return np.array([is_mixed[start:end].any() for start, end in pairs], dtype=bool)
    counts = np.concatenate(([0], np.cumsum(is_mixed, dtype=np.int32)))
    return np.asarray(counts[ends - 1] > counts[starts])


def _spans(words: _Words, first: int, last: int) -> tuple[tuple[int, int], ...]:
    """Return the spans that the digits of a series may have.

    They may begin with a plain word before the series, or later if words of the surrounding text are mixed too; and
    they may end with a plain word. A wrong word before the run usually spoils the decoding; one after it only adds a
    wrong letter or two.
    """
    begin = int(words.starts[first])
    starts = [begin]
    if int(words.ends[first]) - begin < LONG_WORD:
        starts += [int(words.starts[first - 1])] if words.near[first] else []
        starts += words.starts[first + 1 : min(last, first + MAX_STARTS) + 1].tolist()
    else:
        digits_before = 0
        for word in range(first, min(last, first + 2)):
            digits_before += int(words.ends[word] - words.starts[word])
            starts += [int(words.starts[word + 1])] if digits_before % 4 else []
    ends = [int(words.ends[last])]
    if last + 1 < len(words.starts) and words.near[last + 1]:
        next_end = int(words.ends[last + 1])
        ends = [next_end] if words.padded[last + 1] else [*ends, next_end]
    return tuple((start, end) for start in starts for end in ends)
