"""What is too private to be a fact, for agents whose memory is to keep no such thing. Pure.

Broader than what models' prompts are masked for, and without its libraries: what is remembered has to be decided again
as it was, and a fact too few is no loss.
"""

import re
from collections.abc import Iterable

from actors.contract.answers.credentials import FORMS
from schemas.vocabulary.memory import Fact

ALL = "*"
"""Stands for all agents."""

_EMAIL = re.compile(r"\S@\S+\.\w")
_NUMBER = re.compile(r"(?:\d[\s().+/-]{0,3}){7,}|[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,}")


def keeps(private: Iterable[str], agent: str) -> bool:
    """Whether what an agent is told is kept whatever it is, given the agents to whom private data is no fact."""
    return not {ALL, agent} & set(private)


def without_private(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts that have no e-mail address, key, or number of seven digits or more."""
    return tuple(fact for fact in facts if not is_private(fact.value) and not is_private(fact.key))


def is_private(text: str) -> bool:
    """Whether a text has one of these."""
    return bool(_EMAIL.search(text) or _NUMBER.search(text)) or any(form.search(text) for form in FORMS.values())
