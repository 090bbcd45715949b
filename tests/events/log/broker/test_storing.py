"""Whether a broker stores what it is given, as any user who reads the stream can see; against real servers."""

import asyncio
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from deploy.deploying.broker_plan import Node
from deploy.processes.broker.users import workers_of_actors
from events.errors import LogError, Refused, Unavailable
from events.jetstream import Access, Connection, JetStreamLog
from events.jetstream.storage_check import storage_fault
from events.jetstream.stream import stream_config
from events.log import Append, Record
from schemas.permissions import STREAM
from schemas.subjects import Partitions
from tests.actors.on_broker import on_broker
from tests.broker import Broker
from tests.cluster import Server, deployed
from tests.events.sealing.records import said
from tests.events.setting import plain
from tests.full_disk import small_disk

KEYS = "KV_NEURAXIS_keys"


async def store(log: JetStreamLog, *numbers: int) -> None:
    for number in numbers or (0,):
        record = Record("log.00.00.input.received", {"Nats-Msg-Id": f"m{number}"}, b"{}" + b" " * 600)
        await log.append([Append([record])])


async def until(log: JetStreamLog, holds: Callable[[Any], bool]) -> None:
    """Wait until something holds of the stream's state."""
    async with asyncio.timeout(10):
        while True:
            if holds((await log.connection.api(f"STREAM.INFO.{log.stream}"))["state"]):
                return
            await asyncio.sleep(0.01)


async def fault(log: JetStreamLog) -> str:
    return await storage_fault(log.connection, log.stream)


def test_a_broker_that_stores_is_found_well_and_left_as_it_was(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await store(log)
        for _ in range(3):
            assert await fault(log) == ""
        await until(log, lambda state: not state["consumer_count"])
        assert (await log.info()).last_seq == 1

    on_broker(broker, scenario)


def test_a_full_disk_is_seen_before_and_after_the_first_append_that_fails(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=24) as disk, Broker(disk.folder / "broker") as broker:

        async def scenario(log: JetStreamLog) -> None:
            await store(log)
            disk.fill()
            assert "its disk is full" in await fault(log)
            with pytest.raises(LogError, match=r"gave no answer within 5 s|cannot store now"):
                await store(log, *range(1, 100))
            assert "its disk is full" in await fault(log)
            disk.clear()
            assert await fault(log) == ""

        on_broker(broker, scenario)


def test_a_disk_without_inodes_is_seen_although_it_has_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=24) as disk, Broker(disk.folder / "broker") as broker:

        async def scenario(log: JetStreamLog) -> None:
            await store(log)
            disk.use_up_inodes()
            assert "out of inodes" in await fault(log)
            disk.give_inodes()
            assert await fault(log) == ""

        on_broker(broker, scenario)


@pytest.mark.parametrize(
    ("limits", "told"),
    [({"max_msgs": 1}, "at its limit of 1 messages"), ({"max_bytes": 300}, "at its limit of 300 bytes")],
)
def test_a_stream_at_its_limit_is_told_with_the_limit(limits: dict[str, int], told: str, broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await store(log)
        config = stream_config(STREAM, Partitions(), 1) | limits
        await log.connection.api(f"STREAM.UPDATE.{STREAM}", config)
        assert told in await fault(log)
        with pytest.raises(LogError):
            await store(log, 1)

    on_broker(broker, scenario)


ACCOUNT = """
accounts {{ people {{ users: [{{user: ann, password: ann}}], jetstream {{ max_file: {most} }} }} }}
no_auth_user: ann
"""


async def stored_until_refused(log: JetStreamLog) -> LogError:
    """Append until the broker refuses; return the refusal."""
    for number in range(1_000):
        try:
            await store(log, number)
        except LogError as refused:
            return refused
    raise AssertionError("the limit was never reached")


def test_an_account_at_its_limit_is_told_and_what_it_refuses_can_be_stored_once_it_is_raised(tmp_path: Path) -> None:
    """No limit in bytes is reached to the byte: the message that does not fit is refused."""
    with Broker(tmp_path, more=ACCOUNT.format(most=100_000)) as broker:

        async def scenario(log: JetStreamLog) -> None:
            refused = await stored_until_refused(log)
            assert isinstance(refused, Unavailable), f"it would never be tried again: {refused!r}"
            assert "the account at the broker is at its limit of 100,000 bytes (max_storage)" in await fault(log)

        on_broker(broker, scenario)


def test_a_stream_that_takes_no_more_bytes_is_told_although_it_is_not_at_its_limit_to_the_byte(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await store(log)
        config = stream_config(STREAM, Partitions(), 1) | {"max_bytes": 100_000}
        await log.connection.api(f"STREAM.UPDATE.{STREAM}", config)
        assert await fault(log) == ""
        assert isinstance(await stored_until_refused(log), Unavailable)
        held = (await log.connection.api(f"STREAM.INFO.{STREAM}"))["state"]["bytes"]
        assert held < 100_000
        assert "at its limit of 100,000 bytes" in await fault(log)

    on_broker(broker, scenario)


def test_a_server_at_its_own_limit_is_told_where_that_is_known(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await store(log)
        assert await storage_fault(log.connection, log.stream, server_most=100_000) == ""
        told = await storage_fault(log.connection, log.stream, server_most=700)
        assert "the broker's store is at its limit of 700 bytes (broker.max_store_bytes)" in told

    on_broker(broker, scenario)


def test_a_question_that_the_broker_does_not_take_is_no_event_that_it_refuses(broker: Broker) -> None:
    """At a limit on consumers, say: a request over HTTP was called too large, and an answer was given up."""

    async def scenario(log: JetStreamLog) -> None:
        with pytest.raises(LogError, match="code 10056") as raised:
            await log.connection.api("STREAM.CREATE.ONE", {"name": "ANOTHER"})
        assert not isinstance(raised.value, Refused)

    on_broker(broker, scenario)


def test_a_broker_without_file_descriptors_is_not_told_to_have_a_full_disk(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await store(log)
        before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{broker.pid}/fd")), before[1]))
        try:
            assert "or it has no file descriptors left" in await fault(log)
        finally:
            resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, before)
        assert await fault(log) == ""

    on_broker(broker, scenario)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ({"max_msgs": 1}, "stream KV_NEURAXIS_keys is at its limit of 1 messages"),
        ({}, "the bucket of the sessions' keys is gone"),
    ],
)
def test_a_sealed_log_that_takes_no_new_session_is_told(harm: dict[str, int], told: str, broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await log.append([plain(said("hello", id="e1", session="s1"))])
        assert await fault(log) == ""
        config = (await log.connection.api(f"STREAM.INFO.{KEYS}"))["config"]
        if harm:
            await log.connection.api(f"STREAM.UPDATE.{KEYS}", config | harm)
        else:
            await log.connection.api(f"STREAM.DELETE.{KEYS}")
        assert told in await fault(log)
        with pytest.raises(Unavailable, match=r"bucket NEURAXIS_keys did not take a key|so that nothing was sent"):
            await log.append([plain(said("hello", id="e2", session="s2"))])

    on_broker(broker, scenario, sealed=True)


def test_a_stuck_broker_and_one_that_has_gone_are_told_apart_in_time(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        broker.pause()
        try:
            begun = asyncio.get_running_loop().time()
            assert "has not answered within 2 s" in await fault(log)
            assert asyncio.get_running_loop().time() - begun < 3
        finally:
            broker.resume()
        broker.kill()
        async with asyncio.timeout(10):
            while True:
                await asyncio.sleep(0.01)
                if not log.connection.connected:
                    break
        assert "is away" in await fault(log)

    on_broker(broker, scenario)


def test_a_broker_whose_jetstream_is_gone_says_so(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        back = asyncio.Event()
        log.connection.on_reconnect(back.set)
        broker.kill()
        broker.jetstream = False
        broker.start()
        async with asyncio.timeout(20):
            await back.wait()
        assert "JetStream switched off" in await fault(log)

    on_broker(broker, scenario)


async def led_elsewhere(connection: Connection, server: str) -> None:
    """Wait until another server than this one leads the stream, and all streams."""
    async with asyncio.timeout(40):
        while True:
            with suppress(LogError):
                await connection.api("INFO")
                if (await connection.api(f"STREAM.INFO.{STREAM}"))["cluster"].get("leader", "") not in ("", server):
                    return
            await asyncio.sleep(0.2)


def test_a_cluster_stores_while_the_disk_of_one_of_three_is_full(tmp_path: Path) -> None:
    """The consumer by which that is seen is put on any of them, so one look in three found it full."""
    with small_disk(tmp_path / "small", megabytes=48) as disk:

        def on_small_disk(node: Node, folder: Path) -> Server:
            if node.number == 3:
                (folder / "store").symlink_to(disk.folder)
            return Server(node, folder)

        async def looks(access: Access, small: Server, wait_ready: Callable[[], None]) -> list[str]:
            connection = await Connection.open(access)
            try:
                await led_elsewhere(connection, "neuraxis-3")
                small.start()
                await asyncio.to_thread(wait_ready)
                disk.fill()
                return [await storage_fault(connection, STREAM, 10.0) for _ in range(20)]  # of a busy machine
            finally:
                await connection.close()

        with deployed(tmp_path / "set", nodes=3, workers=workers_of_actors(), server_of=on_small_disk) as cluster:
            small = cluster.servers[2]
            small.kill()  # whatever it leads is led by another then
            assert set(asyncio.run(looks(cluster.access("admin"), small, cluster.wait_ready))) == {""}
