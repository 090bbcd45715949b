"""Alerts to be delivered, receivers to deliver them to, and deliveries without a broker."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from actors.runtime.clock import SystemClock
from actors.webhook.alert_delivery import AlertDelivery
from actors.webhook.http_call import connections
from actors.webhook.receivers import Address
from actors.webhook.settings import Receiver, WebhookSettings
from schemas.actor import Message
from schemas.catalogue import CATALOGUE
from schemas.effectors.contract import QueueTurn, TryLater
from schemas.event import Event
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.webhook import WebhookQueued
from tests.actors.llm.scripted import Endpoint, Reply, close

TAKES = Reply((b"ok",))
SECRET = "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
"""What makes the address of a webhook a secret."""

QUICK = WebhookSettings(backoff_first_ms=1, backoff_most_ms=2, unknown_ms=300)


def alert(name: str = "critical.breaker", **changes: Any) -> Alert:
    """Return an alert of a severity and source."""
    sample = CATALOGUE[f"forged_id.alert.{name}"].sample
    assert isinstance(sample, Alert)
    return msgspec.structs.replace(sample, **changes)


async def at_once(_: float) -> None:
    """Sleep in place of a pause that nobody waits for."""


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


class Shell:
    """Has deliveries performed, again and again where they are to be tried later, as an effector's shell does.

    Attributes:
        pauses: The seconds between calls, so far.
    """

    def __init__(self, over: AlertDelivery, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.over = over
        self.pauses: list[float] = []
        self._sleep = sleep

    async def perform(self, message: Message, *, behind: int = 0) -> Sequence[Event]:
        """Have a request answered."""
        if not isinstance(message.event, WebhookQueued):
            return await self.over.queue_alert(message)
        for attempt in count(1):
            try:
                return await self.over.deliver(message, QueueTurn(attempt, behind))
            except TryLater as later:
                self.pauses.append(later.after_s)
                await self._sleep(later.after_s)
        raise AssertionError("unreachable")


@contextlib.asynccontextmanager
async def delivering(
    settings: WebhookSettings,
    urls: Mapping[str, str],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Shell]:
    """Open deliveries to receivers at addresses."""
    async with connections(settings.connect_ms / 1000) as http:
        found = {name: Address(url) for name, url in urls.items()}
        yield Shell(AlertDelivery(http, settings, found, clock=SystemClock()), sleep)


def queued(name: str = "ops", *, seq: int = 9, age_ms: int = 0, waited_ms: int = 0, **changes: Any) -> Message:
    """Return the delivery of the alert ``id-<seq>`` to a receiver, as it is read from the log."""
    told = message(alert(**changes), seq=seq, age_ms=age_ms)
    body = msgspec.to_builtins(told.event)
    return message(
        WebhookQueued(body=body, request=told.id, stored_ns=told.time_ns, receiver=name),
        seq=100 + seq,
        age_ms=waited_ms,
    )


@contextlib.asynccontextmanager
async def dripping() -> AsyncIterator[str]:
    """Run a receiver that never comes to an end of its answer, a line every few milliseconds; yield its address."""
    served: set[asyncio.Task[None]] = set()

    async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not reader.at_eof():
            writer.write(b"X-More: to come\r\n")
            await writer.drain()
            await asyncio.sleep(0.005)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await drips(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    def let_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(let_in, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        await close(server)
        if served:
            await asyncio.wait(served, timeout=30)
