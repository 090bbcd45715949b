"""Access control by middleware: who may call, how many requests run at once, how large a body may be.

A gateway without keys refuses requests from web pages of other sites. Otherwise such a page could send anything to a
loopback address. If it uses that address, ``Origin`` shows the site, or ``Sec-Fetch-Site`` where a browser sends no
origin, as for a picture. If it uses a host name of its own that resolves to the address, ``Host`` shows that name. A
response without a content security policy of its own gets one that forbids everything. Otherwise HTML of an upstream
would run with all rights of the dashboard.

A refusal here is an exception of the framework, which ``failures`` turns into a response.
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

from actors.gateway.http.keys import ApiKeys, is_loopback
from actors.gateway.http.keys.rate import Rates
from actors.gateway.http.scopes import PUBLIC
from schemas.intake.whole_numbers import read_whole_number

MAX_BODY = 1_000_000
"""Most bytes of a request's body, so that with its envelope it still fits into a message of the log."""

_DRAINED = 8 * MAX_BODY
"""Bytes of an oversize body that are still read, so that its sender can read the answer."""

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)
"""Security headers of every response; they replace those that the response has itself."""

_REPLACED = frozenset(name for name, _ in _HEADERS)
_POLICY = b"content-security-policy"
_POLICY_OF_DATA = b"default-src 'none'; frame-ancestors 'none'; sandbox"
"""Content security policy of a response that is not one of our pages: nothing runs, and it belongs to no origin."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests are served at once, and within how many seconds a body must have arrived."""

    concurrent: int
    body_s: float


class AddressMiddleware(ASGIMiddleware):
    """Refuses requests from pages of other sites, and requests for other host names.

    Litestar's ``AllowedHostsConfig`` is not used: it compares ``Host`` with its port, knows no IPv6 addresses and no
    ranges such as 127.0.0.0/8, and cannot depend on whether there are keys by now.

    Args:
        keys: The keys. Where a key is required, any ``Host`` is served.
        local: Whether it listens on a loopback address. Then, where no key is required, ``Host`` must name a loopback
            address.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, keys: ApiKeys, *, local: bool) -> None:
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
    """Finds the key of a request and stores it as ``connection.auth``."""

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        # An empty sequence: OPTIONS needs a key, too.
        super().__init__(app, scopes={ScopeType.HTTP}, exclude_http_methods=())
        self._keys = keys

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Return the key; raises NotAuthorizedException where a key is required and the request has no valid one."""
        key = self._keys.find(connection.headers.get("authorization", "").encode("latin-1"))
        if key is None:
            raise NotAuthorizedException(
                "an API key is needed: send it as `Authorization: Bearer KEY`", headers={"www-authenticate": "Bearer"}
            )
        return AuthenticationResult(user=None, auth=key)


class CapacityMiddleware(ASGIMiddleware):
    """Limits the requests served at once and the rate of each key, and reads each body within a deadline.

    Requests to endpoints that need no key do not count, and their bodies are not read. Otherwise a caller without a key
    could use up the limit with slow requests.

    Litestar does not count requests in progress. Its ``request_max_body_size`` has no deadline, and answers before an
    oversize body has arrived: the connection is then cut while the client still sends, so the client never sees the
    answer.

    Args:
        limits: How many requests, and how much time for a body.
        rates: The rate limit of each key.
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
        """Read the whole body, before anything else waits for it."""
        stated = read_whole_number(ASGIConnection[Any, Any, Any, Any](scope).headers.get("content-length", "")) or 0
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
                    elif stated > _DRAINED:
                        break
        except TimeoutError:
            if stated > MAX_BODY:
                raise _too_large() from None
            raise HTTPException(
                f"the body was not there within {self._limits.body_s:g} s: send it faster",
                status_code=408,
                headers={"connection": "close"},
            ) from None
        if size > MAX_BODY:
            raise _too_large()
        return b"".join(parts)


def _too_large() -> HTTPException:
    message = f"the body has more than {MAX_BODY:,} bytes: send less"
    return HTTPException(message, status_code=413, headers={"connection": "close"})


async def guard_browsers(message: Message, scope: Scope) -> None:
    """Add the security headers for browsers to every response: Litestar's ``before_send``."""
    if message["type"] != "http.response.start":
        return
    headers = [(name, value) for name, value in message["headers"] if name.lower() not in _REPLACED]
    if not any(name.lower() == _POLICY for name, _ in headers):
        headers.append((_POLICY, _POLICY_OF_DATA))
    message["headers"] = [*headers, *_HEADERS]


def _is_followed_link(headers: Mapping[str, str]) -> bool:
    """Return whether a person followed a link to here: then the page with the link cannot read the response."""
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
    """Return a ``receive`` that first gives the body which was read here."""
    whole: HTTPRequestEvent = {"type": "http.request", "body": body, "more_body": False}
    waiting: list[HTTPReceiveMessage] = [whole]

    async def replay() -> Any:
        return waiting.pop() if waiting else await receive()

    return replay
