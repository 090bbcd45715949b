"""One call to a receiver."""

import asyncio
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from actors.webhook.receivers import Address
from actors.webhook.response_verdicts import MOST_BYTES, refusal
from actors.webhook.settings import Style
from events.http_client import httpx

OVERDUE = "CallOverdue"
"""Error of a call that did not come to an end in time."""

_PASSING = frozenset({408, 425, 429})
"""Statuses below 500 that another call may mend."""

_LEAST_SECRET = 6
"""Characters of a piece of an address that may be a secret."""

_NEAR = ("localhost", "127.0.0.1", "[::1]")


class CallFailed(Exception):
    """A receiver did not take an alert.

    Attributes:
        error: What happened, as a stable code: an exception's type, ``HTTP <status>``, or :data:`OVERDUE`. Where a good
            status came with an error, ``HTTP <status>: `` and the receiver's reason, cut and without secrets.
        passing: Whether another call may fare better.
        retry_after_s: Seconds that the receiver wants to be left alone, 0 where it does not say, or does not pass.
    """

    def __init__(self, error: str, *, passing: bool, retry_after_s: float = 0.0) -> None:
        self.error = error
        self.passing = passing
        self.retry_after_s = retry_after_s
        super().__init__(error)


def connections(connect_s: float) -> httpx.AsyncClient:
    """Return a client for receivers; ``connect_s`` are the seconds to reach one in, all else is the caller's to limit.

    It goes through the proxies that the environment names (HTTPS_PROXY, NO_PROXY, ...), but not to this machine, and
    follows no redirects, since a secret may be in the address.
    """
    return httpx.AsyncClient(
        # What is read of an answer is bounded in bytes: a compressed one may be of any size.
        headers={"User-Agent": "neuraxis", "Accept-Encoding": "identity"},
        timeout=httpx.Timeout(None, connect=connect_s),
        mounts={f"all://{host}": None for host in _NEAR},
    )


async def post_to_receiver(
    http: httpx.AsyncClient, address: Address, body: bytes, request: str, within_s: float, style: Style
) -> int:
    """Send a body to a receiver; return the status it took it with. A good status may come with an error in the answer.

    Args:
        http: Connections.
        address: Where to.
        body: What to send, JSON.
        request: Names the alert's event, for a receiver that knows idempotency keys.
        within_s: Seconds for all of it: a client's own time limits begin anew with every byte.
        style: The receiver's form, by which its answer is understood.

    Raises:
        CallFailed: it did not take it.
    """
    status, answer = 0, bytearray()
    headers = {"Content-Type": "application/json", "Idempotency-Key": request}
    if address.token:
        headers["Authorization"] = f"Bearer {address.token}"
    try:
        async with (
            asyncio.timeout(within_s) as limit,
            http.stream("POST", address.url, content=body, headers=headers) as response,
        ):
            status, asked = response.status_code, response.headers.get("Retry-After", "")
            if 200 <= status < 300:
                await _read(response, answer)
    except TimeoutError:
        if not limit.expired():
            raise
        if not status:
            raise CallFailed(OVERDUE, passing=True) from None
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        if not status:
            # Without its text, which may hold the address.
            raise CallFailed(type(wrong).__name__, passing=isinstance(wrong, httpx.HTTPError)) from None
    if 200 <= status < 300:
        # Of an answer that broke off, or came too late, what came: its status said that the alert was taken.
        refused = refusal(bytes(answer), style, secrets_of(address))
        if refused is None:
            return status
        pause_s = retry_after(asked, datetime.now(UTC)) if refused.passing else 0.0
        raise CallFailed(f"HTTP {status}: {refused.reason}", passing=refused.passing, retry_after_s=pause_s)
    passing = status in _PASSING or status >= 500
    pause_s = retry_after(asked, datetime.now(UTC)) if passing else 0.0
    raise CallFailed(f"HTTP {status}", passing=passing, retry_after_s=pause_s)


def secrets_of(address: Address) -> tuple[str, ...]:
    """Return what must not be kept of a receiver's words: its address, and what of it makes it a secret; its token."""
    parts = urlsplit(address.url)
    pieces = (*parts.path.split("/"), *parts.query.replace("=", "&").split("&"))
    return (address.url, address.token, *(piece for piece in pieces if len(piece) >= _LEAST_SECRET))


async def _read(response: httpx.Response, answer: bytearray) -> None:
    async for piece in response.aiter_raw():
        answer += piece[: MOST_BYTES - len(answer)]
        if len(answer) == MOST_BYTES:
            return


def retry_after(written: str, now: datetime) -> float:
    """Return the seconds that a ``Retry-After`` header asks for, 0 where it is absent or senseless (RFC 9110)."""
    written = written.strip()
    if written.isascii() and written.isdigit():
        return float(written)
    try:
        at = parsedate_to_datetime(written)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
