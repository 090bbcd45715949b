"""The connection to the upstream: requests for other models are sent there unchanged, and responses come back."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from events.http_client import httpx
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
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Headers that belong to one connection, not to the message."""

_OURS = b"x-neuraxis-"
"""What our own headers begin with: no endpoint is told them, or says what was decided here."""

_SERVERS = frozenset((b"date", b"content-security-policy", b"set-cookie"))
"""What the server here says itself: an upstream does not say what its page may do at this address, or keeps there."""

_KEYS = frozenset((b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key"))
"""Headers in which endpoints take keys."""

_OWN = _KEYS | {b"host", b"content-length", b"accept-encoding", b"expect", b"cookie"}
"""What a request of ours has of its own. Keys are passed on where nobody else's could be; cookies never: a browser has
one jar for all that runs at an address, whatever its port."""


class UpstreamFailed(Exception):
    """The endpoint gave no response; ``reason`` is one of ``input.abandoned``, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Upstream:
    """A client of one endpoint; made by :meth:`open`."""

    def __init__(
        self, http: httpx.AsyncClient, base_url: str, key_headers: Mapping[str, str], *, lends: Callable[[], bool]
    ) -> None:
        self._http = http
        self._base, _, self._query = base_url.partition("?")
        self._key_headers = [(name.lower().encode(), value.encode()) for name, value in key_headers.items()]
        self._lends = lends

    @classmethod
    @asynccontextmanager
    async def open(
        cls, base_url: str, key_headers: Mapping[str, str], *, connect_s: float, near: bool, lends: Callable[[], bool]
    ) -> AsyncIterator["Upstream"]:
        """Open connections as they are needed, and close them at the end of the block.

        Args:
            base_url: The address including its version; its query, if any, is sent with every request.
            key_headers: The headers with the endpoint's key; none where it needs none.
            connect_s: Seconds to connect.
            near: Whether it is on this machine: then the proxy of the environment is not used.
            lends: Returns whether a caller's own key is forwarded where we have none. Not where callers have keys for
                this gateway: the endpoint must not see those.
        """
        limits = httpx.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE_S
        )
        timeout = httpx.Timeout(None, connect=connect_s)
        async with httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=not near) as http:
            yield cls(http, base_url, key_headers, lends=lends)

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
        request = httpx.Request(method, url, headers=self._sent(headers), content=body)
        try:
            return await self._http.send(request, stream=True)
        except httpx.HTTPError as wrong:
            said = f"the upstream cannot be reached ({type(wrong).__name__}): see gateway.upstream.url, or try again"
            raise UpstreamFailed("upstream_unreachable", said) from wrong

    def _sent(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        lends = not self._key_headers and self._lends()
        kept = [
            (name, value)
            for name, value in _through(headers)
            if (name not in _OWN and not name.startswith(_OURS)) or (lends and name in _KEYS)
        ]
        # The response is forwarded as it is and read as well: a compressed one would have to be decompressed for
        # reading.
        return [*kept, *self._key_headers, (b"accept-encoding", b"identity")]


def headers_to_return(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response that are forwarded: all but those of the connection."""
    return [
        (name, value)
        for name, value in _through(response.headers.raw)
        if name not in _SERVERS and not name.startswith(_OURS)
    ]


def unfit(response: httpx.Response) -> str:
    """Return why a response cannot be forwarded; empty where it can."""
    if response.has_redirect_location:  # clients follow it: past the guards and the record
        return f"the upstream leads elsewhere (status {response.status_code}): name that place in gateway.upstream.url"
    coding = response.headers.get("content-encoding", "identity")
    if response.is_success and coding != "identity":
        # It could not be read, neither for the record nor by a guard of answers.
        return f"the upstream's answer is compressed ({quoted_name(coding)}), unasked"
    return ""


def _through(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers without those of one connection; the ``Connection`` header may name more of them."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = {each.strip().lower() for name, value in lowered if name == b"connection" for each in value.split(b",")}
    return [(name, value) for name, value in lowered if name not in _HOP_BY_HOP and name not in named]
