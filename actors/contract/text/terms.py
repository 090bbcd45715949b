"""The significant words (terms) of a text, by which memories and contexts are compared.

A term is a word in lower case without accents and plural ending, or a number of two digits or more. Stop words
(``stop_words.json``) are not terms: grammatical words, and words that any request may contain.
"""

from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from actors.contract.text.folding import fold
from actors.contract.text.tokens import split_tokens

MOST_READ = 4_000
"""Most characters of a text that are read."""

_SHORTEST, _LONGEST = 3, 40
"""Fewest letters of a word that is a term, and most letters or digits of a term."""

_CACHED_UPTO = 1_024
"""Up to this many characters the terms of a text are cached."""


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stop_words: frozenset[str]


def terms_of(text: str) -> tuple[str, ...]:
    """Return a text's terms in the order of first occurrence; of a long text, only those of its beginning."""
    # Cached: several actors read the same text, and the same memories are recalled again and again. Long texts are rare
    # and would fill the cache.
    return _cached_terms(text) if len(text) <= _CACHED_UPTO else _terms(text)


def _terms(text: str) -> tuple[str, ...]:
    # A text repeats many of its words: each different one is looked up once.
    found = dict.fromkeys(map(_term, dict.fromkeys(split_tokens(fold(text[:MOST_READ])))))
    found.pop("", None)
    return tuple(found)


@cache
def stop_words() -> frozenset[str]:
    """Return grammatical words, and words that any request may contain."""
    data = files("actors.contract.text").joinpath("stop_words.json").read_bytes()
    return msgspec.json.decode(data, type=_Words).stop_words


@lru_cache(maxsize=65536)
def _term(token: str) -> str:
    if token[0].isdigit():
        return token if 2 <= len(token) <= _LONGEST else ""
    if token.endswith("n't"):
        return ""
    word = token.partition("'")[0]
    if not _SHORTEST <= len(word) <= _LONGEST or not word[0].isalpha():
        return ""
    singular, ignored = _singular(word), stop_words()
    return "" if word in ignored or singular in ignored else singular


def _singular(word: str) -> str:
    if len(word) <= _SHORTEST or not word.endswith("s") or word.endswith(("ss", "us", "is", "ews")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


_cached_terms = lru_cache(maxsize=4096)(_terms)
