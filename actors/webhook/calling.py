"""One call to a receiver."""

import asyncio
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from actors.webhook.receivers import Address

OVERDUE = "CallOverdue"
"""Error of a call that did not come to an end in time."""

_PASSING = frozenset({408, 425, 429})
"""Statuses below 500 that another call may mend."""

_NEAR = ("localhost", "127.0.0.1", "[::1]")


class CallFailed(Exception):
    """A receiver did not take an alert.

    Attributes:
        error: What happened, as a stable code: an exception's type, ``HTTP <status>``, or :data:`OVERDUE`.
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
        headers={"User-Agent": "neuraxis"},
        timeout=httpx.Timeout(None, connect=connect_s),
        mounts={f"all://{host}": None for host in _NEAR},
    )


async def call(http: httpx.AsyncClient, address: Address, body: bytes, request: str, within_s: float) -> int:
    """Send a body to a receiver; return the status it took it with. What it answers besides is not read.

    Args:
        http: Connections.
        address: Where to.
        body: What to send, JSON.
        request: Names the alert's event, for a receiver that knows idempotency keys.
        within_s: Seconds for all of it: a client's own time limits begin anew with every byte.

    Raises:
        CallFailed: it did not take it.
    """
    headers = {"Content-Type": "application/json", "Idempotency-Key": request}
    if address.token:
        headers["Authorization"] = f"Bearer {address.token}"
    try:
        async with (
            asyncio.timeout(within_s) as limit,
            http.stream("POST", address.url, content=body, headers=headers) as response,
        ):
            status, asked = response.status_code, response.headers.get("Retry-After", "")
    except TimeoutError:
        if not limit.expired():
            raise
        raise CallFailed(OVERDUE, passing=True) from None
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        # Without its text, which may hold the address.
        raise CallFailed(type(wrong).__name__, passing=isinstance(wrong, httpx.HTTPError)) from None
    if 200 <= status < 300:
        return status
    passing = status in _PASSING or status >= 500
    pause_s = retry_after(asked, datetime.now(UTC)) if passing else 0.0
    raise CallFailed(f"HTTP {status}", passing=passing, retry_after_s=pause_s)


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
