"""All that the readings of a busy process ask for may wait at the server, which disconnects a client beyond 64 MB."""

import asyncio
import time

from actors.runtime.context import READS_AT_ONCE
from events.jetstream import JetStreamLog
from events.jetstream.reading.pull_protocol import MOST_BYTES, MOST_WAITING
from events.jetstream.reading.stream_reader import StreamReader
from tests.broker import Broker
from tests.events.setting import plain, record

AT_ONCE = READS_AT_ONCE + 2
"""Readings of a worker's process: those of partitions, the one of all that comes, and the one around gaps."""
STANDS_STILL_S = 2.0


def test_what_all_readings_of_a_process_ask_for_fits_what_a_server_keeps_for_it() -> None:
    assert AT_ONCE * 2 * MOST_BYTES < MOST_WAITING


def test_a_process_that_stands_still_while_it_reads_large_messages_is_not_disconnected(broker: Broker) -> None:
    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        last = 0
        for _ in range(48):
            last = await log.append([plain(record("log.00.00.reflex.passed", b"x" * 900_000))])
        lost = []
        log.connection.on_reconnect(lambda: lost.append("disconnected"))
        readers = [StreamReader(log.connection, log.stream, ["log.>"], 0, f"r{n}") for n in range(AT_ONCE)]
        try:
            for reader in readers:
                await reader.start()
            time.sleep(STANDS_STILL_S)  # noqa: ASYNC251 - the loop stands still, and the server sends what it was asked for
            async with asyncio.timeout(120):
                for reader in readers:
                    reached = 0
                    while reached < last:
                        reached = (await reader.next())[-1].seq
            assert lost == []
        finally:
            for reader in readers:
                await reader.close()
            await log.close()

    asyncio.run(main())
