"""What a gateway answers before it has reached its broker: that it lives, and that it does not serve yet.

The socket is open from the first moment on, often held by a supervisor: without this a request would wait there,
unread, for as long as the broker is away.
"""

import asyncio

import msgspec
from litestar.types import ASGIApp, Receive, Scope, Send

from actors.gateway.http.bodies import Failure
from actors.gateway.http.loops.service import Readiness

NOT_YET = "this gateway has not reached its broker yet: try again, /readyz tells"


PATIENCE_S = 2.0
"""Seconds that a request waits for the broker to be reached: at a gateway that was started again, that takes less."""


class Entrance:
    """An ASGI application that hands on to another once that is there; until then it answers what it can itself."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._there = asyncio.Event()

    def open(self, app: ASGIApp) -> None:
        """Have ``app`` serve from now on, those who wait included."""
        self._app = app
        self._there.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = str(scope.get("path", ""))
        if self._app is None and path not in ("/healthz", "/readyz"):
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._there.wait()
            except TimeoutError:
                await _answer(send, 503, Failure(code="not_ready", message=NOT_YET))
                return
        if self._app is not None:
            await self._app(scope, receive, send)
        elif path == "/healthz":
            await _answer(send, 200, {"status": "ok"})
        else:
            checks = {"log": "the broker has not been reached yet"}
            await _answer(send, 503, Readiness(status="not_ready", checks=checks))


async def _answer(send: Send, status: int, body: msgspec.Struct | dict[str, str]) -> None:
    content = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": False})
