"""The doctor's check of the receivers of alerts: a harmless request to the root of each, never an alert."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from actors.webhook.http_call import connections
from actors.webhook.receivers import Address, BadReceiver, addresses
from actors.webhook.settings import Receiver
from deploy.health.findings import Finding, Verdict
from events.http_client import httpx

PATIENCE_S = 5.0
"""Seconds in which a receiver must answer, the look-up of its name included."""


async def examine_receivers(
    receivers: Mapping[str, Receiver], environment: Mapping[str, str], patience_s: float = PATIENCE_S
) -> list[Finding]:
    """Check, all at once, whether each receiver can be reached under the address that this process has."""
    if not receivers:
        return [Finding("receivers", Verdict.SKIP, "nobody outside is to receive alerts")]
    async with connections(patience_s) as http, asyncio.TaskGroup() as tasks:
        looks = [
            tasks.create_task(_examine(http, name, receiver, environment, patience_s))
            for name, receiver in receivers.items()
        ]
    return [look.result() for look in looks]


async def _examine(
    http: httpx.AsyncClient, name: str, receiver: Receiver, environment: Mapping[str, str], patience_s: float
) -> Finding:
    try:
        [address] = addresses({name: receiver}, environment).values()
    except BadReceiver as wrong:
        # The workers may have an environment variable that this process lacks.
        return Finding(f"receiver {name}", Verdict.WARN, str(wrong), "correct it, or look where the workers run")
    return judge_receiver(name, receiver, await _asked(http, address, patience_s))


async def _asked(http: httpx.AsyncClient, address: Address, patience_s: float) -> int | str:
    """Return the status that the root of a receiver's address answers with, or a code for why there is none."""
    parts = urlsplit(address.url)
    # Without path, query and login: these parts of a webhook's address are secret.
    root = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"
    try:
        async with asyncio.timeout(patience_s), http.stream("HEAD", root) as response:
            return response.status_code
    except TimeoutError:
        return "no answer in time"
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        # Without the error's text, which may hold the secret address.
        return type(wrong).__name__


def judge_receiver(name: str, receiver: Receiver, answered: int | str) -> Finding:
    """Judge a receiver by the status that its root answered with (any will do), or by the reason for none."""
    check = f"receiver {name}"
    if isinstance(answered, int):
        return Finding(check, Verdict.OK, f"answers ({receiver.style}); whether it takes alerts, only an alert tells")
    origin = receiver.url_env or receiver.url_file
    remedy = f"start it, or correct what is in {origin}; alerts wait for it meanwhile"
    return Finding(check, Verdict.FAIL, f"cannot be reached: {answered}", remedy)
