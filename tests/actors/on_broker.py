"""A test's body, or a test that is a coroutine, over the log of a real broker."""

import asyncio
from collections.abc import Awaitable, Callable

from events.jetstream import JetStreamLog
from tests.asynchronous import run_by
from tests.broker import Broker


def on_broker(broker: Broker, body: Callable[[JetStreamLog], Awaitable[None]], *, sealed: bool = False) -> None:
    """Run a body with a log of its own; ``sealed`` is as for ``JetStreamLog.connect``."""

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, sealed=sealed)
        try:
            await body(log)
        finally:
            await log.close()

    asyncio.run(main())


log_test = run_by(on_broker, "log", "broker")
"""Runs a coroutine as a test: ``log`` is a log on the fixture ``broker``."""
