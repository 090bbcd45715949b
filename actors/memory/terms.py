"""The concepts of a text (the terms that it is about), and similarity by terms where there is no embedding. Pure."""

from collections.abc import Collection
from math import sqrt

from actors.contract.text.terms import terms_of

DECIMALS = 6
"""Decimals that similarities and strengths are rounded to."""


def concepts_in(text: str, most: int) -> tuple[str, ...]:
    """Return the first terms of a text that are words, at most ``most``."""
    return tuple(term for term in terms_of(text) if not term[0].isdigit())[:most]


def overlap(terms: Collection[str], others: Collection[str]) -> float:
    """Return the cosine of two sets of terms, in [0, 1]."""
    shared = len({*terms}.intersection(others))
    return round(shared / sqrt(len(terms) * len(others)), DECIMALS) if shared else 0.0
