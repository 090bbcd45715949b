"""Alerts to be delivered, receivers to deliver them to, and deliveries without a broker."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpx
import msgspec

from actors.runtime.clock import SystemClock
from actors.webhook.delivering import Delivering
from actors.webhook.receivers import Address
from actors.webhook.settings import Receiver, WebhookSettings
from schemas.actor import Message
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from schemas.vocabulary.alerts import Alert
from tests.actors.llm.scripted import Endpoint, Reply

TAKES = Reply((b"ok",))
SECRET = "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
"""What makes the address of a webhook a secret."""

QUICK = WebhookSettings(backoff_first_ms=1, backoff_most_ms=2, attempts=2)


def alert(name: str = "critical.breaker", **changes: Any) -> Alert:
    """Return an alert of a severity and source."""
    sample = CATALOGUE[f"forged_id.alert.{name}"].sample
    assert isinstance(sample, Alert)
    return msgspec.structs.replace(sample, **changes)


def message(event: Event, *, seq: int = 9, age_ms: int = 0) -> Message:
    """Return an event as it is read from the log, stored ``age_ms`` ago."""
    return Message(event, seq, f"id-{seq}", SystemClock().now_ns() - age_ms * 1_000_000)


def receivers(*names: str, **changes: Any) -> WebhookSettings:
    """Return settings with a Slack-style receiver of each name, whose address is in the variable ``URL_<name>``."""
    made = {name: Receiver(style="slack", url_env=f"URL_{name}", **changes) for name in names}
    return msgspec.structs.replace(QUICK, receivers=made)


def url_of(endpoint: Endpoint) -> str:
    """Return a webhook's address at an endpoint, secret and all."""
    return f"{endpoint.base_url}/services/{SECRET}"


@contextlib.asynccontextmanager
async def delivering(
    settings: WebhookSettings,
    urls: Mapping[str, str],
    *,
    sleep: Callable[[float], Awaitable[None]] | None = None,
) -> AsyncIterator[Delivering]:
    """Open deliveries to receivers at addresses."""
    timeout = httpx.Timeout(settings.answer_ms / 1000, connect=settings.connect_ms / 1000)
    async with httpx.AsyncClient(timeout=timeout) as http:
        found = {name: Address(url) for name, url in urls.items()}
        more = {"sleep": sleep} if sleep is not None else {}
        yield Delivering(http, settings, found, clock=SystemClock(), **more)
