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
"""The error code of a call that did not finish in time."""

_PASSING = frozenset({408, 425, 429})
"""Statuses below 500 after which another call may succeed."""

_LEAST_SECRET = 6
"""Least characters of a part of an address that may be a secret."""

_NEAR = ("localhost", "127.0.0.1", "[::1]")


class CallFailed(Exception):
    """A receiver did not accept an alert.

    Attributes:
        error: A stable code of what happened: an exception's type, ``HTTP <status>``, or :data:`OVERDUE`. If an error
            came with a good status: ``HTTP <status>: `` and the receiver's reason, cut and without secrets.
        passing: Whether another call may succeed.
        retry_after_s: Seconds of pause that the receiver asks for; 0 where it does not, or where no other call is made.
    """

    def __init__(self, error: str, *, passing: bool, retry_after_s: float = 0.0) -> None:
        self.error = error
        self.passing = passing
        self.retry_after_s = retry_after_s
        super().__init__(error)


def connections(connect_s: float) -> httpx.AsyncClient:
    """Return a client for receivers; ``connect_s`` limits connecting (seconds), the caller limits everything else.

    It uses the proxies of the environment (HTTPS_PROXY, NO_PROXY, ...), except for addresses on this machine. It
    follows no redirects, since the address may contain a secret.
    """
    return httpx.AsyncClient(
        # The bytes read of an answer are limited, but a compressed answer could unpack to any size.
        headers={"User-Agent": "neuraxis", "Accept-Encoding": "identity"},
        timeout=httpx.Timeout(None, connect=connect_s),
        mounts={f"all://{host}": None for host in _NEAR},
    )


async def post_to_receiver(
    http: httpx.AsyncClient, address: Address, body: bytes, request: str, within_s: float, style: Style
) -> int:
    """Send a body to a receiver; return the status of an accepted call. A good status may come with an error.

    Args:
        http: Connections.
        address: The address to send to.
        body: What to send, JSON.
        request: The id of the alert's event, for a receiver that supports idempotency keys.
        within_s: Seconds for the whole call: the client's own time limits start again with every byte.
        style: The receiver's format, in which its answer is read.

    Raises:
        CallFailed: the receiver did not accept it.
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
            # Without the message of the exception, which may contain the address.
            raise CallFailed(type(wrong).__name__, passing=isinstance(wrong, httpx.HTTPError)) from None
    if 200 <= status < 300:
        # If the body broke off or came too late, the part that came is used: the status said that the alert was
        # accepted.
        refused = refusal(bytes(answer), style, secrets_of(address))
        if refused is None:
            return status
        pause_s = retry_after(asked, datetime.now(UTC)) if refused.passing else 0.0
        raise CallFailed(f"HTTP {status}: {refused.reason}", passing=refused.passing, retry_after_s=pause_s)
    passing = status in _PASSING or status >= 500
    pause_s = retry_after(asked, datetime.now(UTC)) if passing else 0.0
    raise CallFailed(f"HTTP {status}", passing=passing, retry_after_s=pause_s)


def secrets_of(address: Address) -> tuple[str, ...]:
    """Return what must not be kept of a receiver's answer: its address, the secret parts of that, and its token."""
    parts = urlsplit(address.url)
    pieces = (*parts.path.split("/"), *parts.query.replace("=", "&").split("&"))
    return (address.url, address.token, *(piece for piece in pieces if len(piece) >= _LEAST_SECRET))


async def _read(response: httpx.Response, answer: bytearray) -> None:
    async for piece in response.aiter_raw():
        answer += piece[: MOST_BYTES - len(answer)]
        if len(answer) == MOST_BYTES:
            return


def retry_after(written: str, now: datetime) -> float:
    """Return the seconds that a ``Retry-After`` header asks for; 0 where it is absent or invalid (RFC 9110)."""
    written = written.strip()
    if written.isascii() and written.isdigit():
        return float(written)
    try:
        at = parsedate_to_datetime(written)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
