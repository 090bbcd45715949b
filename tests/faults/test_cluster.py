"""A cluster of three brokers that loses its leader, then two of three, then all: nothing that was accepted is lost.

The short form appends to the log alone; ``make test-faults`` runs a whole set of processes on the cluster.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.deploying.writing_broker import SETTINGS
from deploy.processes.broker.users import workers_of_actors
from events.errors import LogError
from events.jetstream import Connection, JetStreamLog
from tests.cluster import Deployed, Server, deployed
from tests.events.sealing.records import said
from tests.events.setting import plain
from tests.faults.rig import Load, RunningSet, judge, read_all, running_set, waited

PAUSE_S = 60.0
"""Seconds within which a cluster that is whole again must take appends."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Deployed]:
    with deployed(tmp_path / "cluster", nodes=3, workers=workers_of_actors()) as running:
        yield running


async def leader_of(cluster: Deployed) -> Server:
    """Return the server that leads the log's stream, once one does."""
    end = time.monotonic() + PAUSE_S
    while True:
        try:
            connection = await Connection.open(cluster.access("admin"))
            try:
                found = (await connection.api("STREAM.INFO.NEURAXIS"))["cluster"].get("leader", "")
            finally:
                await connection.close()
        except LogError:
            found = ""
        if found:
            return cluster.servers[int(found.rpartition("-")[2]) - 1]
        assert time.monotonic() < end, "no server ever led the stream"
        await asyncio.sleep(0.1)


class Appending:
    """Appends one event after the other, and remembers which of them were acknowledged."""

    def __init__(self, log: JetStreamLog, *, named: str = "number") -> None:
        self.log = log
        self.acknowledged: list[int] = []
        self._named = named
        self._number = 0

    async def one(self) -> bool:
        """Append an event; return whether it was acknowledged."""
        self._number += 1
        try:
            text = f"{self._named} {self._number}"
            seq = await self.log.append([plain(said(text, session="s", id=text.replace(" ", "-")))])
        except LogError:
            return False
        self.acknowledged.append(seq)
        return True

    async def until_acknowledged(self) -> None:
        """Append until one is acknowledged."""
        end = time.monotonic() + PAUSE_S
        while not await self.one():
            assert time.monotonic() < end, "no append was ever acknowledged again"
            await asyncio.sleep(0.1)


def test_no_acknowledged_append_is_lost_when_a_cluster_loses_its_leader_then_two_of_three(cluster: Deployed) -> None:
    async def run() -> None:
        log = await JetStreamLog.connect(cluster.access("gateway"), create=False)
        appending = Appending(log)
        for _ in range(20):
            assert await appending.one()
        leader = await leader_of(cluster)
        leader.kill()
        await appending.until_acknowledged()

        leader.start()
        cluster.wait_ready()
        for server in cluster.servers[:2]:
            server.pause()
        before = len(appending.acknowledged)
        assert not await appending.one(), "one server of three must store nothing"
        assert len(appending.acknowledged) == before
        for server in cluster.servers[:2]:
            server.resume()
        await appending.until_acknowledged()

        assert not set(appending.acknowledged) - {stored.seq for stored in await read_all(log)}
        await log.close()

    asyncio.run(run())


@pytest.mark.faults
def test_a_set_on_a_cluster_loses_nothing_with_its_leader_a_majority_or_all_servers(
    cluster: Deployed, tmp_path: Path
) -> None:
    flags = ("--context", str(cluster.logins), "--config", str(cluster.folder / SETTINGS))

    async def hurt(running: RunningSet) -> list[str]:
        load, stop = Load(rate=8), asyncio.Event()
        async with running.log() as log:
            loading = asyncio.create_task(load.run(log, stop))
            await asyncio.sleep(2)
            leader = await leader_of(cluster)
            leader.kill()
            await _more(load)
            leader.start()
            await asyncio.to_thread(cluster.wait_ready)

            for server in cluster.servers[1:]:
                server.pause()
            await asyncio.sleep(8)
            for server in cluster.servers[1:]:
                server.resume()
            await _more(load)

            for server in cluster.servers:
                server.kill()
            await asyncio.sleep(1)
            for server in cluster.servers:
                server.start()
            await asyncio.to_thread(cluster.wait_ready)
            await _more(load)
            stop.set()
            await loading
        return load.accepted

    with running_set(tmp_path / "set", flags=flags) as running:
        accepted = asyncio.run(hurt(running))
        waited(running.ready, "the set to be whole again")
        messages = asyncio.run(judge(running, accepted))
        print(f"{len(accepted)} accepted, {len(messages)} messages in the log")


async def _more(load: Load) -> None:
    """Wait until ten more inputs are accepted than by now."""
    wanted, end = len(load.accepted) + 10, time.monotonic() + PAUSE_S
    while len(load.accepted) < wanted:
        assert time.monotonic() < end, "no input was ever accepted again"
        await asyncio.sleep(0.1)
