"""Words that are split by signs, or run together, put right: for judges that read words.

Reflex finds its signatures among the letters alone. A judge of words needs words: single letters with signs between are
joined, so are halves that are no words and make one of the lexicon's; what is run together is taken apart into words of
the lexicon and common ones, if nearly all of it is such words.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, islice

from actors.text.decoding.likely import has_letters_apart
from actors.text.folding import fold
from actors.text.judge.lexicon import lexicon
from actors.text.rewriting import COMMON
from actors.text.terms import grammar

_SIGN = r"[^\w\s]|_"
# Single letters: with signs between, and two blanks or one between words.
_LETTERS = re.compile(rf"(?<![^\W_])[^\W\d_](?:(?:{_SIGN}|\ufe0f){{1,3}}\s?[^\W\d_](?![^\W_])){{4,}}")
_PUNCTUATION = ".,;:!?\"'()[]"
_FEW_LETTERS = re.compile(rf"(?<![^\W_])[^\W\d_](?:(?:{_SIGN}|\ufe0f){{1,3}}[^\W\d_](?![^\W_])){{1,3}}")
_IN_LETTERS = re.compile(rf"(?:{_SIGN})+\s?")
_HALVES = re.compile(rf"(?<![^\W_])[^\W\d_]{{2,12}}(?:(?:{_SIGN}){{1,2}}[^\W\d_]{{2,12}}){{1,3}}(?![^\W_])")
_AT_LINE_END = re.compile(r"[-\u2010\u2011]\r?\n(?=[^\W\d_])")
_LINE_ENDS = tuple(sign + end for sign in "-\u2010\u2011" for end in ("\n", "\r\n"))
_PIECES = re.compile(r"[^\W\d_]+")
_LONG = re.compile(r"[^\W\d_]{16,}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MOST_TOKENS, _MOST_LETTERS = 2_048, 1_024
_AROUND = 16
"""Tokens on either side of one that is put right: an order has others that are whole."""

_RUN, _SHORTEST_WHOLE, _FEWEST_HALVES, _FEWEST_WORDS = 16, 5, 2, 3
_LONGEST_WORD, _LONGEST_TOKEN = 16, 40
_KNOWN_SHARE = 0.85
_ENDINGS = ("", "e", "s", "es", "ed", "d", "ing", "ion", "ions", "ation", "al", "y", "ly")
"""Endings that a stem of the lexicon may have here: any at all would take in the words behind it."""

_LONGEST_ENDING = max(map(len, _ENDINGS))
_UNKNOWN_COST, _WORD_COST = 3.0, 1.0


def splitting(text: str) -> Iterator[str]:
    """Yield a text with its split words joined, if it has any, and with what is run together taken apart."""
    said = text
    if has_letters_apart(text):
        said = _LETTERS.sub(_together, text)
        if said != text:
            # Where long words are split, short ones are as well.
            said = _FEW_LETTERS.sub(_together, said)
    if any(map(said.__contains__, _LINE_ENDS)):
        said = _AT_LINE_END.sub("-", said)
    tokens = said.split()
    put_right = _put_right(
        token for token in dict.fromkeys(tokens) if len(token) >= _RUN or not token.strip(_PUNCTUATION).isalpha()
    )
    if put_right:
        yield " ".join(_around(tokens, put_right))
    elif said.count("\n") == text.count("\n") and said != text:
        yield said


def _around(tokens: Sequence[str], put_right: Mapping[str, str]) -> Iterator[str]:
    """Yield the tokens that stand around those that are put right, and these as they are then."""
    upto = 0
    for place, token in enumerate(tokens):
        if token in put_right:
            begin = max(upto, place - _AROUND)
            upto = min(len(tokens), place + _AROUND + 1)
            yield from (put_right.get(each, each) for each in tokens[begin:upto])


def _together(match: re.Match[str]) -> str:
    return _IN_LETTERS.sub("", match[0])


def _put_right(tokens: Iterable[str]) -> dict[str, str]:
    """Return what some tokens are once halves are joined and words taken apart; for those that this changes."""
    halved: list[str] = []
    apart: dict[str, str] = {}
    left = _MOST_LETTERS
    for token in islice(tokens, _MOST_TOKENS):
        if _RUN <= len(token) <= left:
            said = _LONG.sub(_taken_apart, token)
            if said != token:
                left -= len(token)
                apart[token] = said
                continue
        if len(token) <= _LONGEST_TOKEN:
            halved.append(token)
    halves = {token: joined for token in _with_halves(halved) if (joined := _joined(token))}
    # A single word may be split by a slip of the pen.
    return {**(halves if len(halves) >= _FEWEST_HALVES else {}), **apart}


def _with_halves(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the tokens that have halves: looked for in all of them at once, one a line."""
    lines = "\n".join(tokens)
    ends = list(accumulate(len(token) + 1 for token in tokens))
    last = -1
    for match in _HALVES.finditer(lines):
        place = bisect_right(ends, match.start(), max(last, 0))
        if place != last:
            yield tokens[place]
        last = place


def _joined(token: str) -> str:
    """Return a token with its halves joined, if they are no words and make one; else nothing."""
    match = _HALVES.search(token)
    if match is None:
        return ""
    pieces = _PIECES.findall(fold(match[0]))
    whole = "".join(pieces)
    if len(whole) < _SHORTEST_WHOLE or not is_word(whole) or all(map(is_word, pieces)):
        return ""
    return token[: match.start()] + "".join(_PIECES.findall(match[0])) + token[match.end() :]


def _taken_apart(match: re.Match[str]) -> str:
    words = _CAMEL.sub(" ", match[0])
    parts = words.split()
    if len(parts) >= _FEWEST_WORDS and 2 * sum(len(part) for part in parts if is_word(part.lower())) >= len(match[0]):
        return words
    return words_of(match[0].lower()) or match[0]


@lru_cache(maxsize=256)
def words_of(letters: str) -> str:
    """Return the words that were run together, or nothing where too few of them are known."""
    known = _beginnings()
    size = len(letters)
    costs, begins = (
        [place * _UNKNOWN_COST for place in range(size + 1)],
        [max(0, place - 1) for place in range(size + 1)],
    )
    for start in range(size):
        cost = costs[start] + _UNKNOWN_COST
        if cost < costs[start + 1]:
            costs[start + 1], begins[start + 1] = cost, start
        cost = costs[start] + _WORD_COST
        for end in range(start + 1, min(size, start + _LONGEST_WORD) + 1):
            word = letters[start:end]
            # Beyond a beginning that no word has there are endings of the words up to it, and nothing else.
            if word not in known and letters[start : max(start + 1, end - _LONGEST_ENDING)] not in known:
                break
            if cost < costs[end] and is_word(word):
                costs[end], begins[end] = cost, start
    parts: list[str] = []
    end = size
    while end:
        parts.append(letters[begins[end] : end])
        end = begins[end]
    words = [part for part in parts if len(part) > 1]
    if len(words) < _FEWEST_WORDS or sum(map(len, words)) < _KNOWN_SHARE * size:
        return ""
    return " ".join(reversed(parts))


@lru_cache(maxsize=16_384)
def is_word(word: str) -> bool:
    """Return whether the lexicon or the list of common words has a word."""
    if word in _plain() or word in lexicon().exact:
        return len(word) > 1
    stems = lexicon().stems
    return any(word[: len(word) - len(ending)] in stems for ending in _ENDINGS if word.endswith(ending))


@cache
def _plain() -> frozenset[str]:
    return frozenset(word for word in (*COMMON, *grammar()) if len(word) > 1)


@cache
def _beginnings() -> frozenset[str]:
    words = (*_plain(), *lexicon().exact, *lexicon().stems)
    return frozenset(word[:length] for word in words for length in range(1, len(word) + 1))
