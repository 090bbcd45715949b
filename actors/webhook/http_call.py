"""Makes one HTTP call to a receiver."""

import asyncio
from datetime import UTC, datetime
from urllib.parse import urlsplit

from actors.webhook.receivers import Address
from actors.webhook.response_verdicts import MOST_BYTES, refusal
from actors.webhook.settings import Style
from events.libraries.http_client import httpx, new_client
from schemas.intake.retry_after import retry_after

OVERDUE = "CallOverdue"
"""The error code of a call that did not finish in time."""

_TEMPORARY = frozenset({408, 425, 429})
"""Statuses below 500 after which another call may succeed."""

_LEAST_SECRET_LENGTH = 6
"""Fewest characters of a part of an address that may be a secret."""

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class CallFailed(Exception):
    """A receiver did not accept an alert.

    Attributes:
        error: A stable code of what happened: an exception's type, ``HTTP <status>``, or :data:`OVERDUE`. If an error
            came with a good status: ``HTTP <status>: `` and the receiver's reason, cut and without secrets.
        temporary: Whether another call may succeed.
        retry_after_s: Seconds of pause that the receiver asks for; 0 where it does not, or where no other call is made.
    """

    def __init__(self, error: str, *, temporary: bool, retry_after_s: float = 0.0) -> None:
        self.error = error
        self.temporary = temporary
        self.retry_after_s = retry_after_s
        super().__init__(error)


def connections(connect_s: float) -> httpx.AsyncClient:
    """Return a client for receivers; ``connect_s`` limits connecting (seconds), the caller limits everything else.

    It uses the proxies of the environment (HTTPS_PROXY, NO_PROXY, ...), except for addresses on this machine. It
    follows no redirects, since the address may contain a secret. Raises BadEnvironment.
    """
    return new_client(
        # The bytes read of an answer are limited, but a compressed answer could unpack to any size.
        headers={"User-Agent": "neuraxis", "Accept-Encoding": "identity"},
        timeout=httpx.Timeout(None, connect=connect_s),
        mounts={f"all://{host}": None for host in _LOCAL_HOSTS},
    )


async def post_to_receiver(
    http: httpx.AsyncClient, address: Address, body: bytes, request: str, within_s: float, style: Style
) -> int:
    """Send a body to a receiver; return the status of an accepted call. A good status may come with an error.

    Args:
        http: The client that makes the call.
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
            status, retry_after_header = response.status_code, response.headers.get("Retry-After", "")
            if 200 <= status < 300:
                await _read(response, answer)
    except TimeoutError:
        if not limit.expired():
            raise
        if not status:
            raise CallFailed(OVERDUE, temporary=True) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        if not status:
            # Without the message of the exception, which may contain the address.
            raise CallFailed(type(error).__name__, temporary=isinstance(error, httpx.HTTPError)) from None
    if 200 <= status < 300:
        # If the body broke off or came too late, the part that came is used: the status said that the alert was
        # accepted.
        refused = refusal(bytes(answer), style, secrets_of(address))
        if refused is None:
            return status
        pause_s = retry_after(retry_after_header, datetime.now(UTC)) if refused.temporary else 0.0
        raise CallFailed(f"HTTP {status}: {refused.reason}", temporary=refused.temporary, retry_after_s=pause_s)
    temporary = status in _TEMPORARY or status >= 500
    pause_s = retry_after(retry_after_header, datetime.now(UTC)) if temporary else 0.0
    raise CallFailed(f"HTTP {status}", temporary=temporary, retry_after_s=pause_s)


def secrets_of(address: Address) -> tuple[str, ...]:
    """Return what must not be kept of a receiver's answer: its address, the secret parts of that, and its token."""
    parts = urlsplit(address.url)
    secret_parts = (*parts.path.split("/"), *parts.query.replace("=", "&").split("&"))
    return (address.url, address.token, *(part for part in secret_parts if len(part) >= _LEAST_SECRET_LENGTH))


async def _read(response: httpx.Response, answer: bytearray) -> None:
    async for part in response.aiter_raw():
        answer += part[: MOST_BYTES - len(answer)]
        if len(answer) == MOST_BYTES:
            return
