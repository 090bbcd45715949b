"""The client for asyncio; its methods are those of ``Client``, awaited, and are described there."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from neuraxis import calls
from neuraxis.calls import Call
from neuraxis.deadline import look_up_first
from neuraxis.errors import Forbidden, NeuraxisError
from neuraxis.events import ALERTS, Event, topic_of
from neuraxis.following import EVENTS_PATH, SILENCE_S, STREAM_ENDED, Following, end_of_ledger, end_of_log
from neuraxis.models import Answer, Explanation, Feedback, Input, Layer, Page, Verdict
from neuraxis.server import FOLDER, find_server

T = TypeVar("T")


class AsyncClient:
    """Calls a Neuraxis server, from one event loop. Close it, or use it in an ``async with`` block.

    Its arguments, and those of its methods, are described at ``Client``.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        data: Path | str = FOLDER,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        calls.check_limits(timeout, retries)
        self._server = find_server(base_url, api_key, data)
        self._timeout = timeout
        self._retries = retries
        with calls.usable_environment():
            self._http = httpx.AsyncClient(**calls.http_options(self._server, timeout), transport=transport)

    def __repr__(self) -> str:
        return f"AsyncClient({self._server.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def check(
        self,
        text: str = "",
        *,
        layers: Sequence[Layer] = (),
        documents: Sequence[str] = (),
        tool_results: Sequence[str] = (),
        context: str = "",
        session: str = "",
        agent: str = "",
        user: str = "",
    ) -> Verdict:
        """Have the guards check an input; nobody answers it. A refusal is a verdict, not an error."""
        one = Input(
            text=text, layers=layers, documents=documents, tool_results=tool_results, context=context,
            session=session, agent=agent,
        )  # fmt: skip
        return await self._call(calls.check(one, user))

    async def check_all(self, inputs: Sequence[Input], *, user: str = "") -> tuple[Verdict, ...]:
        """Have several inputs checked in one request, 128 at most; return their verdicts in their order."""
        return await self._call(calls.check_all(inputs, user))

    async def ask(self, question: str | Sequence[Mapping[str, Any]], *, session: str = "", user: str = "") -> Answer:
        """Ask Neuraxis itself: a text, or the messages of a conversation as OpenAI's clients write them."""
        return await self._call(calls.ask(question, session, user))

    async def why(self, exchange: str) -> Explanation:
        """Return why an exchange ended as it did. Needs a key with the scope ``read``, if the server has keys."""
        return await self._call(calls.why(exchange))

    async def exchanges(
        self,
        *,
        agent: str = "",
        session: str = "",
        stage: str = "",
        action: str = "",
        reason: str = "",
        mode: str = "",
        before: int = 0,
        limit: int = 50,
    ) -> Page:
        """Return a page of exchanges, the latest first; ``before=page.before`` gets the next page."""
        wanted = calls.exchanges(
            agent=agent, session=session, stage=stage, action=action, reason=reason, mode=mode, before=before,
            limit=limit,
        )  # fmt: skip
        return await self._call(wanted)

    async def feedback(
        self, exchange: str, *, reward: float | None = None, harmful: bool | None = None, comment: str = ""
    ) -> Feedback:
        """Give feedback on an exchange: a ``reward`` from -1 to 1, whether it was harmful, a comment; one at least."""
        return await self._call(calls.feedback(exchange, reward, harmful, comment))

    async def events(
        self, topic: str = ">", *, after: int | Event | None = None, words: bool = False, patience: float = 60.0
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a public subject as they come, each once and in order, without end.

        If you leave the loop early, close the generator (``contextlib.aclosing``).
        """
        begin = await self._end_of_log() if after is None else after
        following = Following(topic_of(topic), begin, words=words, patience_s=patience)
        while True:
            try:
                async with aclosing(self._follow(following)) as connection:
                    async for event in connection:
                        yield event
                failed: NeuraxisError = STREAM_ENDED
            except NeuraxisError as wrong:
                failed = wrong
            await asyncio.sleep(following.pause_after(failed))

    def alerts(self, *, after: int | Event | None = None, patience: float = 60.0) -> AsyncGenerator[Event, None]:
        """Yield alerts as they come, each as the ``alert`` of its event; otherwise as :meth:`events` does."""
        return self.events(ALERTS, after=after, patience=patience)

    async def _follow(self, following: Following) -> AsyncGenerator[Event, None]:
        opening_s = following.opening_s
        waits = httpx.Timeout(min(self._timeout, opening_s), read=SILENCE_S)
        try:
            async with AsyncExitStack() as open_things:
                async with asyncio.timeout(opening_s):
                    answer = await open_things.enter_async_context(
                        self._http.stream(
                            "GET", EVENTS_PATH, params=following.query, headers=following.headers(), timeout=waits,
                            extensions={"trace": look_up_first},
                        )
                    )  # fmt: skip
                    if not answer.is_success:
                        body = bytearray()
                        async for piece in answer.aiter_bytes():
                            body += piece
                            if len(body) > calls.MOST_ERROR_BYTES:
                                break
                        calls.raise_for(answer, bytes(body))
                calls.check_stream(answer)
                async for piece in answer.aiter_bytes():
                    for event in following.take(piece):
                        yield event
        except TimeoutError as late:
            raise calls.overdue(self._server.url, opening_s) from late
        except httpx.HTTPError as wrong:
            raise calls.unreached(self._server.url, wrong, opening_s) from wrong

    async def _end_of_log(self) -> int:
        try:
            return await self._call(end_of_log())
        except Forbidden:  # a key of one agent may not read the overview
            return await self._call(end_of_ledger())

    async def _call(self, call: Call[T]) -> T:
        loop = asyncio.get_running_loop()
        end, attempt = loop.time() + self._timeout, 0
        while True:
            try:
                return await self._send(call, end)
            except NeuraxisError as failed:
                pause = calls.pause_before(call, failed, attempt)
                if pause is None or attempt == self._retries or loop.time() + pause >= end:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def _send(self, call: Call[T], end: float) -> T:
        sent, body = call.content(), bytearray()
        try:
            async with (
                asyncio.timeout_at(end),
                self._http.stream(
                    call.method, call.path, params=call.query, content=sent, headers=call.headers, timeout=None,
                    extensions={"trace": look_up_first},
                ) as answer,
            ):  # fmt: skip
                async for piece in answer.aiter_bytes():
                    body += piece
                    calls.check_length(call, len(body))
        except TimeoutError as late:
            raise calls.overdue(self._server.url, self._timeout) from late
        except httpx.HTTPError as wrong:
            raise calls.unreached(self._server.url, wrong, self._timeout) from wrong
        return calls.result_of(call, answer, bytes(body))
