"""``deploy streams`` makes what workers may not, and what it makes outlives the servers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from deploy.config.loading import RUNNING_SECTIONS, load
from deploy.deploying.stream_copies import prepare_with_copies
from events.errors import LogError, Misconfigured
from events.jetstream import Connection, JetStreamLog, KeyValueMembership
from schemas.permissions import MEMBERS_BUCKET, SNAPSHOTS_BUCKET
from tests.cluster import Deployed, deployed


async def beaten(running: Deployed, login: str) -> list[str]:
    """Return who is alive once a worker of a login has said that it is."""
    connection = await Connection.open(running.access(login))
    try:
        membership = await KeyValueMembership.over(connection)
        await membership.beat(login, b"here")
        return list(await membership.members())
    finally:
        await connection.close()


def test_workers_find_each_other_again_after_the_only_server_was_restarted(tmp_path: Path) -> None:
    async def once_served() -> list[str]:
        async with asyncio.timeout(20):
            while True:
                try:
                    return await beaten(running, "w")
                except LogError:
                    await asyncio.sleep(0.1)

    with deployed(tmp_path, nodes=1, workers={"w": ("reflex",)}) as running:
        assert asyncio.run(beaten(running, "w")) == ["w"]
        running.servers[0].kill()
        running.servers[0].start()
        running.wait_ready()
        assert asyncio.run(once_served()) == ["w"]


def test_a_bucket_in_memory_that_was_there_before_is_made_anew(tmp_path: Path) -> None:
    async def replace() -> str:
        connection = await Connection.open(running.access("admin"))
        try:
            await connection.api("STREAM.DELETE.KV_NEURAXIS_members")
            await KeyValueMembership.over(connection)
            await asyncio.to_thread(running.make_streams)
            config = (await connection.api("STREAM.INFO.KV_NEURAXIS_members"))["config"]
        finally:
            await connection.close()
        return str(config["storage"])

    with deployed(tmp_path, nodes=1, workers={"w": ("reflex",)}) as running:
        assert asyncio.run(replace()) == "file"


def test_buckets_of_an_earlier_checkout_refuse_roll_ups_once_streams_are_made_and_no_worker_waits_for_it(
    tmp_path: Path,
) -> None:
    """By a roll-up, who may write one value removes all of them; a worker gets no answer where it may not change it."""
    names = [f"STREAM.INFO.KV_{bucket}" for bucket in (MEMBERS_BUCKET, SNAPSHOTS_BUCKET)]

    async def made_anew() -> tuple[list[Any], list[Any]]:
        async with await Connection.open(running.access("admin")) as admin:
            for name in names:
                config = (await admin.api(name))["config"] | {"allow_rollup_hdrs": True}
                await admin.api(name.replace("INFO", "UPDATE"), config)
            with capture_logs() as lines:
                await beaten(running, "w")
            await asyncio.to_thread(running.make_streams)
            return [(await admin.api(name))["config"]["allow_rollup_hdrs"] for name in names], lines

    with deployed(tmp_path, nodes=1, workers={"w": ("reflex",)}) as running:
        assert asyncio.run(made_anew()) == ([False, False], [])


def test_a_worker_that_comes_before_its_stream_says_who_makes_it(tmp_path: Path) -> None:
    async def come_first() -> None:
        connection = await Connection.open(running.access("admin"))
        await connection.api("STREAM.DELETE.NEURAXIS")
        await connection.close()
        with pytest.raises(Misconfigured, match="no stream NEURAXIS, and this login may not make it: run `neuraxis"):
            await JetStreamLog.connect(running.access("w"))

    with deployed(tmp_path, nodes=1, workers={"w": ("reflex",)}) as running:
        asyncio.run(come_first())


def test_no_copy_is_given_up_because_of_a_default(tmp_path: Path) -> None:
    def told(environment: dict[str, str]) -> list[str]:
        config = load(RUNNING_SECTIONS, environment=environment)
        return [*asyncio.run(prepare_with_copies(running.access("admin"), config))]

    with deployed(tmp_path, nodes=3, workers={"w": ("reflex",)}) as running:
        kept = told({})  # as without the deployment's file
        assert len(kept) == 3
        assert all(line.endswith("3 copies, which it keeps: nothing sets log.replicas") for line in kept), kept
        assert all(line.endswith("1 copy, before 3") for line in told({"NEURAXIS_LOG__REPLICAS": "1"}))
