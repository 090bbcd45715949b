"""The question to a model when two modes have nearly the same score, and how its answer is read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from actors.contract.text.shortening import shorten
from schemas.effectors.model_calls import ChatMessage, ModelCall, cuts_of, read_answer, without_code_fence
from schemas.vocabulary.router import Mode, ModeSelected, TiebreakRequested

QUOTED_CHARACTERS = 600
"""Characters of a text, from its beginning and its end, that are shown to the model that breaks a tie: it judges how
the text is put, not what it says."""

MOST_TOKENS = 48
"""Most tokens of the answer that are asked for."""

ANSWER_CHARACTERS = 200
"""A longer answer is invalid: it has far more tokens than were asked for."""

INVALID = "invalid"
"""The outcome when a model answered with neither candidate."""

MEANINGS: Mapping[Mode, str] = MappingProxyType(
    {
        "RESPOND": "answer in substance now, from the message and what is known",
        "CLARIFY": "ask one question back, because something is missing that only the person can tell",
        "ACT": "search memory first, because the answer lies in what was said or learned before",
        "ACKNOWLEDGE": "say a brief friendly word, because nothing more is called for",
    }
)
"""Mode -> when it is right, as stated in the prompt. IGNORE is never offered."""


def tiebreak_call(text: str, selected: ModeSelected, timeout_ms: int) -> TiebreakRequested:
    """Return the question which of the two candidates of an ambiguous decision is right for ``text``."""
    first, second = selected.tiebreaker_candidates
    shown = shorten(text, QUOTED_CHARACTERS, len)
    return TiebreakRequested(
        candidates=(first, second),
        scores={mode: selected.scores[mode] for mode in (first, second)},
        margin=selected.margin,
        effective_margin=selected.effective_margin,
        call=ModelCall(
            purpose="tiebreak",
            messages=(
                ChatMessage(role="system", content=_instruction(first, second)),
                ChatMessage(role="user", content=_context_and_text(shown.text, selected)),
            ),
            most_tokens=MOST_TOKENS,
            answer_schema=_schema(first, second),
            timeout_ms=timeout_ms,
            cuts=cuts_of({"text": shown}),
        ),
    )


def outcome_of(answer: str, candidates: tuple[Mode, ...]) -> str:
    """Return the candidate that a model named, or ``invalid``.

    The prompt asks for ``{"mode": NAME}``; a model without support for schemas may answer with the bare name.
    """
    if len(answer) > ANSWER_CHARACTERS:
        return INVALID
    decoded = read_answer(answer, Any, ANSWER_CHARACTERS)
    named = decoded.get("mode") if isinstance(decoded, dict) else decoded or without_code_fence(answer)
    return next(
        (mode for mode in candidates if isinstance(named, str) and named.strip(" .\"'").upper() == mode), INVALID
    )


def _instruction(first: Mode, second: Mode) -> str:
    return (
        "Two ways of taking a message in a conversation are equally plausible. Pick the better one.\n"
        f"{first}: {MEANINGS[first]}.\n"
        f"{second}: {MEANINGS[second]}.\n"
        f'Reply with JSON only: {{"mode": "{first}"}} or {{"mode": "{second}"}}.'
    )


def _context_and_text(shown: str, selected: ModeSelected) -> str:
    signals = selected.signals
    return (
        f"Turns of this talk in mind: {signals.working_memory_turns}. Facts known on the topic: {signals.fact_count}. "
        f"Mode of the previous answer: {selected.previous_mode or 'none'}.\n"
        f"The message:\n{shown}"
    )


def _schema(first: Mode, second: Mode) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"mode": {"type": "string", "enum": [first, second]}},
        "required": ["mode"],
        "additionalProperties": False,
    }
