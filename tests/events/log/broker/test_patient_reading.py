"""What counts as silence of a server: more for a closed reading each time, and hardly a stall of this process."""

import asyncio
import time

import pytest

from events.jetstream import JetStreamLog
from events.jetstream.reading import stream_reader
from events.jetstream.reading.closed_reader import ClosedReader
from events.jetstream.reading.stream_reader import StreamReader
from tests.broker import Broker
from tests.events.setting import plain, record

SLOW_S = 0.1
"""A tenth of what a server takes to say that it has searched all, if nothing matches."""


def test_a_closed_reading_comes_to_its_end_however_slow_the_server_is_to_begin(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "SILENCE", SLOW_S)
    monkeypatch.setattr(stream_reader, "HEARTBEAT", SLOW_S / 2)

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        last = await log.append([plain(record("log.00.00.reflex.passed", b"{}"))])
        reader = ClosedReader(log.connection, log.stream, ["log.*.*.router.>"], 0, "patient")
        try:
            assert await reader.start() == 0
            assert await reader.next_until(last, 20.0) == ()
        finally:
            await reader.close()
            await log.close()

    asyncio.run(main())


def test_a_stall_of_the_process_is_no_silence_of_the_server(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "SILENCE", 10 * SLOW_S)
    made: list[str] = []
    create = StreamReader._create

    async def counted(reader: StreamReader) -> int:
        made.append(reader._name)
        return await create(reader)

    monkeypatch.setattr(StreamReader, "_create", counted)

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        reader = StreamReader(log.connection, log.stream, ["log.*.*.reflex.>"], 0, "stalled")
        await reader.start()
        monkeypatch.setattr(stream_reader, "HEARTBEAT", SLOW_S)
        await asyncio.sleep(0)
        for _ in range(2):
            time.sleep(stream_reader.SILENCE + SLOW_S)  # noqa: ASYNC251 - nothing of this process runs meanwhile
            await log.append([plain(record("log.00.00.reflex.passed", b"{}"))])
            await reader.next()
        await reader.close()
        await log.close()

    asyncio.run(main())
    assert made == ["stalled"]
