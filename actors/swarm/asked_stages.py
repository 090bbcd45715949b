"""Which optional stages something waits for. Pure.

A language model, specialists, guardrails and ACT need not run, and not every input needs them. But an exchange that
asks one of them waits for it.
"""

from collections.abc import Mapping

from schemas.catalogue import entry_of, requests_to
from schemas.event import Event
from schemas.persistent import Map
from schemas.vocabulary.act import ActFailed, ActFinished
from schemas.vocabulary.delegate import DelegateAnswered, DelegateFailed
from schemas.vocabulary.guardrails import (
    GuardrailsFailed,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRerunOrdered,
)
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.responder import ResponseRequested
from schemas.vocabulary.router import ModeSelected

_ANSWERS: Mapping[type[Event], str] = {
    event: entry_of(event).owner
    for event in (
        LlmCompleted,
        LlmFailed,
        DelegateAnswered,
        DelegateFailed,
        ActFinished,
        ActFailed,
        GuardrailsFinalized,
        GuardrailsForceFinalized,
        GuardrailsRerunOrdered,
        GuardrailsFailed,
    )
}
"""The event by which an optional stage answers -> the stage."""

ASKED_STAGES = frozenset(_ANSWERS.values())
"""The optional stages that an exchange may wait for."""

REQUESTS_AND_ANSWERS: tuple[type[Event], ...] = (*requests_to("llm"), *requests_to("delegate"), *_ANSWERS)
"""The events that ask an optional stage, and those by which it answers."""


def with_asked_stages(asked: Map[str, int], event: Event, now_ns: int) -> Map[str, int]:
    """Return the stages that something waits for, with the time of the request, after an event."""
    answered = _ANSWERS.get(type(event))
    if answered is not None and answered in asked:
        return asked.delete(answered)
    for stage in _asks(event):
        asked = asked.set(stage, now_ns)
    return asked


def _asks(event: Event) -> tuple[str, ...]:
    match event:
        case ModeSelected(selected_mode="ACT", terminal_mode=None):  # without a mode to answer in: a loop comes first
            return ("act",)
        case ResponseRequested(loop_id=loop_id) if loop_id:
            return ("llm", "guardrails")
    asked = entry_of(event).asks
    return (asked,) if asked else ()
