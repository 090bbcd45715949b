"""The causality check: the ambiguity that a model names must show in the signals of the decision. Pure.

The decision chose how to answer a message; its signals are the numbers that it was made by. A *dimension* is a way in
which it can be ambiguous, such as by the message's intent or tone. Its margin is how far apart the best two scores
were.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from schemas.vocabulary.reflection import Dimension
from schemas.vocabulary.router import ModeSelected

LITTLE_WARMTH = 0.4
"""A context warmth (how much memory holds about the message, 0 to 1) below this is little."""

FEW_FACTS = 3
"""Fewer facts than this are few."""

LOW_DENSITY = 0.3
"""If the share of distinct words among a message's words is below this, what it wants is unclear."""

SHORT_TOKENS = 3
"""Most tokens of a message that may be no more than a social gesture."""


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
    return _tone(selected) or (signals.prompt_token_count <= SHORT_TOKENS and not asks)


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
