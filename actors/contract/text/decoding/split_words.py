"""Rejoins words that are split by symbols, and separates words that run together, for the trained judges.

Reflex finds its signatures (phrases of attacks) in the letters alone, but a trained judge, a linear classifier, needs
words. Single letters with symbols between them are joined. Two halves are joined if neither is a word and together they
are a word of the lexicon (words that are common in instructions to a model). Letters that run together are separated
into words of the lexicon and common words, if nearly all of them form such words.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate

import numpy as np
from ahocorasick_rs import BytesAhoCorasick, Implementation

from actors.contract.text.decoding.candidate_forms import has_letters_apart
from actors.contract.text.decoding.disguised_stretches import Undecoded, stretches_of
from actors.contract.text.decoding.encoded_words import bounds_of_runs
from actors.contract.text.folding import fold
from actors.contract.text.judge.lexicon import lexicon
from actors.contract.text.rewriting import COMMON_WORDS
from actors.contract.text.terms import stop_words

_SYMBOL = r"[^\w\s]|_"
# Five or more single letters with one to three symbols between them, and perhaps a blank, which separates words.
_LETTERS = re.compile(rf"(?<![^\W_])[^\W\d_](?:(?:{_SYMBOL}|\ufe0f){{1,3}}\s?[^\W\d_](?![^\W_])){{4,}}")
_PUNCTUATION = ".,;:!?\"'()[]"
# Two to four single letters with symbols between them; the symbols between single letters.
_FEW_LETTERS = re.compile(rf"(?<![^\W_])[^\W\d_](?:(?:{_SYMBOL}|\ufe0f){{1,3}}[^\W\d_](?![^\W_])){{1,3}}")
_IN_LETTERS = re.compile(rf"(?:{_SYMBOL})+\s?")
# Two to four parts of words with one or two symbols between them.
_HALVES = re.compile(rf"(?<![^\W_])[^\W\d_]{{2,12}}(?:(?:{_SYMBOL}){{1,2}}[^\W\d_]{{2,12}}){{1,3}}(?![^\W_])")
_ASCII_HALVES = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2,12}(?:[\x00-\x08\x0e-\x1b!-/:-@\[-`{-\x7f]{1,2}[A-Za-z]{2,12}){1,3}(?![A-Za-z0-9])"
)
"""``_HALVES`` for a text in ASCII, which it searches twice as fast."""

_AT_LINE_END = re.compile(r"[-\u2010\u2011]\r?\n(?=[^\W\d_])")
_HYPHENATED_ENDS = tuple(hyphen + end for hyphen in "-\u2010\u2011" for end in ("\n", "\r\n"))
_PIECES = re.compile(r"[^\W\d_]+")
_NOT_LETTERS = re.compile(r"[^\w\n]|[\d_]")
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha() and chr(code) != "\n")
_FIRST_LETTERS = 4
"""Length of the beginnings of words: a long run is examined only if it contains the beginning of a known word."""

_LONG = re.compile(r"[^\W\d_]{16,}")
_IS_LETTER = bytes(chr(code).isascii() and chr(code).isalpha() for code in range(256))
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MOST_TRIED = 65_536
"""Letters in long runs that are tried, from the first on; the rest are counted as not decoded."""

_AROUND = 16
"""Tokens kept on either side of a repaired one: the other words of an instruction may be whole."""

_RUN = 16
"""Fewest letters of a run in which words may run together."""

_SHORTEST_WHOLE, _FEWEST_HALVES = 5, 2
"""Fewest letters of a word that two halves form, and fewest tokens with such halves."""

_FEWEST_WORDS, _LONGEST_WORD, _KNOWN_SHARE = 3, 16, 0.85
"""Fewest words that a run is separated into, most letters of each, and least share of the letters in known words."""

_ENDINGS = ("", "e", "s", "es", "ed", "d", "ing", "ion", "ions", "ation", "al", "y", "ly")
"""Endings that a stem of the lexicon may have here: an arbitrary ending would swallow the following words."""

_UNKNOWN_COST, _WORD_COST = 3.0, 1.0
"""The cost of a letter in no known word, and of a known word: the separation with the least total cost is chosen."""


def rejoin_split_words(text: str) -> Iterator[str | Undecoded]:
    """Yield a text with its split words joined, if it has any, and with words that run together separated."""
    joined = text
    if has_letters_apart(text):
        joined, spans = _with_letters_together(text)
        if spans:
            around = stretches_of(text, spans)
            yield joined if around == text else _with_letters_together(around)[0]
    if any(map(joined.__contains__, _HYPHENATED_ENDS)):
        joined = _AT_LINE_END.sub("-", joined)
    tokens = joined.split()
    repaired, untried = _repaired(
        [token for token in dict.fromkeys(tokens) if len(token) >= _RUN or not token.strip(_PUNCTUATION).isalpha()]
    )
    if untried:
        yield Undecoded(untried)
    if repaired:
        yield " ".join(_around(tokens, repaired))


def _with_letters_together(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text with the letters of its split words joined, and the spans in it where long words were split."""
    spans: list[tuple[int, int]] = []

    def together(match: re.Match[str]) -> str:
        spans.append(match.span())
        return _together(match)

    joined = _LETTERS.sub(together, text)
    # Where long words are split, short ones are, too.
    return (_FEW_LETTERS.sub(_together, joined) if spans else text), spans


def _around(tokens: Sequence[str], repaired: Mapping[str, str]) -> Iterator[str]:
    """Yield the repaired tokens and the tokens around them."""
    upto = 0
    for index, token in enumerate(tokens):
        if token in repaired:
            begin = max(upto, index - _AROUND)
            upto = min(len(tokens), index + _AROUND + 1)
            yield from (repaired.get(each, each) for each in tokens[begin:upto])


def _together(match: re.Match[str]) -> str:
    """Return single letters without the symbols between them."""
    return _IN_LETTERS.sub("", match[0])


def _repaired(tokens: Sequence[str]) -> tuple[dict[str, str], int]:
    """Return the tokens that change when halves are joined and words separated, each with its repaired form.

    Also returns the number of letters that were not tried.
    """
    lines = "\n".join(tokens)
    ends = list(accumulate(len(token) + 1 for token in tokens))
    separated, untried = _separated_words(lines, tokens, ends)
    halves = _joined_halves(lines, tokens, ends)
    # A single joined pair may be a typing error, so a few are required.
    return {**(halves if len(halves) >= _FEWEST_HALVES else {}), **separated}, untried


def _separated_words(lines: str, tokens: Sequence[str], ends: Sequence[int]) -> tuple[dict[str, str], int]:
    """Return the tokens (each on a line) of words that run together, with spaces added; and the letters not tried."""
    tried, untried, found = 0, 0, dict[str, str]()
    for begin, end in _long_runs(lines):
        run = lines[begin:end]
        tried += len(run)
        if tried > _MOST_TRIED:
            untried += len(run)
        elif (words := _separated(run)) != run:
            token = tokens[bisect_right(ends, begin)]
            found[token] = found.get(token, token).replace(run, words)
    return found, untried


def _long_runs(lines: str) -> list[tuple[int, int]]:
    """Return the positions of long runs of letters in which a longer word may begin; plain data has nearly none."""
    if not lines.isascii():
        return [match.span() for match in _LONG.finditer(lines)]
    data = lines.lower().encode()
    runs = bounds_of_runs(np.frombuffer(data.translate(_IS_LETTER), dtype=np.bool_), _RUN)
    if not runs:
        return []
    word_begins = np.array([begin for _, begin, _ in _word_starts().find_matches_as_indexes(data)] or [len(data)])
    starts, ends = np.array(runs).T
    has_word = np.searchsorted(word_begins, ends - _FIRST_LETTERS, side="right") > np.searchsorted(word_begins, starts)
    return [runs[index] for index in np.flatnonzero(has_word).tolist()]


def _joined_halves(lines: str, tokens: Sequence[str], ends: Sequence[int]) -> dict[str, str]:
    """Return the tokens (each on a line) with two halves that are no words but form one, with these joined."""
    found: dict[str, str] = {}
    # Nearly no pair forms a word, so all pairs are checked at once.
    sought = _ASCII_HALVES if lines.isascii() else _HALVES
    wholes = _letters_of("\n".join(sought.findall(lines))).split("\n")
    words = _words()
    if not any(len(whole) >= _SHORTEST_WHOLE and whole in words for whole in wholes):
        return found
    for (index, match), whole in zip(_with_indexes(sought, lines, ends), wholes, strict=True):
        if len(whole) >= _SHORTEST_WHOLE and whole in words and not all(map(is_word, _PIECES.findall(fold(match[0])))):
            token, word = tokens[index], "".join(_PIECES.findall(match[0]))
            found[token] = found.get(token, token).replace(match[0], word)
    return found


def _letters_of(lines: str) -> str:
    """Return the letters of some lines, folded, with the line structure kept."""
    if lines.isascii():
        return lines.lower().encode().translate(None, _NO_LETTERS).decode()
    return _NOT_LETTERS.sub("", fold(lines))


def _with_indexes(sought: re.Pattern[str], lines: str, ends: Sequence[int]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield each match in lines that end at these positions, with the index of its line."""
    index = 0
    for match in sought.finditer(lines):
        index = bisect_right(ends, match.start(), index)
        yield index, match


def _separated(run: str) -> str:
    """Return the words that run together in a run, split at its capitals, else by known words; or the run itself."""
    words = _CAMEL.sub(" ", run)
    parts = words.split()
    if len(parts) >= _FEWEST_WORDS and 2 * sum(len(part) for part in parts if is_word(part.lower())) >= len(run):
        return words
    return words_of(run.lower()) or run


@lru_cache(maxsize=256)
def words_of(letters: str) -> str:
    """Return the words that run together in ``letters``; empty where too few of them are known.

    By dynamic programming: the cheapest separation of each beginning follows from those of the shorter beginnings.
    """
    words, beginnings = _words(), _beginnings()
    size = len(letters)
    costs, begins = (
        [position * _UNKNOWN_COST for position in range(size + 1)],
        [max(0, position - 1) for position in range(size + 1)],
    )
    for start in range(size):
        cost = costs[start] + _UNKNOWN_COST
        if cost < costs[start + 1]:
            costs[start + 1], begins[start + 1] = cost, start
        cost = costs[start] + _WORD_COST
        for end in range(start + 1, min(size, start + _LONGEST_WORD) + 1):
            word = letters[start:end]
            if word not in beginnings:
                break
            if cost < costs[end] and word in words:
                costs[end], begins[end] = cost, start
    parts: list[str] = []
    end = size
    while end:
        parts.append(letters[begins[end] : end])
        end = begins[end]
    found = [part for part in parts if len(part) > 1]
    if len(found) < _FEWEST_WORDS or sum(map(len, found)) < _KNOWN_SHARE * size:
        return ""
    return " ".join(reversed(parts))


def is_word(word: str) -> bool:
    """Return whether a word is in the lexicon or in the list of common words."""
    return word in _words()


@cache
def _words() -> frozenset[str]:
    """Return all known words, including the stems of the lexicon with every ending."""
    stems = (stem + ending for stem in lexicon().stems for ending in _ENDINGS)
    return frozenset(word for word in (*COMMON_WORDS, *stop_words(), *lexicon().exact, *stems) if len(word) > 1)


@cache
def _beginnings() -> frozenset[str]:
    return frozenset(word[:length] for word in _words() for length in range(1, min(len(word), _LONGEST_WORD) + 1))


@cache
def _word_starts() -> BytesAhoCorasick:
    """Return an automaton that finds the first four letters of all longer words at once."""
    begins = sorted({word[:_FIRST_LETTERS].encode() for word in _words() if len(word) >= _FIRST_LETTERS})
    return BytesAhoCorasick(begins, implementation=Implementation.DFA)
