"""Loops that are done and what guardrails made of them, stating only what matters to a test."""

from typing import Any

import msgspec

from actors.guardrails import ACTOR
from actors.guardrails.settings import GuardrailsSettings
from schemas.event import Event
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.guardrails import (
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRerunOrdered,
    LoopTrace,
)
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden
from tests.actors.scenario import HERE, Address, Partition

HOUR_MS = 3_600_000
DECISIONS = (GuardrailsFinalized, GuardrailsForceFinalized, GuardrailsRerunOrdered)
Decision = GuardrailsFinalized | GuardrailsForceFinalized | GuardrailsRerunOrdered

POOR = (0.5, 0.5)
"""Scores, alignment and drift, that ask for a rerun and do not change; GOOD ask for none."""

GOOD = (0.9, 0.1)


def guardrails(**settings: Any) -> Partition:
    """Return a partition with these settings."""
    return Partition(ACTOR).configure(GuardrailsSettings(**settings))


def completed(
    loop_id: str = "loop_001", scores: tuple[float | None, float | None] = POOR, *tags: str, **more: Any
) -> LoopCompleted:
    """Return the completion of a loop outside."""
    alignment, drift = scores
    return LoopCompleted(loop_id=loop_id, alignment_score=alignment, drift_score=drift, bias_tags=tags, **more)


def override(loop_id: str = "loop_001", *, fatigue: bool = False, reruns: bool = False, by: str = "ann") -> Event:
    """Return a person's override."""
    return LoopOverridden(
        loop_id=loop_id,
        override_fatigue=fatigue,
        override_max_reruns=reruns,
        override_by=by,
        override_reason="close to an answer",
    )


def appraised(
    loop_id: str = "exchange", scores: tuple[float, float] = GOOD, *tags: str, request: str = "request-1"
) -> AnswerAppraised:
    """Return appraisal's word on an answer of ours."""
    alignment, drift = scores
    return AnswerAppraised(
        request=request, loop_id=loop_id, alignment=alignment, drift=drift, bias_tags=tags, models="hashed-1+bias-1"
    )


def said(text: str, *, request: str = "request-1", purpose: Any = "respond") -> LlmCompleted:
    """Return a model's words."""
    return LlmCompleted(
        request=request,
        purpose=purpose,
        text=text,
        model="qwen3:14b",
        backend="openai",
        finish_reason="stop",
        prompt_tokens=1,
        completion_tokens=1,
        attempts=1,
    )


def decided(partition: Partition, event: Event, address: Address = HERE, *, after_ms: int = 0) -> Decision:
    """Deliver an event and return the decision that it leads to."""
    [found] = partition.when(event, address, after_ms=after_ms)
    assert isinstance(found, DECISIONS), found
    return found


def trace_of(partition: Partition, event: Event, address: Address = HERE, *, after_ms: int = 0) -> LoopTrace:
    """Deliver an event and return the trace of the decision that it leads to."""
    return decided(partition, event, address, after_ms=after_ms).trace


def rerun(
    partition: Partition, *scores: tuple[float | None, float | None], loop_id: str = "loop_001"
) -> list[Decision]:
    """Complete a loop and its reruns, each as the one before ordered it, with these scores; return the decisions."""
    loop_id = "loop_001"
    decisions: list[Decision] = []
    for each in scores:
        decision = decided(partition, completed(loop_id, each))
        decisions.append(decision)
        if isinstance(decision, GuardrailsRerunOrdered):
            loop_id = decision.new_loop_id
    return decisions


def kind(decision: Decision) -> str:
    """Return a decision's name, without its owner's."""
    topic = type(decision).__struct_config__.tag
    assert isinstance(topic, str)
    return topic.rpartition(".")[2]


def names(trace: LoopTrace) -> set[str]:
    """Return the names of a trace's fields."""
    return set(msgspec.structs.asdict(trace))
