"""The prompt for a second opinion on routing decisions, and how the answer is read. Pure.

It has the numbers by which each decision was made (*signals*), and no person's text. A *stratum* is a group of
decisions, such as those of low confidence, that is sampled alone.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, get_args

import msgspec

from actors.reflection.sampling import Case
from actors.reflection.settings import ReflectionSettings
from schemas.effectors.model_calls import ChatMessage, ModelCall, read_answer
from schemas.event import Unit
from schemas.identity import without_defaults
from schemas.vocabulary.reflection import Dimension, ReflectionRequested, Sampled, Stratum
from schemas.vocabulary.router import Mode

LONGEST_ANSWER = 16_000
"""In characters; far more than the schema needs."""

LONGEST_RATIONALE = 400
"""In characters."""

MODES: Mapping[Mode, str] = MappingProxyType(
    {
        "RESPOND": "answer in substance at once",
        "CLARIFY": "ask one question back",
        "ACT": "search memory first",
        "ACKNOWLEDGE": "say a brief friendly word",
        "IGNORE": "say nothing",
    }
)
"""Mode -> what it does, in the words of the prompt."""

DIMENSIONS: Mapping[Dimension, str] = MappingProxyType(
    {
        "memory_availability": "too little was remembered or known on the matter",
        "intent_clarity": "what was wanted was unclear, or the best two modes were too close",
        "tone_ambiguity": "a greeting, thanks or complaint could be taken in more than one way",
        "context_sufficiency": "the talk so far gave too little to go by",
        "social_cue": "a social gesture called for another kind of answer",
        "reference_ambiguity": "the message pointed at something said earlier",
    }
)
"""Dimension -> what it means, in the words of the prompt."""


class Opinion(msgspec.Struct, frozen=True):
    """A model's opinion on the decision ``number`` (from 1) of a batch."""

    number: int
    mode: Mode
    dimension: Dimension
    confidence: Unit
    rationale: str = ""


class _Answer(msgspec.Struct, frozen=True):
    opinions: Annotated[tuple[Opinion, ...], msgspec.Meta(max_length=100)]


def opinion_call(drawn: Sequence[tuple[Stratum, Case]], settings: ReflectionSettings) -> ReflectionRequested:
    """Return the request for a second opinion on a batch."""
    described = "\n\n".join(_description(number, case) for number, (_, case) in enumerate(drawn, start=1))
    return ReflectionRequested(
        batch=tuple(
            Sampled(exchange=case.exchange, stratum=stratum, selected_mode=case.selected.selected_mode)
            for stratum, case in drawn
        ),
        call=ModelCall(
            purpose="reflect",
            messages=(ChatMessage(role="system", content=_INSTRUCTION), ChatMessage(role="user", content=described)),
            most_tokens=settings.most_tokens,
            answer_schema=_schema(len(drawn)),
            timeout_ms=settings.timeout_ms,
        ),
        wake_after_ms=settings.patience_ms,
    )


def opinions_of(answer: str, batch: int) -> dict[int, Opinion] | None:
    """Return the opinions on a batch of ``batch`` decisions, by their numbers; None if the answer has another form.

    Of several opinions on one decision the first counts. A number outside the batch makes the whole answer invalid,
    since the model then answers something else.
    """
    decoded: _Answer | None = read_answer(answer, _Answer, LONGEST_ANSWER)
    opinions = decoded.opinions if decoded is not None else ()
    if not opinions or any(not 1 <= each.number <= batch for each in opinions):
        return None
    return {each.number: each for each in reversed(opinions)}


_ALWAYS_LISTED = ("answerable", "underspecified", "social", "recall", "task", "bearing", "findings")
"""Signals that the prompt lists even if they have their default value.

A signal that is added later is not listed then, so that requests on older decisions stay the same.
"""


def _description(number: int, case: Case) -> str:
    selected, signals = case.selected, without_defaults(case.selected.signals, *_ALWAYS_LISTED)
    scores = ", ".join(f"{mode} {score:.3f}" for mode, score in selected.scores.items())
    listed = ", ".join(f"{name}={_value_text(value)}" for name, value in signals.items() if name != "fact_keys")
    return (
        f"Decision {number}: {selected.selected_mode} was selected.\n"
        f"Scores: {scores}. Margin {selected.margin:.3f}, ambiguous below {selected.effective_margin:.3f}. "
        f"Mode of the answer before: {selected.previous_mode or 'none'}.\n"
        f"Signals: {listed}."
    )


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _schema(batch: int) -> dict[str, Any]:
    opinion = {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "minimum": 1, "maximum": batch},
            "mode": {"type": "string", "enum": list(get_args(Mode))},
            "dimension": {"type": "string", "enum": list(get_args(Dimension))},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "rationale": {"type": "string", "maxLength": LONGEST_RATIONALE},
        },
        "required": ["number", "mode", "dimension", "confidence", "rationale"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"opinions": {"type": "array", "minItems": 1, "maxItems": batch, "items": opinion}},
        "required": ["opinions"],
        "additionalProperties": False,
    }


def _list_of(meanings: Mapping[Any, str]) -> str:
    return "\n".join(f"- {name}: {meaning}" for name, meaning in meanings.items())


_INSTRUCTION = (
    "You are a consultant who looks again at how messages of a conversation were routed. You see the numbers a router "
    "decided on, not the messages. For every decision say which mode you would have selected (one that has a score), "
    "in which dimension the decision was most ambiguous, how sure you are from 0 to 1, and why, in one sentence.\n"
    f"Modes:\n{_list_of(MODES)}\nDimensions:\n{_list_of(DIMENSIONS)}\n"
    'Reply with JSON only: {"opinions": [{"number": 1, "mode": "RESPOND", "dimension": "intent_clarity", '
    '"confidence": 0.5, "rationale": "..."}]}'
)
