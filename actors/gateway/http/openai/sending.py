"""Sending what comes piece by piece, for as long as somebody reads it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from litestar import Response
from litestar.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")


class Gone(Exception):
    """Whoever asked has gone: nobody waits for the answer."""


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T:
    """Wait for work, and cancel it where the client goes before; raises Gone then, else what the work raises."""
    working, leaving = asyncio.ensure_future(work), asyncio.create_task(_left(receive), name="client leaves")
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Gone
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Sent(Response[Any]):
    """A response whose parts are sent as they come, and are asked for no more once the client has gone."""

    def __init__(self, parts: AsyncGenerator[bytes, None], headers: Mapping[str, str], status_code: int = 200) -> None:
        super().__init__(None, status_code=status_code)
        self._parts = parts
        self._head = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIApp:  # type: ignore[override]
        """Return what sends it."""
        return self._send

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def all_parts() -> None:
            await send({"type": "http.response.start", "status": self.status_code or 200, "headers": self._head})
            async with aclosing(self._parts):
                async for part in self._parts:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        with suppress(Gone):
            await unless_gone(receive, all_parts())
