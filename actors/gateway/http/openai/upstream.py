"""The client of the upstream: sends it the requests for its models unchanged, and returns its responses.

The upstream is the model provider at ``gateway.upstream.url``, which answers requests for all models but our own.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from events.libraries.http_client import httpx, new_client
from schemas.intake.strict import quoted_name

Headers = Iterable[tuple[bytes, bytes]]
"""Headers as raw bytes."""

CONNECTIONS = 256
"""Most requests at once; further ones wait for a free connection, within their own deadline."""

IDLE_S = 2.0
"""Seconds that an idle connection is kept: less than an endpoint waits before it closes one.

A request on a connection that is being closed would fail, and must not be sent twice."""

_HOP_BY_HOP = frozenset(
    (
        b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
        b"transfer-encoding upgrade"
    ).split()
)
"""Headers that belong to one connection, not to the message."""

_OUR_PREFIX = b"x-neuraxis-"
"""The prefix of our own headers: they are not sent to an upstream, and not accepted from one."""

_NOT_RETURNED = frozenset(
    (
        b"alt-svc clear-site-data content-security-policy content-security-policy-report-only date feature-policy "
        b"nel origin-agent-cluster permissions-policy referrer-policy refresh report-to reporting-endpoints "
        b"service-worker-allowed set-cookie sourcemap strict-transport-security x-content-type-options "
        b"x-frame-options"
    ).split()
)
_NOT_RETURNED_PREFIXES = (_OUR_PREFIX, b"access-control-", b"cross-origin-")
"""Response headers that are not forwarded: an upstream must not set policies or cookies for this address, or have a
browser do something about it."""

_STATUSES = range(200, 600)
"""The statuses that a response can end with."""

_KEYS = frozenset((b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key"))
"""Headers in which endpoints accept keys."""

_NOT_FORWARDED = _KEYS | {b"host", b"content-length", b"accept-encoding", b"expect", b"cookie"}
"""Request headers that are not forwarded. Keys are, if ``sends_callers_keys`` says so. Cookies never are: a
browser sends the same cookies to all ports of a host, so they may belong to another service."""


class UpstreamFailed(Exception):
    """The endpoint gave no response; ``reason`` is one of ``input.abandoned``, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Upstream:
    """A client of one endpoint; made by :meth:`open`."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        base_url: str,
        key_headers: Mapping[str, str],
        *,
        sends_callers_keys: Callable[[], bool],
    ) -> None:
        self._http = http
        self._base, _, self._query = base_url.partition("?")
        self._key_headers = [(name.lower().encode(), value.encode()) for name, value in key_headers.items()]
        self._sends_callers_keys = sends_callers_keys

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        base_url: str,
        key_headers: Mapping[str, str],
        *,
        connect_s: float,
        is_local: bool,
        sends_callers_keys: Callable[[], bool],
    ) -> AsyncIterator["Upstream"]:
        """Open connections as they are needed, and close them at the end of the block.

        Args:
            base_url: The address including its version; its query, if any, is sent with every request.
            key_headers: The headers with the endpoint's key; none where it needs none.
            connect_s: Seconds to connect.
            is_local: Whether it is on this machine: then the proxy of the environment is not used.
            sends_callers_keys: Returns whether a caller's own key is forwarded if we have none. False if callers have
                keys for this gateway: the endpoint must not see those.

        Raises:
            BadEnvironment: the environment's proxies or certificates cannot be used.
        """
        limits = httpx.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE_S
        )
        timeout = httpx.Timeout(None, connect=connect_s)
        async with new_client(timeout=timeout, limits=limits, trust_env=not is_local) as http:
            yield cls(http, base_url, key_headers, sends_callers_keys=sends_callers_keys)

    async def send(
        self, method: str, path: str, *, query: bytes = b"", headers: Headers = (), body: bytes = b""
    ) -> httpx.Response:
        """Forward a request; return the response once its status and headers have arrived.

        The caller must close it, and sets the deadline.

        Raises:
            UpstreamFailed: no response came back.
        """
        joined = "&".join(filter(None, (self._query, query.decode("latin-1"))))
        url = httpx.URL(f"{self._base}{path}{'?' if joined else ''}{joined}")
        request = httpx.Request(method, url, headers=self._request_headers(headers), content=body)
        try:
            return await self._http.send(request, stream=True)
        except httpx.HTTPError as wrong:
            message = f"the upstream cannot be reached ({type(wrong).__name__}): see gateway.upstream.url, or try again"
            raise UpstreamFailed("upstream_unreachable", message) from wrong

    def _request_headers(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        sends_callers_keys = not self._key_headers and self._sends_callers_keys()
        kept = [
            (name, value)
            for name, value in _end_to_end(headers)
            if (name not in _NOT_FORWARDED and not name.startswith(_OUR_PREFIX))
            or (sends_callers_keys and name in _KEYS)
        ]
        # The response is forwarded as it is and read as well: a compressed one would have to be decompressed for
        # reading.
        return [*kept, *self._key_headers, (b"accept-encoding", b"identity")]


def headers_to_return(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response that are forwarded: all but those of the connection."""
    return [
        (name, value)
        for name, value in _end_to_end(response.headers.raw)
        if name not in _NOT_RETURNED and not name.startswith(_NOT_RETURNED_PREFIXES)
    ]


def why_unfit(response: httpx.Response) -> str:
    """Return why a response cannot be forwarded; empty where it can."""
    if response.status_code not in _STATUSES:
        return f"the upstream answered with status {response.status_code}, which HTTP does not have: see its log"
    if response.has_redirect_location:  # clients follow it: past the guards and the record
        return f"the upstream leads elsewhere (status {response.status_code}): name that place in gateway.upstream.url"
    coding = response.headers.get("content-encoding", "identity")
    if coding != "identity":
        # It could not be read, neither for the record nor by a guard of answers.
        return f"the upstream's answer is compressed ({quoted_name(coding)}), unasked"
    return ""


def _end_to_end(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers without those of one connection; the ``Connection`` header may name more of them."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = {each.strip().lower() for name, value in lowered if name == b"connection" for each in value.split(b",")}
    return [(name, value) for name, value in lowered if name not in _HOP_BY_HOP and name not in named]
