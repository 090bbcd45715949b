"""Agents whose decisions are looked at again: exchanges, a model's answers, and the clock between them."""

import json
from typing import Any

import msgspec

from actors.reflection import ACTOR
from actors.reflection.settings import ReflectionSettings
from schemas.actor import Message
from schemas.event import Event, topic_of
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.reflection import ReflectionConcluded, ReflectionRequested, ReflectionScheduled
from schemas.vocabulary.responder import ENTRIES, ResponseEmitted
from schemas.vocabulary.router import ENTRIES as ROUTER
from schemas.vocabulary.router import SAMPLE_SIGNALS, FeedbackObserved, Mode, ModeSelected
from tests.actors.scenario import Address, Partition

ON = ReflectionSettings(backend="llm")
IDLE_MS = ON.idle_after_ms
AGENT = Address(agent="agent", session="", exchange="")

_SELECTED = next(entry.sample for entry in ROUTER if entry.event is ModeSelected)
_END = next(entry.sample for entry in ENTRIES if entry.event is ResponseEmitted)


def selection(confidence: float = 0.1, *, tied: bool = False, mode: Mode = "RESPOND", **signals: Any) -> ModeSelected:
    """Return a decision of this confidence; ``signals`` replace those of the catalogue's sample."""
    assert isinstance(_SELECTED, ModeSelected)
    return msgspec.structs.replace(
        _SELECTED,
        selected_mode=mode,
        terminal_mode=mode,
        router_confidence=confidence,
        margin=confidence,
        tiebreaker_candidates=("RESPOND", "CLARIFY") if tied else (),
        signals=msgspec.structs.replace(SAMPLE_SIGNALS, **signals),
    )


def end(action: str = "EXECUTED") -> ResponseEmitted:
    """Return an exchange's end."""
    assert isinstance(_END, ResponseEmitted)
    return msgspec.structs.replace(_END, action=action)


def content(of_exchange: str) -> FeedbackObserved:
    """Return the feedback of a person who was content with an answer."""
    return FeedbackObserved(of_exchange=of_exchange, mode="RESPOND", feedback="correct_route", signal="positive")


def opinion(number: int, mode: str = "CLARIFY", **changes: Any) -> dict[str, Any]:
    """Return an opinion as a model writes it, by default a disagreement that counts."""
    return {"number": number, "mode": mode, "dimension": "memory_availability", "confidence": 0.9, **changes}


def answer(*opinions: dict[str, Any]) -> str:
    """Return a model's answer."""
    return json.dumps({"opinions": opinions})


def completed(text: str, request: str, purpose: str = "reflect") -> LlmCompleted:
    """Return a model's answer as the effector records it."""
    return LlmCompleted(
        request=request,
        purpose=purpose,  # type: ignore[arg-type]
        text=text,
        model="m",
        backend="openai",
        finish_reason="stop",
        prompt_tokens=1,
        completion_tokens=1,
        attempts=1,
    )


class Recording(Partition):
    """A partition that remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(ACTOR)
        self.heard: list[Message] = []

    def deliver(self, message: Message) -> list[Message]:
        """Deliver a message as it is, and keep it."""
        self.heard.append(message)
        return super().deliver(message)


class Reflecting:
    """An agent whose reflection is on, or has these settings."""

    def __init__(self, settings: ReflectionSettings = ON) -> None:
        self.settings = settings
        self.partition = Recording()
        self.partition.configure(settings)
        self.number = 0

    @property
    def heard(self) -> list[Message]:
        """Everything the agent's partition was given, in order."""
        return self.partition.heard

    def exchange(self, selected: ModeSelected | None = None, action: str = "EXECUTED") -> list[Event]:
        """Have an exchange from its input to its end; return what its end led to."""
        self.number += 1
        address = Address(exchange=f"x{self.number}")
        self.partition.hear(InputReceived(text="Secret words"), address)
        self.partition.hear(selected or selection(), address)
        return self.partition.when(end(action), address)

    def wake(self, after_ms: int = IDLE_MS, by: type[Event] = ReflectionScheduled) -> list[Message]:
        """Let the agent's timer go off."""
        fired = ClockFired(set_by=topic_of(by), due_ns=0)
        return self.partition.hear(fired, AGENT, after_ms=after_ms)

    def request(self, *selected: ModeSelected, by: type[Event] = ReflectionScheduled) -> Message:
        """Have these exchanges, and then the look back at them."""
        for each in selected:
            self.exchange(each)
        [asked] = self.wake(by=by)
        assert isinstance(asked.event, ReflectionRequested)
        return asked

    def says(self, asked: Message, text: str) -> ReflectionConcluded:
        """Have the model answer; return what that comes to."""
        [concluded] = self.partition.when(completed(text, asked.id), AGENT, after_ms=1_000)
        assert isinstance(concluded, ReflectionConcluded)
        return concluded

    def look_back(self, *pairs: tuple[ModeSelected, dict[str, Any]]) -> ReflectionConcluded:
        """Look back at decisions one by one, each with its opinion; return the last conclusion."""
        concluded = None
        for selected, said in pairs:
            concluded = self.says(self.request(selected), answer(said))
        assert concluded is not None
        return concluded
