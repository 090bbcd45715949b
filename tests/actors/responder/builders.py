"""Events around an exchange, stating only what matters to a test."""

from collections.abc import Mapping
from typing import Any

import msgspec

from actors.responder import ACTOR
from actors.responder.settings import ResponderSettings
from schemas.catalogue import entry_of
from schemas.event import Event, Failed
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate
from schemas.vocabulary.breaker import (
    BreakerCleared,
    BreakerState,
    BreakerTerminated,
    BreakerTripped,
    BreakerWithheld,
    Standing,
)
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.gateway import Layer as InputLayer
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import COLD, Fact, Layer, MemoryRecalled, Recollection, Retired
from schemas.vocabulary.reflex import ENTRIES as REFLEX_ENTRIES
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from schemas.vocabulary.router import ENTRIES as ROUTER_ENTRIES
from schemas.vocabulary.router import SAMPLE_SIGNALS, ModeSelected, Signals
from tests.actors.scenario import HERE, Address, Partition, ReadPartition

_BLOCKED = next(entry.sample for entry in REFLEX_ENTRIES if entry.event is ReflexBlocked)
_SELECTED = next(entry.sample for entry in ROUTER_ENTRIES if entry.event is ModeSelected)

PASSED = ReflexPassed()
FELT = entry_of(IntuitionPassed).sample
COHERENT = entry_of(CoherencePassed).sample
CLEARED = entry_of(BreakerCleared).sample
ESCALATED = entry_of(ArbiterEscalated).sample
PATH = (PASSED, FELT, COHERENT, CLEARED, ESCALATED)
"""What the guards say of an input that goes on to deliberation, in the order of the path."""

DISSONANT = entry_of(CoherenceRejected).sample
OVERDUE = ClockFired(set_by="forged_id.input.received", due_ns=1)
UNDELIBERATED = ClockFired(set_by="forged_id.arbiter.escalated", due_ns=1)
_STANDING = Standing(
    state_before="NORMAL",
    state="VIOLATED",
    trust_before=0.5,
    trust=0.15,
    falsehood=0.75,
    violations=1,
    attempts=0,
    attempt_turns=0,
    stance="guarded",
)


def asked(
    text: str = "What is the capital of Peru?",
    reply_to: str = "",
    *,
    stream: bool = False,
    layers: tuple[InputLayer, ...] = (),
    deadline_after_ms: int = 60_000,
) -> InputReceived:
    return InputReceived(
        text=text, reply_to=reply_to, stream=stream, layers=layers, deadline_after_ms=deadline_after_ms
    )


def blocked(pattern: str = "jailbreak") -> Event:
    return msgspec.structs.replace(_BLOCKED, pattern=pattern)


def signals(**seen: Any) -> Signals:
    plain = msgspec.structs.replace(SAMPLE_SIGNALS, has_question_mark=False, interrogative_words=False)
    return msgspec.structs.replace(plain, **seen)


def chosen(mode: str | None, first: str | None = None, confidence: float = 0.3, **seen: Any) -> ModeSelected:
    """The router's choice of terminal ``mode``; None with the ``first`` choice while an ACT loop runs."""
    choice: Any = msgspec.structs.replace(
        _SELECTED,
        selected_mode=first or mode,
        terminal_mode=mode,
        router_confidence=confidence,
        signals=signals(**seen),
    )
    return choice


def failure(event: type[Failed], topic: str = "forged_id.input.received") -> Failed:
    return event(reason="decider_raised", error="ValueError", failed_seq=1, failed_topic=topic)


def recognised(detector: str = "motif", motif: str = "p-1") -> Event:
    """A learned danger, by one of intuition's two detectors."""
    return msgspec.structs.replace(entry_of(IntuitionRejected).sample, detector=detector, motif=motif)


def tripped(violation: Any = "role_confusion") -> Event:
    return BreakerTripped(violation=violation, layer="text", standing=_STANDING, wake_after_ms=900_000)


def withheld(state: BreakerState = "VIOLATED") -> Event:
    return BreakerWithheld(standing=msgspec.structs.replace(_STANDING, state=state))


def terminated(reason: Any = "balance_trend") -> Event:
    return BreakerTerminated(reason=reason, standing=msgspec.structs.replace(_STANDING, state="TERMINATED"))


def denied(reason: Any = "harmful_precedent") -> Event:
    return ArbiterDenied(reason=reason, precedent="p-1", similarity=0.8)


def immediate(answer: str = "Our office opens at nine.") -> Event:
    return ArbiterImmediate(precedent="p-2", similarity=0.95, answer=answer)


def memory(text: str, *, energy: float, layer: Layer = "fact", id: str = "fact:1") -> Recollection:
    return Recollection(id=id, layer=layer, text=text, energy=energy, tokens=len(text) // 4)


def recalled(
    *memories: Recollection, told: Mapping[str, str] | None = None, retired: tuple[Retired, ...] = ()
) -> Event:
    facts = tuple(Fact(key=key, value=value) for key, value in (told or {}).items())
    return MemoryRecalled(familiarity=COLD, recollections=memories, told=facts, retired=retired)


def finished(*findings: Recollection) -> Event:
    return ActFinished(
        termination="plan_empty", iterations=1, productive=bool(findings), elapsed_ms=1, findings=findings
    )


def with_model(**settings: Any) -> Partition:
    """A responder that asks a language model, whose answers nobody judges unless the settings say so."""
    return ReadPartition(ACTOR).configure(ResponderSettings(**{"backend": "llm", "guardrails": False, **settings}))


class Requested:
    """A request to a model as it was recorded, and events that answer it."""

    def __init__(self, responder: Partition, mode: str, address: Address = HERE, **seen: Any) -> None:
        [message] = responder.hear(chosen(mode, **seen), address)
        assert isinstance(message.event, ResponseRequested)
        self.id = message.id
        self.event = message.event

    def completed(self, text: str = "Lima.", *, request: str | None = None) -> Event:
        return msgspec.structs.replace(
            entry_of(LlmCompleted).sample, request=self.id if request is None else request, text=text
        )

    def failed(self, reason: str = "endpoint_unreachable", *, request: str | None = None, **fields: Any) -> Event:
        return msgspec.structs.replace(
            entry_of(LlmFailed).sample, request=self.id if request is None else request, reason=reason, **fields
        )


def ended(events: list[Event]) -> ResponseEmitted:
    [end] = events
    assert isinstance(end, ResponseEmitted)
    return end
