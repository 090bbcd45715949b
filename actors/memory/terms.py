"""The telling words of a text: what concepts are made of, and what is compared where there is no embedding.

A term is a word in lower case without accents and plural ending, or a number of two digits or more. Words of grammar,
and those that any request may contain, are none.
"""

from collections.abc import Collection
from functools import cache
from importlib.resources import files
from math import sqrt

import msgspec

from schemas.reading.folding import fold
from schemas.reading.tokens import split_tokens

READ = 4_000
"""Characters of a text that are read."""

DECIMALS = 6

_SHORTEST, _LONGEST = 3, 40


class WordLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lists of ``words.json``.

    Attributes:
        grammar: Words that say nothing by themselves: they are no terms.
        no_name: What a name does not begin with ("call me later").
        no_key: What is in no key of a fact ("my point is ...").
        no_value: What a fact's value does not begin with ("my hope is that ...").
        no_object: What an opinion is not about ("I like it").
        article: What is left out at the beginning of a key.
    """

    grammar: frozenset[str]
    no_name: frozenset[str]
    no_key: frozenset[str]
    no_value: frozenset[str]
    no_object: frozenset[str]
    article: frozenset[str]


@cache
def word_lists() -> WordLists:
    """Return the lists that ship with the package."""
    return msgspec.json.decode(files("actors.memory").joinpath("words.json").read_bytes(), type=WordLists)


_GRAMMAR = word_lists().grammar


def terms_of(text: str) -> tuple[str, ...]:
    """Return a text's terms in the order in which they first occur; of a long text, those of its beginning."""
    found = (_term(token) for token in split_tokens(fold(text[:READ])))
    return tuple(dict.fromkeys(term for term in found if term))


def concepts_in(text: str, most: int) -> tuple[str, ...]:
    """Return the first terms of a text that are words."""
    return tuple(term for term in terms_of(text) if not term[0].isdigit())[:most]


def overlap(terms: Collection[str], others: Collection[str]) -> float:
    """Return the cosine of two sets of terms, in [0, 1]."""
    shared = len({*terms}.intersection(others))
    return round(shared / sqrt(len(terms) * len(others)), DECIMALS) if shared else 0.0


def _term(token: str) -> str:
    if token[0].isdigit():
        return token if 2 <= len(token) <= _LONGEST else ""
    if token.endswith("n't"):
        return ""
    word = token.partition("'")[0]
    if not _SHORTEST <= len(word) <= _LONGEST or not word[0].isalpha():
        return ""
    single = _singular(word)
    return "" if word in _GRAMMAR or single in _GRAMMAR else single


def _singular(word: str) -> str:
    if len(word) <= _SHORTEST or not word.endswith("s") or word.endswith(("ss", "us", "is", "ews")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
