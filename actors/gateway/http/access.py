"""Who may come in, how many at once, and how much each may bring: middleware of Litestar's, in this order.

Browsers are kept out of a gateway that asks for no key: a page from elsewhere could else send what it likes to a
loopback address, by its name (``Origin`` tells, and ``Sec-Fetch-Site`` where a browser sends no origin, as for a
picture) or by a name of its own that leads here (``Host`` tells). A response without a policy of its own is no page: an
upstream's HTML would else run with all rights of the dashboard.

What is refused here is an exception of the framework's, which ``failures`` makes a response of.
"""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.exceptions import (
    ClientException,
    HTTPException,
    NotAuthorizedException,
    PermissionDeniedException,
    TooManyRequestsException,
)
from litestar.middleware import AbstractAuthenticationMiddleware, ASGIMiddleware, AuthenticationResult
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPRequestEvent, Message, Receive, Scope, Send

from actors.gateway.http.keys import Keyring, is_loopback
from actors.gateway.http.keys.rate import Rates
from actors.gateway.http.scopes import PUBLIC

MAX_BODY = 1_000_000
"""Most bytes of a request's body: with its envelope it still fits into a message of the log."""

_DRAINED = 8 * MAX_BODY
"""Bytes that are read of an oversize body, so that its sender gets to read the answer."""

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)
"""What every response tells a browser, in the place of what it may say itself."""

_OURS = frozenset(name for name, _ in _HEADERS)
_POLICY = b"content-security-policy"
_NO_PAGE = b"default-src 'none'; frame-ancestors 'none'; sandbox"
"""The policy of a response that is no page of ours: shown by itself it runs nothing, and belongs to no origin."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests are served at once, and in how many seconds a body must have come in."""

    concurrent: int
    body_s: float


class AddressMiddleware(ASGIMiddleware):
    """Refuses pages from elsewhere, and names of other hosts.

    Litestar's ``AllowedHostsConfig`` compares ``Host`` with its port, knows no IPv6 address and no range such as
    127.0.0.0/8, and cannot depend on whether there are keys by now.

    Args:
        keys: The keys: where one is asked for, any ``Host`` is served.
        local: Whether it listens on a loopback address: then, where no key is asked for, ``Host`` must name one.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, keys: Keyring, *, local: bool) -> None:
        self._keys = keys
        self._local = local

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve one request, or refuse it."""
        headers = ASGIConnection[Any, Any, Any, Any](scope).headers
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._local and not self._keys.required and not _names_loopback(host):
            raise PermissionDeniedException("Host names no loopback address: call this by 127.0.0.1 or localhost")
        if origin is not None and _netloc_of(origin) != host:
            raise PermissionDeniedException("Origin is another site: pages from elsewhere are not served")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not _is_followed_link(headers):
            raise PermissionDeniedException("Sec-Fetch-Site is another site: pages from elsewhere are not served")
        await next_app(scope, receive, send)


class KeyMiddleware(AbstractAuthenticationMiddleware):
    """Finds the key that a request brings: ``connection.auth`` from then on."""

    def __init__(self, app: ASGIApp, keys: Keyring) -> None:
        # An empty sequence: OPTIONS needs a key, too.
        super().__init__(app, scopes={ScopeType.HTTP}, exclude_http_methods=())
        self._keys = keys

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Return the key; raises NotAuthorizedException where a key is asked for and none in force is brought."""
        key = self._keys.find(connection.headers.get("authorization", "").encode("latin-1"))
        if key is None:
            raise NotAuthorizedException(
                "an API key is needed: send it as `Authorization: Bearer KEY`", headers={"www-authenticate": "Bearer"}
            )
        return AuthenticationResult(user=None, auth=key)


class CapacityMiddleware(ASGIMiddleware):
    """Lets in as many requests at once as may be, each key as often as it may, and reads each body in time.

    What needs no key takes no place and has no body read: who has none could else take all the places, slowly.

    Litestar counts no requests under way. Its ``request_max_body_size`` has no time limit, and answers before an
    oversize body has come in: the connection is then cut while the client still sends, which never sees the answer.

    Args:
        limits: See there.
        rates: How often each key may ask.
    """

    scopes = (ScopeType.HTTP,)
    exclude_opt_key = PUBLIC

    def __init__(self, limits: Limits, rates: Rates) -> None:
        self._limits = limits
        self._rates = rates
        self._serving = 0

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve one request, or refuse it."""
        key = scope.get("auth")
        if key is not None and (wait_s := self._rates.take(key)):
            raise TooManyRequestsException(
                f"the key {key.id} may ask {key.per_minute} times a minute: try again in {wait_s} s",
                headers={"retry-after": str(wait_s)},
            )
        if self._serving >= self._limits.concurrent:
            raise TooManyRequestsException(
                f"{self._serving} requests are being served, as many as may be: try later", headers={"retry-after": "1"}
            )
        self._serving += 1
        try:
            body = await self._body(scope, receive)
            await next_app(scope, _replayed(body, receive), send)
        finally:
            self._serving -= 1

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body whole, before anything waits for it."""
        stated = ASGIConnection[Any, Any, Any, Any](scope).headers.get("content-length", "")
        size, parts, more = 0, [], True
        try:
            async with asyncio.timeout(self._limits.body_s):
                while more and size <= _DRAINED:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientException("the connection ended before the body did")
                    part: bytes = message.get("body", b"")  # type: ignore[assignment]  # checked by its type above
                    size, more = size + len(part), bool(message.get("more_body", False))
                    if size <= MAX_BODY:
                        parts.append(part)
                    elif stated.isdecimal() and int(stated) > _DRAINED:
                        break
        except TimeoutError:
            raise HTTPException(
                f"the body was not there within {self._limits.body_s:g} s: send it faster",
                status_code=408,
                headers={"connection": "close"},
            ) from None
        if size > MAX_BODY:
            raise HTTPException(
                f"the body has more than {MAX_BODY:,} bytes: send less",
                status_code=413,
                headers={"connection": "close"},
            )
        return b"".join(parts)


async def guard_browsers(message: Message, scope: Scope) -> None:
    """Add to a response what a browser is told of every one: Litestar's ``before_send``."""
    if message["type"] != "http.response.start":
        return
    said = [(name, value) for name, value in message["headers"] if name.lower() not in _OURS]
    if not any(name.lower() == _POLICY for name, _ in said):
        said.append((_POLICY, _NO_PAGE))
    message["headers"] = [*said, *_HEADERS]


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
