"""The doctor's check of the receivers of alerts: a ``HEAD`` request to the root of each address, never an alert."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from actors.webhook.http_call import connections
from actors.webhook.receivers import Address, BadReceiver, addresses
from actors.webhook.settings import Receiver
from deploy.health.findings import Finding, Verdict
from events.libraries.http_client import BadEnvironment, httpx

TIMEOUT_S = 5.0
"""Seconds within which a receiver must answer, the look-up of its name included."""


async def examine_receivers(
    receivers: Mapping[str, Receiver], environment: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> list[Finding]:
    """Check all receivers at once: whether each can be reached at the address that this process knows."""
    if not receivers:
        return [Finding("receivers", Verdict.SKIP, "nobody outside is to receive alerts")]
    try:
        client = connections(timeout_s)
    except BadEnvironment as wrong:
        remedy = "correct it where the workers run, and start them again"
        return [Finding("receivers", Verdict.FAIL, str(wrong), remedy)]
    async with client as http, asyncio.TaskGroup() as tasks:
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
    answer, leads_to_https = await _root_answer(http, address, timeout_s)
    return judge_receiver(name, receiver, answer, leads_to_https=leads_to_https)


async def _root_answer(http: httpx.AsyncClient, address: Address, timeout_s: float) -> tuple[int | str, bool]:
    """Return the HTTP status of the root of a receiver's address, or the reason why there is no answer.

    Also return whether it leads the same host's callers from http to https.
    """
    parts = urlsplit(address.url)
    # Path, query and login are left out: these parts of a webhook's address are secret.
    root = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"
    try:
        async with asyncio.timeout(timeout_s), http.stream("HEAD", root) as response:
            return response.status_code, response.has_redirect_location and _leads_to_https(root, response)
    except TimeoutError:
        return "no answer in time", False
    except (httpx.HTTPError, httpx.InvalidURL) as wrong:
        # The error's text is left out: it may hold the secret address.
        return type(wrong).__name__, False


def _leads_to_https(root: str, response: httpx.Response) -> bool:
    """Return whether a redirect leads from http to https of the same host."""
    here = urlsplit(root)
    try:
        there = urlsplit(response.headers["location"])
        return (here.scheme, there.scheme, there.hostname) == ("http", "https", here.hostname)
    except ValueError:  # no address
        return False


_LOGIN_OF_PROXY = 407
_RECEIVER_AWAY = (502, 503, 504)
"""Statuses of a proxy, or of another server that stands before the receiver, when the receiver does not answer it."""


def judge_receiver(name: str, receiver: Receiver, answer: int | str, *, leads_to_https: bool = False) -> Finding:
    """Judge a receiver by the status that its root answered with, or by the reason (a text) for none.

    A receiver need not serve its root, so nearly any status will do. A few come from a proxy before it. A host that
    redirects from http to https does so for alerts, too, and no redirect of an alert is followed.
    """
    check, origin = f"receiver {name}", receiver.url_env or receiver.url_file
    if leads_to_https:
        seen = f"leads to https (HTTP {answer}), and redirects are not followed: alerts become dead letters"
        return Finding(check, Verdict.FAIL, seen, f"write https:// into the address in {origin}")
    if answer == _LOGIN_OF_PROXY:
        remedy = "put the proxy's login into HTTPS_PROXY, or name the receiver's host in NO_PROXY"
        return Finding(check, Verdict.FAIL, f"cannot be reached: the proxy wants a login (HTTP {answer})", remedy)
    if answer in _RECEIVER_AWAY:
        seen = f"what stands before it answers that it is away (HTTP {answer})"
        return Finding(check, Verdict.WARN, seen, "look whether it runs; alerts wait for it meanwhile")
    if isinstance(answer, int):
        return Finding(check, Verdict.OK, f"answers ({receiver.style}); whether it takes alerts, only an alert tells")
    remedy = f"start it, or correct what is in {origin}; alerts wait for it meanwhile"
    return Finding(check, Verdict.FAIL, f"cannot be reached: {answer}", remedy)
