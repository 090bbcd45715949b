"""One call to an endpoint: over HTTP, whole or as a stream, never more than a bounded number of bytes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from actors.llm.endpoint import Endpoint
from actors.llm.protocol import (
    Chunk,
    Completion,
    NotTheProtocol,
    Refused,
    Usage,
    completion,
    read_answer,
    read_chunk,
    read_models,
    request_body,
)
from actors.llm.sse import DONE, Events
from schemas.calls import ModelCall
from schemas.vocabulary.llm import ANSWER_INVALID

MOST_BYTES = 8 * 1024 * 1024
"""What is read of one answer; a stream spends some 200 bytes of JSON on a token."""

MOST_ERROR_BYTES = 64 * 1024
"""What is read of an answer that is an error."""

_TOO_MANY, _NOT_FOUND = 429, 404


class CallFailed(Exception):
    """A call that brought no answer.

    Attributes:
        reason: One of the reasons of ``llm.failed``.
        error: What happened, as a stable code: an exception's type, or ``HTTP <status>``.
        passing: Whether another call may fare better.
        dead: Whether it is a sign of a dead endpoint.
        retry_after_s: Seconds that the endpoint wants to be left alone; None where it does not say.
    """

    def __init__(
        self, reason: str, error: str, *, passing: bool = False, dead: bool = False, retry_after_s: float | None = None
    ) -> None:
        self.reason = reason
        self.error = error
        self.passing = passing
        self.dead = dead
        self.retry_after_s = retry_after_s
        super().__init__(f"{reason}: {error}")


class ChatClient:
    """Speaks to one endpoint; made by :meth:`open`."""

    def __init__(self, http: httpx.AsyncClient, base_url: str) -> None:
        self._http = http
        self._base_url = base_url

    @classmethod
    @asynccontextmanager
    async def open(cls, endpoint: Endpoint, *, connect_s: float, concurrency: int) -> AsyncIterator["ChatClient"]:
        """Open connections as they are needed, and close them at the end."""
        headers = {
            "User-Agent": "neuraxis",
            "Accept": "application/json, text/event-stream",
            # What is read is bounded in bytes: a compressed answer may be of any size.
            "Accept-Encoding": "identity",
        }
        if endpoint.api_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key}"
        http = httpx.AsyncClient(
            headers=headers,
            # How long an answer may take is the request's own affair, and its caller's clock runs.
            timeout=httpx.Timeout(None, connect=connect_s),
            limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
            # A proxy that the environment names can hardly reach this machine.
            trust_env=not endpoint.is_near,
        )
        async with http:
            yield cls(http, endpoint.base_url)

    async def models(self) -> tuple[str, ...]:
        """Return the models that the endpoint lists; raises CallFailed."""
        async with self._response("GET", "/models", b"", {}) as response:
            try:
                return read_models(await _whole(response, MOST_BYTES))
            except NotTheProtocol as wrong:
                raise CallFailed(ANSWER_INVALID, "NotTheProtocol") from wrong
            except Refused as refused:
                raise _refused(response.status_code, refused.status) from refused

    async def ask(
        self, call: ModelCall, model: str, request: str, spoken: Callable[[str], Awaitable[None]]
    ) -> Completion:
        """Ask a model once.

        Args:
            call: What to ask.
            model: Whom.
            request: The request's id, for an endpoint that knows idempotency keys.
            spoken: Gets each piece of text as it comes, where the call is to be streamed.

        Raises:
            CallFailed: nothing usable came.
        """
        body, headers = request_body(call, model), {"Idempotency-Key": request, "Content-Type": "application/json"}
        async with self._response("POST", "/chat/completions", body, headers) as response:
            try:
                if response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    return await _streamed(response, spoken)
                return read_answer(await _whole(response, MOST_BYTES))
            except NotTheProtocol as wrong:
                raise CallFailed(ANSWER_INVALID, "NotTheProtocol") from wrong
            except Refused as refused:
                raise _refused(response.status_code, refused.status) from refused

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> AsyncIterator[httpx.Response]:
        try:
            url = f"{self._base_url}{path}"
            async with self._http.stream(method, url, content=body or None, headers=headers) as response:
                # A cookie would be sent with every later call, whoever's it is.
                self._http.cookies.clear()
                if response.headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
                    raise CallFailed(ANSWER_INVALID, "ContentEncoding")
                if response.status_code != httpx.codes.OK:
                    raise await _refusal(response)
                yield response
        except httpx.DecodingError as wrong:
            raise CallFailed(ANSWER_INVALID, type(wrong).__name__) from wrong
        except httpx.HTTPError as wrong:
            raise CallFailed("endpoint_unreachable", type(wrong).__name__, passing=True, dead=True) from wrong


async def _whole(response: httpx.Response, most: int) -> bytes:
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            raise NotTheProtocol(f"an answer of more than {most} bytes")
    return bytes(body)


async def _streamed(response: httpx.Response, spoken: Callable[[str], Awaitable[None]]) -> Completion:
    text, model, finish, usage = [], "", "", Usage()
    async for chunk in _chunks(response):
        if chunk.broken:
            # The endpoint took the request and broke off: a model that crashed, or memory that ran out.
            raise CallFailed("endpoint_unreachable", "StreamError", passing=True, dead=True)
        model = chunk.model or model
        usage = chunk.usage or usage
        if chunk.choices:
            finish = chunk.choices[0].finish_reason or finish
        if chunk.text:
            text.append(chunk.text)
            await spoken(chunk.text)
    if not finish:
        raise CallFailed("endpoint_unreachable", "StreamCutShort", passing=True, dead=True)
    return completion("".join(text), model, finish, usage)


async def _chunks(response: httpx.Response) -> AsyncIterator[Chunk]:
    events, read = Events(), 0
    async for piece in response.aiter_raw():
        read += len(piece)
        if read > MOST_BYTES:
            raise NotTheProtocol(f"a stream of more than {MOST_BYTES} bytes")
        for data in events.take(piece):
            if data == DONE:
                return
            yield read_chunk(data)
    for data in events.end():
        if data != DONE:
            yield read_chunk(data)


def _refused(status: int, told: int) -> CallFailed:
    """Return the failure of an answer that holds an error under a good status, by the status that the error names."""
    passing = told == _TOO_MANY or told >= httpx.codes.INTERNAL_SERVER_ERROR
    error = f"HTTP {status}: error {told}" if told else f"HTTP {status}: error"
    if told == _NOT_FOUND:
        return CallFailed("no_model", error)
    return CallFailed("endpoint_refused", error, passing=passing, dead=told >= httpx.codes.INTERNAL_SERVER_ERROR)


async def _refusal(response: httpx.Response) -> CallFailed:
    status = response.status_code
    error = f"HTTP {status}"
    if status == _TOO_MANY:
        wait = retry_after(response.headers.get("Retry-After", ""), datetime.now(UTC))
        return CallFailed("endpoint_refused", error, passing=True, retry_after_s=wait)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        wait = retry_after(response.headers.get("Retry-After", ""), datetime.now(UTC))
        return CallFailed("endpoint_refused", error, passing=True, dead=True, retry_after_s=wait)
    if status == _NOT_FOUND and await _names_a_model(response):
        return CallFailed("no_model", error)
    return CallFailed("endpoint_refused", error)


async def _names_a_model(response: httpx.Response) -> bool:
    """Whether a 404 is about the model, not the address: endpoints say so in words only."""
    try:
        return b"model" in (await _whole(response, MOST_ERROR_BYTES)).lower()
    except NotTheProtocol:
        return False


def retry_after(written: str, now: datetime) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for, None where it is absent or senseless (RFC 9110)."""
    written = written.strip()
    if written.isascii() and written.isdigit():
        return float(written)
    try:
        at = parsedate_to_datetime(written)
    except (ValueError, OverflowError):
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
