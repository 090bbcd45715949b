"""The endpoint that other models' requests are passed on to: as they came, and what comes back as it comes."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from events.http_client import httpx
from schemas.intake.strict import quoted_name

Headers = Iterable[tuple[bytes, bytes]]
"""Headers as they are on the wire."""

CONNECTIONS = 256
"""Requests at once; further ones wait for their turn, within their own time."""

IDLE_S = 2.0
"""Seconds that a connection is kept for the next request: less than endpoints wait before they close one.

A request on a connection that is being closed would fail, and it may not be sent twice."""

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
"""What belongs to one connection, not to what is said over it."""

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
    """The endpoint gave nothing; ``reason`` is one of ``input.abandoned``, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Upstream:
    """Speaks to one endpoint; made by :meth:`open`."""

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
        """Open connections as they are needed, and close them at the end.

        Args:
            base_url: The address up to and with its version; its query, if any, is sent with every request.
            key_headers: What carries the endpoint's key; none where it takes none.
            connect_s: Seconds to reach it.
            near: Whether it is on this machine: then no proxy of the environment is asked.
            lends: Returns whether a caller's own key is passed on where there is none of ours. Not where callers have
                keys for this gateway: those are none of the endpoint's business.
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
        """Pass a request on; return the response once its status and headers are there.

        Its caller closes it, and says how long all this may take.

        Raises:
            UpstreamFailed: nothing came back.
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
        # What comes back is passed on as it is, and read besides: compressed it would have to be unpacked for that.
        return [*kept, *self._key_headers, (b"accept-encoding", b"identity")]


def headers_to_return(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response as they are passed on: all but those of the connection."""
    return [
        (name, value)
        for name, value in _through(response.headers.raw)
        if name not in _SERVERS and not name.startswith(_OURS)
    ]


def unfit(response: httpx.Response) -> str:
    """Return why a response is not passed on, empty where it is."""
    if response.has_redirect_location:  # clients follow it: past the guards and the record
        return f"the upstream leads elsewhere (status {response.status_code}): name that place in gateway.upstream.url"
    coding = response.headers.get("content-encoding", "identity")
    if response.is_success and coding != "identity":
        # Nobody could read what it says: neither the record, nor a guard of answers.
        return f"the upstream's answer is compressed ({quoted_name(coding)}), unasked"
    return ""


def _through(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers without those of one connection, which may name more of them."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = {each.strip().lower() for name, value in lowered if name == b"connection" for each in value.split(b",")}
    return [(name, value) for name, value in lowered if name not in _HOP_BY_HOP and name not in named]
