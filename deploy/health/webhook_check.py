"""The doctor's check of the receivers of alerts: a ``HEAD`` request to the root of each address, never an alert."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from actors.webhook.http_call import connections
from actors.webhook.receivers import Address, BadReceiver, addresses
from actors.webhook.settings import Receiver
from deploy.health.findings import Finding, Verdict
from events.libraries.http_client import httpx

TIMEOUT_S = 5.0
"""Seconds within which a receiver must answer, the look-up of its name included."""


async def examine_receivers(
    receivers: Mapping[str, Receiver], environment: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> list[Finding]:
    """Check all receivers at once: whether each can be reached at the address that this process knows."""
    if not receivers:
        return [Finding("receivers", Verdict.SKIP, "nobody outside is to receive alerts")]
    async with connections(timeout_s) as http, asyncio.TaskGroup() as tasks:
        checks = [
            tasks.create_task(_examine(http, name, receiver, environment, timeout_s))
            for name, receiver in receivers.items()
        ]
    return [check.result() for check in checks]


async def _examine(
    http: httpx.AsyncClient, name: str, receiver: Receiver, environment: Mapping[str, str], timeout_s: float
) -> Finding:
    try:
        [address] = addresses({name: receiver}, environment).values()
    except BadReceiver as wrong:
        # The workers may have an environment variable that this process lacks.
        return Finding(f"receiver {name}", Verdict.WARN, str(wrong), "correct it, or look where the workers run")
    return judge_receiver(name, receiver, await _root_answer(http, address, timeout_s))


async def _root_answer(http: httpx.AsyncClient, address: Address, timeout_s: float) -> int | str:
    """Return the HTTP status of the root of a receiver's address, or the reason why there is no answer."""
    parts = urlsplit(address.url)
    # Path, query and login are left out: these parts of a webhook's address are secret.
    root = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"
    try:
        async with asyncio.timeout(timeout_s), http.stream("HEAD", root) as response:
            return response.status_code
    except TimeoutError:
        return "no answer in time"
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        # The error's text is left out: it may hold the secret address.
        return type(wrong).__name__


_LOGIN_OF_PROXY = 407
_NOT_BEHIND_IT = (502, 503, 504)
"""Statuses of a proxy, or of a server that stands before the receiver, when that does not answer it."""


def judge_receiver(name: str, receiver: Receiver, answer: int | str) -> Finding:
    """Judge a receiver by the status that its root answered with, or by the reason (a text) for none.

    A receiver need not serve its root, so nearly any status will do. A few come from what stands before it.
    """
    check = f"receiver {name}"
    if answer == _LOGIN_OF_PROXY:
        remedy = "put the proxy's login into HTTPS_PROXY, or name the receiver's host in NO_PROXY"
        return Finding(check, Verdict.FAIL, f"cannot be reached: the proxy wants a login (HTTP {answer})", remedy)
    if answer in _NOT_BEHIND_IT:
        seen = f"what stands before it answers that it is away (HTTP {answer})"
        return Finding(check, Verdict.WARN, seen, "look whether it runs; alerts wait for it meanwhile")
    if isinstance(answer, int):
        return Finding(check, Verdict.OK, f"answers ({receiver.style}); whether it takes alerts, only an alert tells")
    origin = receiver.url_env or receiver.url_file
    remedy = f"start it, or correct what is in {origin}; alerts wait for it meanwhile"
    return Finding(check, Verdict.FAIL, f"cannot be reached: {answer}", remedy)
