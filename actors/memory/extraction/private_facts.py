"""Filters out facts that are too private, for agents whose memory may not keep them. Pure.

The filter finds more than the masking of model prompts does, and does not use its libraries: a decision on what is
remembered must be reproducible later, and one fact too few does no harm.
"""

import re
from collections.abc import Iterable

from actors.contract.answers.credentials import FORMS
from schemas.vocabulary.memory import Fact

ALL = "*"
"""Stands for all agents."""

_EMAIL = re.compile(r"\S@\S+\.\w")
_NUMBER = re.compile(r"(?:\d[\s().+/-]{0,3}){7,}|[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,}")
"""Seven digits or more, or an IBAN."""


def keeps(private: Iterable[str], agent: str) -> bool:
    """Whether an agent keeps private facts, given the agents that may not."""
    return not {ALL, agent} & set(private)


def without_private(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts without an e-mail address, an access key, or a number of seven digits or more."""
    return tuple(fact for fact in facts if not is_private(fact.value) and not is_private(fact.key))


def is_private(text: str) -> bool:
    """Whether a text contains an e-mail address, an access key, or a number of seven digits or more."""
    return bool(_EMAIL.search(text) or _NUMBER.search(text)) or any(form.search(text) for form in FORMS.values())
