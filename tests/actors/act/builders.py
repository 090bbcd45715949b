"""ACT loops in a pipeline of router, act and clock; memory, models and specialists answer by the test's own hand."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from actors.act import ACTOR as ACT
from actors.act.settings import ActSettings
from actors.clock import ACTOR as CLOCK
from actors.router import ACTOR as ROUTER
from schemas.actor import Message
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.vocabulary.act import (
    ActActionsRequested,
    ActDelegationRequested,
    ActFinished,
    ActIterated,
    ActPlanRequested,
)
from schemas.vocabulary.delegate import DelegateAnswered, DelegateFailed
from schemas.vocabulary.intuition import IntuitionResultPassed
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import ActionResult, MemoryActionsAnswered, Recollection
from schemas.vocabulary.reflex import ReflexAnswerPassed
from schemas.vocabulary.router import ModeSelected
from tests.actors.pipeline import Pipeline
from tests.actors.router.builders import CALIBRATED, answered, ground, recalled
from tests.actors.scenario import Address

MODERATE = ground(turns=4, gists=1, facts=1)
QUESTION = "What did we discuss about the lease?"
"""Over that ground the router selects ACT."""

E1 = Address(exchange="e1")
PASSED: Event = ReflexAnswerPassed(by="tool")
FELT: Event = entry_of(IntuitionResultPassed).sample
T = TypeVar("T", bound=Event)


def recollection(id: str, energy: float = 0.5, text: str = "the lease ends in May") -> Recollection:
    """Return something remembered."""
    return Recollection(id=id, layer="gist", text=text, energy=energy, tokens=6)


def found(index: int, *recollections: Recollection, skill: Any = "recall") -> ActionResult:
    """Return the result of an action that went well."""
    return ActionResult(index=index, skill=skill, ok=True, recollections=recollections)


def plan(*actions: dict[str, str]) -> str:
    """Return a model's answer."""
    return json.dumps({"actions": actions})


class Acting:
    """A partition each of router, act and clock, and exchanges that are routed to ACT."""

    def __init__(self, settings: ActSettings | None = None) -> None:
        self.pipeline = Pipeline({"router": ROUTER, "act": ACT, "clock": CLOCK})
        # Nobody appraises here: the router goes by the warmth of the context.
        self.pipeline.partitions["router"].configure(CALIBRATED)
        self.pipeline.partitions["act"].configure(settings or ActSettings())

    def ask(self, address: Address = E1, text: str = QUESTION) -> None:
        """Send an input, and memory's word on it."""
        self.pipeline.ask(text, address)
        self.pipeline.send(recalled(MODERATE), address)

    def messages(self, kind: type[T], address: Address = E1) -> list[Message]:
        """Return the messages of a kind in an exchange, in order."""
        here = (address.agent, address.session, address.exchange)
        return [
            each
            for each in self.pipeline.stream
            if isinstance(each.event, kind) and (each.agent, each.session, each.exchange) == here
        ]

    def said(self, kind: type[T], address: Address = E1) -> list[T]:
        """Return the events of a kind in an exchange, in order."""
        return [each.event for each in self.messages(kind, address)]  # type: ignore[misc]

    def remember(self, *results: ActionResult, after_ms: int = 10, address: Address = E1) -> None:
        """Answer what memory was asked last, some time after."""
        self.pipeline.advance(after_ms)
        request = self.messages(ActActionsRequested, address)[-1]
        iteration = request.event.iteration  # type: ignore[attr-defined]
        answer = MemoryActionsAnswered(request=request.id, iteration=iteration, results=results)
        self.pipeline.send(answer, address)

    @property
    def requested(self) -> bool:
        """Whether memory was asked for anything."""
        return bool(self.messages(ActActionsRequested))

    def plan(self, text: str, address: Address = E1) -> None:
        """Answer what a model was asked last."""
        request = self.messages(ActPlanRequested, address)[-1].id
        self.pipeline.send(model_said(request, text), address)
        self.reflex_passes(address)

    def plan_fails(self, reason: str = "endpoint_unreachable", request: str | None = None) -> None:
        """Let what a model was asked last fail; an empty request could not be read."""
        asked = self.messages(ActPlanRequested)[-1].id if request is None else request
        failed = LlmFailed(
            reason=reason,
            error="",
            failed_seq=1,
            failed_topic="forged_id.act.plan_requested",
            request=asked,
            purpose="act" if asked else None,
        )
        self.pipeline.send(failed, E1)

    def reflex_passes(self, address: Address = E1) -> None:
        """Let reflex have read what a model said last."""
        source = self.messages(LlmCompleted, address)[-1].id
        self.pipeline.send(ReflexAnswerPassed(by="model", source=source), address)

    def specialist_says(self, answer: str, number: int = -1, words: Sequence[Event] | None = None) -> None:
        """Answer a question to a specialist; ``words`` are the guards' on it: that it may pass, if none are given."""
        asked = self.messages(ActDelegationRequested)[number]
        action = asked.event.action  # type: ignore[attr-defined]
        self.pipeline.send(
            DelegateAnswered(request=asked.id, index=action.index, specialist=action.specialist, answer=answer), E1
        )
        source = self.messages(DelegateAnswered)[-1].id
        for word in words if words is not None else (PASSED, FELT):
            self.pipeline.send(msgspec.structs.replace(word, source=source), E1)

    def specialist_fails(self, reason: str, *, named: bool = True) -> None:
        """Let the last question to a specialist fail."""
        asked = self.messages(ActDelegationRequested)[-1]
        self.pipeline.send(
            DelegateFailed(
                reason=reason,
                error="",
                failed_seq=1,
                failed_topic="forged_id.act.delegation_requested",
                request=asked.id if named else "",
                index=asked.event.action.index if named else 0,  # type: ignore[attr-defined]
            ),
            E1,
        )

    def end(self, address: Address = E1) -> None:
        """End an exchange, as the responder does."""
        self.pipeline.send(answered(), address)

    @property
    def state(self) -> Any:
        """The state of the ACT partition."""
        return self.pipeline.partitions["act"].state

    @property
    def finish(self) -> ActFinished:
        """The end of the one loop of the first exchange."""
        (event,) = self.said(ActFinished)
        return event

    @property
    def iterations(self) -> Sequence[ActIterated]:
        """The iterations of the first exchange."""
        return self.said(ActIterated)

    def selections(self, address: Address) -> list[ModeSelected]:
        """Return what the router selected for an exchange."""
        return self.said(ModeSelected, address)

    @property
    def modes(self) -> list[tuple[str, str | None, bool]]:
        """What the router selected for the first exchange: first choice, terminal mode, whether routed again."""
        return [(each.selected_mode, each.terminal_mode, each.rerouted) for each in self.said(ModeSelected)]


def model_said(request: str, text: str, purpose: Any = "act") -> LlmCompleted:
    """Return a model's answer."""
    return LlmCompleted(
        request=request,
        purpose=purpose,
        text=text,
        model="qwen3:8b",
        backend="openai",
        finish_reason="stop",
        prompt_tokens=200,
        completion_tokens=40,
        attempts=1,
    )
