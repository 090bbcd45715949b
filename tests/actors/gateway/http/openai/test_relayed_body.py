"""The body of an upstream's answer: a long prompt, and a long answer, are read while others are served."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from actors.contract.answers.credentials import PromptSecrets
from actors.contract.answers.prompt import Prompt
from actors.contract.privacy.settings import PrivacySettings
from actors.gateway.http.openai.passthrough import relayed_body
from actors.gateway.http.openai.passthrough.guarding import GuardedStream, Watch
from actors.gateway.http.openai.passthrough.masking import MaskedRequest
from actors.gateway.http.openai.passthrough.relayed_body import RelayedBody
from actors.gateway.http.openai.relayed_answer import RelayedAnswer
from schemas.intake.sse import Events
from schemas.vocabulary.gateway import Layer

EVENTS = (b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n', b'data: {"error":{"message":"busy"}}\n\n')


async def pieces() -> AsyncIterator[bytes]:
    for event in EVENTS:
        yield event


@asynccontextmanager
async def no_deadline(_: Any) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(("repeats", "is_long"), [(10, False), (4_000, True)])
def test_a_long_prompt_is_read_in_a_thread_and_once(
    repeats: int, is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, begin = list[str](), PromptSecrets.__init__

    def noted(secrets: PromptSecrets, prompt: Prompt) -> None:
        threads.append(threading.current_thread().name)
        begin(secrets, prompt)

    async def body() -> None:
        prompt = Prompt("Hello", (Layer(role="system", content="Be kind. " * repeats),))
        service: Any = SimpleNamespace(client=SimpleNamespace(deadline=no_deadline), abandon=lambda *_: None)
        response: Any = SimpleNamespace(aiter_raw=pieces)
        unused: Any = None
        relayed = RelayedBody(service, response, unused, unused, unused, GuardedStream(prompt, Watch()))
        assert await anext(relayed) == b"".join(EVENTS)

    monkeypatch.setattr(PromptSecrets, "__init__", noted)
    asyncio.run(body())
    here = threading.current_thread().name
    assert [name != here for name in threads] == [is_long, is_long], "the window has one of its own"


@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize(("numbers", "has_end"), [(100, True), (100, False), (100_000, True), (100_000, False)])
def test_a_long_event_is_read_in_a_thread(
    numbers: int, has_end: bool, is_masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event of millions of numbers takes a second, while others wait."""
    threads: list[bool] = []
    here = threading.current_thread()
    event = b'data: {"choices":[{"delta":{"content":"Hello"}}],"padding":[%s]}' % b",".join([b"1"] * numbers)
    stream = EVENTS[1] + event + b"\n\n" * has_end

    async def in_pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(stream), 4_096):
            yield stream[at : at + 4_096]

    def noted(events: Events, data: bytes) -> Iterator[Any]:
        if b"padding" in data:
            threads.append(threading.current_thread() is not here)
        return feed(events, data)

    async def body() -> None:
        service: Any = SimpleNamespace(client=SimpleNamespace(deadline=no_deadline), abandon=lambda *_: None)
        response: Any = SimpleNamespace(aiter_raw=in_pieces)
        unused: Any = None
        masked = MaskedRequest(b'{"messages":[{"content":"Mail ann@example.org"}]}', PrivacySettings())
        guarded = GuardedStream(Prompt("Hello", ()), Watch())
        relayed = RelayedBody(service, response, unused, unused, unused, guarded, masked if is_masked else None)
        assert b"".join([piece async for piece in relayed]) == stream

    feed = Events.feed
    monkeypatch.setattr(Events, "feed", noted)
    asyncio.run(body())
    assert set(threads) == {numbers > 100}


@pytest.mark.parametrize(("repeats", "is_long"), [(10, False), (6_000, True)])
def test_a_long_answer_is_read_in_a_thread(repeats: int, is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that thinks aloud writes tens of thousands of events, and others wait while they are read."""
    threads, read = list[str](), relayed_body.read_streamed_answer

    def noted(body: bytes) -> RelayedAnswer:
        threads.append(threading.current_thread().name)
        return read(body)

    async def long() -> AsyncIterator[bytes]:
        yield EVENTS[0] * repeats
        yield EVENTS[1]

    async def body() -> None:
        service: Any = SimpleNamespace(client=SimpleNamespace(deadline=no_deadline), abandon=lambda *_: None)
        response: Any = SimpleNamespace(aiter_raw=long)
        unused: Any = None
        relayed = RelayedBody(service, response, unused, unused, unused, GuardedStream(Prompt("Hello", ()), Watch()))
        assert b"".join([piece async for piece in relayed]) == EVENTS[0] * repeats + EVENTS[1]

    monkeypatch.setattr(relayed_body, "read_streamed_answer", noted)
    asyncio.run(body())
    assert [name != threading.current_thread().name for name in threads] == [is_long]
