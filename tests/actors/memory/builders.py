"""Partitions, exchanges and memories that state only what matters to a test."""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from actors.memory import ACTOR
from actors.memory.agent_memory import AgentMemory
from actors.memory.decider import memory_of
from actors.memory.layers.facts import CurrentValues
from actors.memory.settings import MemorySettings
from schemas.event import Event
from schemas.vocabulary.act import ActActionsRequested, Action
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import (
    FactsRetired,
    MemoryActionsAnswered,
    MemoryForgotten,
    MemoryRecalled,
    MemoryRemembered,
    Retired,
    TurnsForgotten,
)
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.scenario import Address, Partition

HOUR_MS = 3_600_000
ESCALATED = ArbiterEscalated(reason="no_precedent", nearest="", similarity=0.0, deadline_after_ms=5_000)
EVERYTHING = MemorySettings(floor=0.0, recollections=100)
"""Whatever has any energy comes to mind."""


def partition(settings: MemorySettings | None = None) -> Partition:
    """Return an empty memory partition."""
    return Partition(ACTOR).configure(settings or MemorySettings())


def encoded(vector: Sequence[int]) -> str:
    """Return an embedding as events carry it."""
    return base64.b64encode(bytes(number % 256 for number in vector)).decode()


def appraisal(vector: Sequence[int] = (), topic: str = "topic-1", **changes: Any) -> AppraisalCompleted:
    """Return what the senses made of an input."""
    fields = {
        "models": "words-1+trust-1+affect-1",
        "conversation_topic": topic,
        "topic_confidence": 0.7,
        "similar_topic": topic,
        "is_new_topic": False,
        "layers": [],
        "valence": 0.0,
        "arousal": 0.2,
        "novelty": 0.6,
        "uncertainty": 0.2,
        "risks": {},
        "proposed_action": "answer",
        "affects_swarm": False,
        "embedding": encoded(vector),
        **changes,
    }
    return msgspec.convert({"topic": "forged_id.appraisal.completed", **fields}, AppraisalCompleted)


def response(answer: str = "", action: str = "EXECUTED", backend: str = "llm") -> ResponseEmitted:
    """Return the end of an exchange."""
    return msgspec.convert(
        {
            "topic": "forged_id.response.emitted",
            "stage": "DELIBERATIVE",
            "action": action,
            "reason": "",
            "mode": "RESPOND",
            "first_mode": "RESPOND",
            "response": answer,
            "backend": backend,
        },
        ResponseEmitted,
    )


def begin(memory: Partition, text: str, here: Address, vector: Sequence[int] = (), topic: str = "topic-1") -> None:
    """Begin an exchange: its input, and what the senses made of it."""
    memory.hear(InputReceived(text=text), here)
    memory.hear(appraisal(vector, topic), here)


def recalled(memory: Partition, here: Address, *, after_ms: int = 0) -> MemoryRecalled:
    """Escalate an exchange; return memory's word on it."""
    (event,) = memory.when(ESCALATED, here, after_ms=after_ms)
    assert isinstance(event, MemoryRecalled)
    return event


def talk(
    memory: Partition,
    text: str,
    exchange: str,
    *,
    session: str = "session",
    agent: str = "agent",
    vector: Sequence[int] = (),
    topic: str = "topic-1",
    answer: str = "",
) -> MemoryRemembered:
    """Let an exchange be executed; return what stays of it."""
    here = Address(agent, session, exchange)
    begin(memory, text, here, vector, topic)
    event, *retired = memory.when(response(answer), here)
    assert isinstance(event, MemoryRemembered)
    assert all(isinstance(each, FactsRetired) for each in retired)
    return event


def retired_by(
    memory: Partition, text: str, exchange: str = "correction", *, session: str = "session"
) -> list[Retired]:
    """Let an exchange be executed; return what it retires."""
    here = Address(session=session, exchange=exchange)
    begin(memory, text, here)
    return [
        each for event in memory.when(response(), here) if isinstance(event, FactsRetired) for each in event.retired
    ]


def known(memory: Partition) -> dict[str, str]:
    """Return what an agent was told that still holds."""
    return dict(CurrentValues(mind(memory).facts))


def ask(
    memory: Partition,
    text: str,
    exchange: str = "question",
    *,
    session: str = "session",
    agent: str = "agent",
    vector: Sequence[int] = (),
    topic: str = "topic-1",
    after_ms: int = 0,
) -> MemoryRecalled:
    """Begin an exchange and escalate it; return what came to mind. The exchange is left open."""
    here = Address(agent, session, exchange)
    begin(memory, text, here, vector, topic)
    return recalled(memory, here, after_ms=after_ms)


def act(memory: Partition, *actions: Action, here: Address) -> MemoryActionsAnswered:
    """Have actions performed for an open exchange."""
    event, *retired = memory.when(ActActionsRequested(iteration=0, actions=actions), here)
    assert isinstance(event, MemoryActionsAnswered)
    assert all(isinstance(each, FactsRetired) for each in retired)
    return event


def forget(memory: Partition, *, key: str = "", session: str = "session", agent: str = "agent") -> MemoryForgotten:
    """Order a session to be forgotten, or, given a key, a fact."""
    order: Event = ForgetOrdered(what="fact" if key else "session", key=key, by="ann", why="asked to")
    event, *said_in = memory.when(order, Address(agent, session, ""))
    assert isinstance(event, MemoryForgotten)
    assert all(isinstance(each, TurnsForgotten) for each in said_in)
    return event


def mind(memory: Partition, agent: str = "agent") -> AgentMemory:
    """Return what an agent remembers."""
    return memory_of(memory.state, agent)


def ids(event: MemoryRecalled | Any) -> list[str]:
    """Return the ids of what came to mind, in order."""
    return [each.id for each in event.recollections]


def texts(event: MemoryRecalled | Any) -> list[str]:
    """Return the texts of what came to mind, in order."""
    return [each.text for each in event.recollections]
