"""Which parts of the soul that a model was given appear in its answer. Pure."""

import re
from hashlib import sha256

from actors.contract.text.terms import terms_of
from schemas.vocabulary.responder import IdentityUse

_DIGITS = 6
_NAMED_BY = 3
_HASH_LENGTH = 8
_PART = re.compile(r"\n+|(?<=[.!?;])\s+")


def identity_of(soul: str, answer: str) -> IdentityUse:
    """Return how an answer relates to a soul.

    The parts of a soul are its sentences. Each is named by its first significant words (terms), or by a hash where it
    has none. A part appears in an answer that contains one of its terms.
    """
    parts = [part.strip() for part in _PART.split(soul) if part.strip()]
    said = frozenset(terms_of(answer))
    named = {_name(part): frozenset(terms_of(part)) for part in parts}
    soul_terms = frozenset[str]().union(*named.values())
    either = soul_terms | said
    return IdentityUse(
        stable=tuple(named),
        current=tuple(name for name, terms in named.items() if terms & said),
        overlap=round(len(soul_terms & said) / len(either), _DIGITS) if either else 0.0,
    )


def _name(part: str) -> str:
    words = terms_of(part)[:_NAMED_BY]
    return "-".join(words) if words else sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
