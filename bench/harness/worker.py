"""Hosts actors on the real runtime, as a measured process.

Run as ``python -m bench.harness.worker URL SYNC``, where SYNC is the broker's ``sync_interval``, it hosts every actor
there is, with the settings they ship with. It prints ``ready`` and works until its standard input ends.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from actors.registry import ACTORS
from actors.runtime.committer import BATCH_FROM, BATCH_FROM_UNFLUSHED
from actors.runtime.worker import Worker
from bench.harness.child import answer_until_input_ends
from events.jetstream import JetStreamLog, KeyValueMembership, KeyValueSnapshots
from events.loggers import structlog
from schemas.actor import Actor


async def work(url: str, sync: str, actors: Sequence[Actor[Any]]) -> None:
    """Host the actors until standard input ends."""
    # Standard output belongs to the protocol with the measuring process, so logs go to standard error.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    log = await JetStreamLog.connect(url)
    worker = Worker(
        log,
        await KeyValueSnapshots.over(log.connection),
        await KeyValueMembership.over(log.connection),
        actors,
        name="bench",
        build="bench",
        batch_from=BATCH_FROM if sync == "always" else BATCH_FROM_UNFLUSHED,
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.run(stop))
        await worker.ready.wait()
        await answer_until_input_ends()
        stop.set()
        await running
    await log.close()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], tuple(ACTORS.values())))
