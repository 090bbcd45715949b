"""What the arbiter hears of an exchange, stating only what matters to a test."""

from typing import Any

import msgspec

from schemas.catalogue import entry_of
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.coherence import CoherencePassed
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionPassed, Similar
from schemas.vocabulary.precedents import ProposedAction
from schemas.vocabulary.responder import ResponseEmitted

ENDED = entry_of(ResponseEmitted).sample
CLEARED = entry_of(BreakerCleared).sample
COHERENT = entry_of(CoherencePassed).sample
RISKY = msgspec.structs.replace(COHERENT, constitutional=1, entropy=1.0, threshold=1.0, violations=("harm",))
"""What the gate says of a violation where its threshold is set so high that it passes."""


def asked(situation: str = "general") -> InputReceived:
    """An input of a situation type."""
    return InputReceived(text="When do you open?", situation=situation)


def similar(
    similarity: float,
    *,
    name: str = "p-1",
    outcome: Any = "benign",
    situation: str = "general",
    action: ProposedAction = "answer",
    answer: str = "",
) -> Similar:
    """A precedent near the input."""
    harm = 0.9 if outcome == "harmful" else 0.0
    return Similar(
        precedent=name,
        similarity=similarity,
        situation=situation,
        action=action,
        outcome=outcome,
        harm_level=harm,
        answer=answer,
    )


def felt(*precedents: Similar) -> IntuitionPassed:
    """Intuition passed an input that is like these precedents."""
    return IntuitionPassed(nearest="", similarity=0.0, score=None, model="none", precedents=precedents)
