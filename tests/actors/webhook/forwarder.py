"""A process that forwards alerts until it is killed: ``python -m tests.actors.webhook.forwarder URL NAME=URL...``."""

import asyncio
import os
import sys
from collections.abc import Sequence

from actors.runtime.clock import SystemClock
from actors.runtime.effectors.effector_worker import EffectorWorker
from actors.runtime.effectors.spec import EffectorContext
from actors.webhook import EFFECTOR
from events.jetstream import JetStreamLog
from tests.actors.webhook.alerts import receivers

ACK_WAIT = 1.0
"""Seconds after which what a killed one had goes to the next."""


async def main(broker: str, named: Sequence[str]) -> None:
    """Forward alerts to receivers, each a name and an address."""
    urls = dict(each.split("=", 1) for each in named)
    log = await JetStreamLog.connect(broker, sealed=False)
    around = EffectorContext(
        log.connection, log.connection.publish, {f"URL_{name}": url for name, url in urls.items()}, SystemClock()
    )
    async with EFFECTOR.open(receivers(*urls), around) as effector:
        await EffectorWorker(log, effector, name=f"child-{os.getpid()}", ack_wait=ACK_WAIT).run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
