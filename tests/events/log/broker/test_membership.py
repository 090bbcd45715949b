"""Who counts as a living member, by the heartbeats that a real broker keeps."""

import asyncio

import pytest

from events.jetstream import JetStreamLog, KeyValueMembership, key_value
from schemas.permissions import MEMBERS_BUCKET
from tests.actors.on_broker import on_broker
from tests.broker import Broker

HOUR_S = 3_600.0


def test_a_member_that_is_silent_is_dead_although_the_broker_keeps_its_heartbeat(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the broker's clock was set back: a dead worker kept its partitions, and nobody was told."""
    monkeypatch.setattr(key_value, "SILENT_S", 0.5)

    async def scenario(log: JetStreamLog) -> None:
        await key_value.ensure_bucket(log.connection, MEMBERS_BUCKET, storage="memory", max_age=HOUR_S, replicas=1)
        observer, workers = KeyValueMembership(log.connection), KeyValueMembership(log.connection)
        await workers.beat("dead", b"1")
        async with asyncio.timeout(10):
            await workers.beat("alive", b"0")
            assert set(await observer.members()) == {"dead", "alive"}
            for _ in range(15):
                await workers.beat("alive", b"0")
                assert "alive" in await observer.members()
                await asyncio.sleep(0.05)
        assert set(await observer.members()) == {"alive"}
        await workers.beat("dead", b"1")
        assert set(await observer.members()) == {"alive", "dead"}, "it has come back"

    on_broker(broker, scenario)
