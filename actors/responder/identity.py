"""Finds which parts of the agent's soul (the text that says who it is) appear in a model's answer. Pure."""

import re
from hashlib import sha256

from actors.contract.text.terms import terms_of
from schemas.vocabulary.responder import IdentityUse

_DIGITS = 6
"""Decimals of the overlap."""

_NAME_TERMS = 3
"""Number of terms that a part's name is made of."""

_HASH_CHARACTERS = 8
"""Length of the name of a part without terms."""

_BETWEEN_PARTS = re.compile(r"\n+|(?<=[.!?;])\s+")
"""A line break, or the space after the end of a sentence."""


def identity_of(soul: str, answer: str) -> IdentityUse:
    """Return how an answer relates to a soul.

    The parts of a soul are its sentences. Each is named by its first significant words (terms), or by a hash where it
    has none. A part appears in an answer that contains one of its terms.
    """
    parts = [part.strip() for part in _BETWEEN_PARTS.split(soul) if part.strip()]
    answer_terms = frozenset(terms_of(answer))
    named = {_name(part): frozenset(terms_of(part)) for part in parts}
    soul_terms = frozenset[str]().union(*named.values())
    all_terms = soul_terms | answer_terms
    return IdentityUse(
        stable=tuple(named),
        current=tuple(name for name, terms in named.items() if terms & answer_terms),
        overlap=round(len(soul_terms & answer_terms) / len(all_terms), _DIGITS) if all_terms else 0.0,
    )


def _name(part: str) -> str:
    words = terms_of(part)[:_NAME_TERMS]
    return "-".join(words) if words else sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
