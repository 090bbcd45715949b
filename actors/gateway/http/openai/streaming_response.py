"""Sends a body piece by piece, as long as the client reads it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Protocol, TypeVar

from litestar import Response
from litestar.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")


class SourceBroken(Exception):
    """The source of a body broke off."""


class BodyParts(Protocol):
    """The parts of a body as they arrive; it behaves like an asynchronous generator."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Note that no further part will be requested."""
        ...


class ClientGone(Exception):
    """The client has disconnected: nobody waits for the answer."""


async def unless_client_gone(receive: Receive, work: Awaitable[T]) -> T:
    """Await work, but cancel it if the client disconnects first; raises ClientGone then, else the work's error."""
    working, leaving = (
        asyncio.ensure_future(work),
        asyncio.create_task(_until_disconnect(receive), name="client leaves"),
    )
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))
        if not working.cancelled():
            working.exception()  # marks it as retrieved, so that asyncio logs nothing


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers as raw bytes."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class StreamingResponse(Response[Any]):
    """A response whose parts are sent as they arrive; none is requested after the client has disconnected.

    If its source breaks off (:class:`SourceBroken`), the connection is cut, so that no client takes it for complete.
    """

    def __init__(self, parts: BodyParts, headers: Iterable[tuple[bytes, bytes]], status_code: int = 200) -> None:
        super().__init__(None, status_code=status_code)
        self._parts = parts
        self._head = list(headers)

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIApp:  # type: ignore[override]
        """Return the ASGI application that sends it."""
        return self._send

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def all_parts() -> None:
            async with aclosing(self._parts):
                await send({"type": "http.response.start", "status": self.status_code or 200, "headers": self._head})
                async for part in self._parts:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        with suppress(ClientGone, SourceBroken):
            await unless_client_gone(receive, all_parts())
