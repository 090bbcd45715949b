"""A closed reading of a server that is slow to begin waits longer each time, instead of beginning again for ever."""

import asyncio

import pytest

from events.errors import Unavailable
from events.jetstream import JetStreamLog
from events.jetstream.reading import stream_reader
from events.jetstream.reading.stream_reader import StreamReader
from tests.broker import Broker
from tests.events.setting import plain, record

SLOW_S = 0.1
"""A tenth of what a server takes to say that it has searched all, if nothing matches."""


@pytest.mark.parametrize("most", [20.0, SLOW_S], ids=["patient", "as impatient as at first"])
def test_a_closed_reading_comes_to_its_end_however_slow_the_server_is_to_begin(
    most: float, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "SILENCE", SLOW_S)
    monkeypatch.setattr(stream_reader, "HEARTBEAT", SLOW_S / 2)
    monkeypatch.setattr(stream_reader, "CLOSED_SILENCE", most)

    async def main() -> bool:
        log = await JetStreamLog.connect(broker.url)
        last = await log.append([plain(record("log.00.00.reflex.passed", b"{}"))])
        reader = StreamReader(log.connection, log.stream, ["log.*.*.router.>"], 0, "patient")
        try:
            assert await reader.start() == 0
            return await reader.next_until(last, 6.0) == ()
        except Unavailable:
            return False
        finally:
            await reader.close()
            await log.close()

    assert asyncio.run(main()) is (most > SLOW_S)
