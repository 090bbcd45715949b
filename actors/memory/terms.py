"""What memory makes of a text's terms: concepts, and a likeness where there is no embedding."""

from collections.abc import Collection
from functools import cache
from importlib.resources import files
from math import sqrt

import msgspec

from schemas.reading.terms import terms_of

DECIMALS = 6


class WordLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lists of ``words.json``.

    Attributes:
        no_name: What a name does not begin with ("call me later").
        no_key: What is in no key of a fact ("my point is ...").
        no_value: What a fact's value does not begin with ("my hope is that ...").
        no_object: What an opinion is not about ("I like it").
        article: What is left out at the beginning of a key.
    """

    no_name: frozenset[str]
    no_key: frozenset[str]
    no_value: frozenset[str]
    no_object: frozenset[str]
    article: frozenset[str]


@cache
def word_lists() -> WordLists:
    """Return the lists that ship with the package."""
    return msgspec.json.decode(files("actors.memory").joinpath("words.json").read_bytes(), type=WordLists)


def concepts_in(text: str, most: int) -> tuple[str, ...]:
    """Return the first terms of a text that are words."""
    return tuple(term for term in terms_of(text) if not term[0].isdigit())[:most]


def overlap(terms: Collection[str], others: Collection[str]) -> float:
    """Return the cosine of two sets of terms, in [0, 1]."""
    shared = len({*terms}.intersection(others))
    return round(shared / sqrt(len(terms) * len(others)), DECIMALS) if shared else 0.0
