"""Asking one endpoint over real HTTP, by the effector's own performance and without a broker."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from actors.llm.calling import LlmCaller
from actors.llm.client import ChatClient
from actors.llm.endpoint import Endpoint
from actors.llm.settings import LlmSettings
from actors.runtime.clock import SystemClock
from schemas.actor import Message
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.event import Event
from schemas.vocabulary.act import ActPlanRequested
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from tests.actors.llm.scripted import Reply, serving

QUICK = LlmSettings(backoff_first_ms=1, backoff_most_ms=2, connect_ms=2_000)
KEY = "sk-a-key-that-nobody-may-see"
QUESTION = "What is the capital of Peru?"
PLAN: Mapping[str, Any] = {
    "type": "object",
    "properties": {"skill": {"enum": ["recall", "associate"]}},
    "required": ["skill"],
}


def call_of(**changes: Any) -> ModelCall:
    call = ModelCall(purpose="act", messages=(ChatMessage(role="user", content=QUESTION),))
    return msgspec.structs.replace(call, **changes)


def request_of(call: ModelCall, *, age_s: float = 0.0) -> Message:
    event = ActPlanRequested(iteration=0, call=call)
    stored_ns = time.time_ns() - int(age_s * 1e9)
    return Message(event, seq=9, id="request-1", time_ns=stored_ns, agent="ann", session="s", exchange="exchange-1")


class Asking:
    """The effector's performance against one endpoint; remembers what it published and how long it slept."""

    def __init__(self, client: ChatClient, settings: LlmSettings, **options: Any) -> None:
        self.published: list[tuple[str, dict[str, Any]]] = []
        self.slept: list[float] = []
        self._answering = LlmCaller(
            client, settings, backend="openai", publish=self._publish, clock=SystemClock(), sleep=self._sleep, **options
        )

    async def _publish(self, inbox: str, body: bytes) -> None:
        self.published.append((inbox, json.loads(body)))

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def ask(self, call: ModelCall | None = None, *, age_s: float = 0.0) -> Event:
        [event] = await self._answering.handle(request_of(call or call_of(), age_s=age_s))
        return event

    async def completed(self, call: ModelCall | None = None) -> LlmCompleted:
        event = await self.ask(call)
        assert isinstance(event, LlmCompleted), event
        return event

    async def failed(self, call: ModelCall | None = None, *, age_s: float = 0.0) -> LlmFailed:
        event = await self.ask(call, age_s=age_s)
        assert isinstance(event, LlmFailed), event
        assert (event.request, event.purpose) == ("request-1", "act")
        assert (event.failed_seq, event.failed_topic) == (9, "forged_id.act.plan_requested")
        return event


def over(*replies: Reply, settings: LlmSettings = QUICK, **options: Any) -> Any:
    """Decorate a test's body, which gets what to ask with and the endpoint."""

    def decorate(body: Any) -> None:
        async def run() -> None:
            async with (
                asyncio.timeout(60),
                serving(*replies) as endpoint,
                ChatClient.open(Endpoint(endpoint.base_url, KEY), connect_s=2.0, concurrency=4) as client,
            ):
                await body(Asking(client, settings, **options), endpoint)

        asyncio.run(run())

    return decorate
