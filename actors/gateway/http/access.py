"""The door: who may come in, how many at once, and how much each may bring. An ASGI application around another.

Browsers are kept out of a gateway that asks for no key: a page from elsewhere could else send what it likes to a
loopback address, by its name (``Origin`` tells, and ``Sec-Fetch-Site`` where a browser sends no origin, as for a
picture) or by a name of its own that leads here (``Host`` tells). A response without a policy of its own is no page: an
upstream's HTML would else run with all rights of the dashboard.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPRequestEvent, Message, Receive, Scope, Send

from actors.gateway.http.keys import ApiKeys, is_loopback
from actors.gateway.http.shapes import shaped
from events.loggers import get_logger

MAX_BODY = 1_000_000
"""Most bytes of a request's body: with its envelope it still fits into a message of the log."""

OPEN = frozenset({"/healthz", "/readyz"})
"""Paths for probes: no key is asked for, and they are served however many requests there are."""

_DRAINED = 8 * MAX_BODY
"""Bytes that are read of an oversize body, so that its sender gets to read the answer."""

_CODES = {
    400: "cut_off",
    401: "unauthorized",
    403: "forbidden",
    408: "too_slow",
    413: "too_large",
    429: "too_many_requests",
}
"""Status -> the code of a refusal."""

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)
"""What every response tells a browser, in the place of what it may say itself."""

_POLICY = b"content-security-policy"
_NO_PAGE = b"default-src 'none'; frame-ancestors 'none'; sandbox"
"""The policy of a response that is no page of ours: shown by itself it runs nothing, and belongs to no origin."""

_logger = get_logger("neuraxis.gateway")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests are served at once, and in how many seconds a body must have come in."""

    concurrent: int
    body_s: float


class _Refused(Exception):
    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


class AccessMiddleware:
    """Lets requests through to ``app``.

    Args:
        app: What serves them.
        keys: The API keys, if any are asked for.
        local: Whether it listens on a loopback address: then, where no key is asked for, ``Host`` must name one.
        limits: See there.
        operators: The operators' keys: they let in as API keys do, where those are asked for.
        public: Paths of what everybody may have, without a key.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: ApiKeys,
        *,
        local: bool,
        limits: Limits,
        operators: ApiKeys | None = None,
        public: Collection[str] = (),
    ) -> None:
        self._app = app
        self._keys = keys
        self._operators = operators or ApiKeys()
        self._only_by_loopback = local and not keys
        self._limits = limits
        self._public = public
        self._serving = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            # What GET would answer, without the body: a probe may ask so, and no endpoint need know.
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        send = _with_headers(send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(list(scope["headers"]))}
        try:
            self._check_address(headers)
            if scope["path"] in OPEN:
                await self._app(scope, receive, send)
                return
            if scope["path"] not in self._public:
                self._check_key(headers)
            await self._let_in(scope, headers, receive, send)
        except _Refused as refused:
            _logger.info("request_refused", status=refused.status, method=scope["method"], reason=refused.message)
            await _answer(send, scope["path"], refused)

    def _check_address(self, headers: Mapping[str, str]) -> None:
        host = headers.get("host", "")
        if self._only_by_loopback and not _names_loopback(host):
            raise _Refused(403, "Host names no loopback address: call this by 127.0.0.1 or localhost")
        origin = headers.get("origin")
        if origin is not None and _netloc_of(origin) != host:
            raise _Refused(403, "Origin is another site: pages from elsewhere are not served")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not _is_followed_link(headers):
            raise _Refused(403, "Sec-Fetch-Site is another site: pages from elsewhere are not served")

    def _check_key(self, headers: Mapping[str, str]) -> None:
        given = headers.get("authorization", "").encode("latin-1")
        is_operator = bool(self._operators) and self._operators.open_to(given)
        if not self._keys.open_to(given) and not is_operator:
            raise _Refused(
                401, "an API key is needed: send it as `Authorization: Bearer KEY`", {"www-authenticate": "Bearer"}
            )

    async def _let_in(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        if self._serving >= self._limits.concurrent:
            raise _Refused(
                429, f"{self._serving} requests are being served, as many as may be: try later", {"retry-after": "1"}
            )
        self._serving += 1
        try:
            body = await self._body(headers, receive)
            await self._app(scope, _replayed(body, receive), send)
        finally:
            self._serving -= 1

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """Read the body whole, before anything waits for it."""
        stated = headers.get("content-length", "")
        size, parts, more = 0, [], True
        try:
            async with asyncio.timeout(self._limits.body_s):
                while more and size <= _DRAINED:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Refused(400, "the connection ended before the body did")
                    part: bytes = message.get("body", b"")  # type: ignore[assignment]  # checked by its type above
                    size, more = size + len(part), bool(message.get("more_body", False))
                    if size <= MAX_BODY:
                        parts.append(part)
                    elif stated.isdecimal() and int(stated) > _DRAINED:
                        break
        except TimeoutError:
            raise _Refused(
                408, f"the body was not there within {self._limits.body_s:g} s: send it faster", {"connection": "close"}
            ) from None
        if size > MAX_BODY:
            raise _Refused(413, f"the body has more than {MAX_BODY:,} bytes: send less", {"connection": "close"})
        return b"".join(parts)


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head


def _with_headers(send: Send) -> Send:
    """Return ``send`` with what a browser is told of every response."""
    ours = {name for name, _ in _HEADERS}

    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            said = [(name, value) for name, value in message["headers"] if name.lower() not in ours]
            if not any(name.lower() == _POLICY for name, _ in said):
                said.append((_POLICY, _NO_PAGE))
            message = {**message, "headers": [*said, *_HEADERS]}
        await send(message)

    return send_guarded


def _is_followed_link(headers: Mapping[str, str]) -> bool:
    """Whether a person followed a link to here: its page sees nothing of what is answered."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _netloc_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _names_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return bool(name) and is_loopback(str(name))


def _replayed(body: bytes, receive: Receive) -> Receive:
    whole: HTTPRequestEvent = {"type": "http.request", "body": body, "more_body": False}
    waiting: list[HTTPReceiveMessage] = [whole]

    async def replay() -> Any:
        return waiting.pop() if waiting else await receive()

    return replay


async def _answer(send: Send, path: str, refused: _Refused) -> None:
    body = msgspec.json.encode(shaped(path, refused.status, _CODES[refused.status], refused.message))
    headers = {"content-type": "application/json", "content-length": str(len(body)), **refused.headers}
    start: Message = {
        "type": "http.response.start",
        "status": refused.status,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})
