"""A process reads the past of a few of its partitions at a time: else all of them starve on a busy broker."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from actors.runtime.context import READS_AT_ONCE
from events.jetstream import JetStreamLog
from events.log import Stored
from tests.actors.runtime.living import PARTITIONS, OnlyMe, at_rest, converse, living
from tests.broker import Broker

OTHERS = 2
"""Who else reads meanwhile: the worker's look at losses, and the client of the test."""


def test_a_worker_that_starts_reads_the_past_of_a_few_partitions_at_a_time(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, most = 0, 0
    history = JetStreamLog.history

    async def counted(
        self: JetStreamLog, filters: Sequence[str], after: int, upto: int
    ) -> AsyncIterator[Sequence[Stored]]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        try:
            async for batch in history(self, filters, after, upto):
                yield batch
        finally:
            reading -= 1

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        async with living(broker, "before", membership=OnlyMe()) as worker:
            await converse(log, 2, 1)
            await at_rest(log)
            await worker.killed()  # without a snapshot
        monkeypatch.setattr(JetStreamLog, "history", counted)
        async with living(broker, "after", membership=OnlyMe()) as worker:
            await converse(log, 1, 1, first=1)
            assert len(worker.worker.shards) > 2 * READS_AT_ONCE
            await worker.stopped()
        await log.close()

    asyncio.run(main())
    assert READS_AT_ONCE <= most <= READS_AT_ONCE + OTHERS
