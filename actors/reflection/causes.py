"""The causality check: an ambiguity that a model names must show in the signals of the decision. Pure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from schemas.vocabulary.reflection import Dimension
from schemas.vocabulary.router import ModeSelected

LITTLE_WARMTH = 0.4
"""Below this warmth of its context, little is remembered that a message is about."""

FEW_FACTS = 3
"""Below so many facts, too."""

LOW_DENSITY = 0.3
"""Below this share of distinct words among its words, a message does not show what it wants."""

SHORT = 3
"""Tokens up to which a message may be no more than a gesture."""


def _memory(selected: ModeSelected) -> bool:
    return selected.signals.context_warmth < LITTLE_WARMTH or selected.signals.fact_count < FEW_FACTS


def _intent(selected: ModeSelected) -> bool:
    return selected.margin < selected.effective_margin or selected.signals.information_density < LOW_DENSITY


def _tone(selected: ModeSelected) -> bool:
    return selected.signals.explicit_feedback is not None or selected.signals.greeting_pattern


def _context(selected: ModeSelected) -> bool:
    signals = selected.signals
    return signals.is_new_topic or signals.working_memory_turns == 0 or signals.context_warmth < LITTLE_WARMTH


def _social(selected: ModeSelected) -> bool:
    signals = selected.signals
    asks = signals.has_question_mark or signals.interrogative_words
    return _tone(selected) or (signals.prompt_token_count <= SHORT and not asks)


def _reference(selected: ModeSelected) -> bool:
    return selected.signals.implicit_reference


CAUSES: Mapping[Dimension, Callable[[ModeSelected], bool]] = MappingProxyType(
    {
        "memory_availability": _memory,
        "intent_clarity": _intent,
        "tone_ambiguity": _tone,
        "context_sufficiency": _context,
        "social_cue": _social,
        "reference_ambiguity": _reference,
    }
)
"""Dimension -> whether a decision's signals support it."""
