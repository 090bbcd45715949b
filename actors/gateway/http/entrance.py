"""What a gateway answers before it has reached its broker: that it lives, and that it does not serve yet.

The socket is open from the first moment on, often held by a supervisor: without this a request would wait there,
unread, for as long as the broker is away.
"""

import msgspec
from litestar.types import ASGIApp, Receive, Scope, Send

from actors.gateway.http.bodies import Failure
from actors.gateway.http.desk import Readiness

NOT_YET = "this gateway has not reached its broker yet: try again, /readyz tells"


class Entrance:
    """An ASGI application that refuses what it can until ``app`` is there, and hands on everything then."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self.app is not None:
            await self.app(scope, receive, send)
            return
        path = str(scope.get("path", ""))
        if path == "/healthz":
            await _answer(send, 200, {"status": "ok"})
        elif path == "/readyz":
            await _answer(
                send, 503, Readiness(status="not_ready", checks={"log": "the broker has not been reached yet"})
            )
        else:
            await _answer(send, 503, Failure(message=NOT_YET))


async def _answer(send: Send, status: int, body: msgspec.Struct | dict[str, str]) -> None:
    content = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": False})
