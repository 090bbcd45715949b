"""Brokers that this release cannot use: each is refused with what it is, why that will not do, and what to do."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from events.errors import Misconfigured, Unavailable
from events.jetstream import Access, JetStreamLog
from events.jetstream.connection import Connection
from events.jetstream.stream import counts_metadata, ensure_stream, stream_config
from schemas.subjects import FormerCounts, Partitions
from tests.broker import Broker, nats_server, port_in, wait_until
from tests.each import each
from tests.events.sealing.records import said
from tests.events.setting import plain


@asynccontextmanager
async def _old_server(version: str) -> AsyncIterator[str]:
    """A peer that greets as an old nats-server does and answers pings: there is no such binary to install."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"server_id": "old", "version": version, "proto": 1, "headers": True, "max_payload": 1048576}
        writer.write(b"INFO " + json.dumps(info).encode() + b"\r\n")
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_server_that_is_too_old_is_refused_with_the_version_it_needs() -> None:
    async def connect() -> None:
        async with _old_server("2.10.22") as url:
            await JetStreamLog.connect(url)

    with pytest.raises(Misconfigured, match=r"nats-server 2\.10\.22; .* 2\.12\.0 or later: upgrade nats-server"):
        asyncio.run(connect())


def test_a_peer_that_says_nothing_is_told_of_in_words() -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def connect() -> None:
        async with await asyncio.start_server(hold, "127.0.0.1", 0) as silent:
            url = f"nats://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
            # Longer than the client waits for a greeting before it tries again.
            await Connection.open(Access(servers=url), deadline=2.5)

    with pytest.raises(Unavailable, match=r"within 2\.5 s: nothing came back from there; start one with"):
        asyncio.run(connect())


def test_a_server_without_jetstream_is_refused_with_the_setting_it_needs(tmp_path: Path) -> None:
    ports = tmp_path / "ports"
    ports.mkdir()
    command = [
        nats_server(),
        "-a",
        "127.0.0.1",
        "-p",
        "-1",
        "--ports_file_dir",
        str(ports),
        "-l",
        str(tmp_path / "log"),
    ]
    with subprocess.Popen(command) as server:
        try:
            said = ports / f"nats-server_{server.pid}.ports"
            wait_until(lambda: port_in(said) is not None, "the server to say where it listens")
            url = f"nats://127.0.0.1:{port_in(said)}"
            with pytest.raises(Misconfigured, match="JetStream switched off: start nats-server with"):
                asyncio.run(JetStreamLog.connect(url))
        finally:
            server.kill()


def test_a_broker_that_refuses_the_login_says_how_to_give_one(tmp_path: Path) -> None:
    with (
        Broker(tmp_path, more="authorization { user: somebody, password: secret }") as theirs,
        pytest.raises(Unavailable, match=r"refuses this login.*--creds or --context"),
    ):
        asyncio.run(Connection.open(Access(servers=theirs.url), deadline=2.0))


def test_where_nothing_listens_the_error_says_how_to_start_something(broker: Broker) -> None:
    broker.stop()
    with pytest.raises(Unavailable, match="start one with `neuraxis up`, or name it with --nats"):
        asyncio.run(Connection.open(Access(servers=broker.url), deadline=1.0))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"deny_purge": False}, "deny_purge switched off"),
        ({"allow_atomic": False}, "allow_atomic switched off"),
        ({"subjects": ["log.>"]}, "has subjects"),
        ({"metadata": {}}, "was not made by neuraxis"),
    ],
)
def test_a_stream_that_could_lose_or_miss_events_is_refused(
    broker: Broker, change: dict[str, object], complaint: str
) -> None:
    async def connect() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        try:
            config = {**stream_config("NEURAXIS", Partitions(), 1), **change}
            if "subjects" in change:
                config.pop("republish")
            await connection.api("STREAM.CREATE.NEURAXIS", config)
            await JetStreamLog.over(connection)
        finally:
            await connection.close()

    with pytest.raises(Misconfigured, match=complaint):
        asyncio.run(connect())


GREETING = b'INFO {"server_id":"x","version":"2.15.1","proto":1,"headers":true,"max_payload":1048576}\r\n'


@asynccontextmanager
async def _peer(says: bytes, *, port: int = 0, stays: bool = True) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Something that says one thing to whoever connects, and then is silent, or closes the connection."""
    came: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(says)
        with suppress(OSError):
            writer.write(says)
            await writer.drain()
            if stays:
                await reader.read()
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", port) as server:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", came


@each(
    ("says", "stays", "told"),
    [
        (b"x" * 100_000, True, "what answers is no NATS server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", True, "empty response from server"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "empty response from server"),
        (GREETING, False, ""),
        (b'INFO {"max_payload":"many","tls_required":true}\r\n', False, ""),
        (b"INFO []\r\n", True, "what answers is no NATS server"),
        (b"", False, ""),
    ],
)
def test_what_is_no_broker_or_closes_early_is_told_of_in_time(says: bytes, stays: bool, told: str) -> None:
    async def connect() -> None:
        async with _peer(says, stays=stays) as (url, _):
            await Connection.open(Access(servers=url), deadline=1.0)

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await connect()

    with pytest.raises(Unavailable, match=f"no broker answers at .* within 1 s.*{told}"):
        asyncio.run(bounded())


def test_a_server_that_does_not_say_its_version_is_refused() -> None:
    async def connect() -> None:
        async with _old_server("dev") as url:
            await JetStreamLog.connect(url)

    with pytest.raises(Misconfigured, match="does not say which nats-server it is"):
        asyncio.run(connect())


def test_a_client_finds_its_broker_again_although_something_else_answered_meanwhile(broker: Broker) -> None:
    async def main() -> None:
        connection = await Connection.open(Access(servers=broker.url))
        broker.kill()
        async with (
            _peer(b"x" * 100_000, port=int(broker.url.rpartition(":")[2]), stays=False) as (_, came),
            asyncio.timeout(30),
        ):
            while not came:  # noqa: ASYNC110 - the peer tells nobody
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.2)
        broker.start()
        async with asyncio.timeout(30):
            while not connection.connected:  # noqa: ASYNC110 - the client tells nobody
                await asyncio.sleep(0.05)
        await connection.close()

    asyncio.run(main())


def test_a_repartitioned_log_that_holds_its_end_is_asked_about_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    api = Connection.api

    async def counted(connection: Connection, subject: str, *arguments: object, **named: object) -> dict[str, object]:
        asked.append(subject)
        return await api(connection, subject, *arguments, **named)  # type: ignore[arg-type]

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=Partitions(4, 16))
        try:
            await log.append([plain(said("hello", id="e1", session="s1"))])
            config = (await log.connection.api(f"STREAM.INFO.{log.stream}"))["config"]
            after = counts_metadata(Partitions(8, 32, (FormerCounts(1, 4, 16),)))
            await log.connection.api(f"STREAM.UPDATE.{log.stream}", config | {"metadata": config["metadata"] | after})
            monkeypatch.setattr(Connection, "api", counted)
            facts = await ensure_stream(log.connection, log.stream, None)
            assert facts.partitions.agents == 8
            assert asked == [f"STREAM.INFO.{log.stream}"]
        finally:
            await log.close()

    asyncio.run(main())


@pytest.mark.parametrize("held", [0, 3, 4, 5])
def test_a_log_that_ends_before_it_was_repartitioned_is_refused(held: int, broker: Broker) -> None:
    """It has lost its end: events of its present partitions, stored from there on, would be folded by nobody."""

    async def connect() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=Partitions(4, 16))
        for number in range(held):
            await log.append([plain(said("hello", id=f"e{number}", session="s1"))])
        config = (await log.connection.api(f"STREAM.INFO.{log.stream}"))["config"]
        after = counts_metadata(Partitions(8, 32, (FormerCounts(4, 4, 16),)))
        await log.connection.api(f"STREAM.UPDATE.{log.stream}", config | {"metadata": config["metadata"] | after})
        await log.close()
        await (await JetStreamLog.connect(broker.url, create=False)).close()

    if held >= 4:
        asyncio.run(connect())
        return
    with pytest.raises(Misconfigured, match=f"ends at sequence {held}, and was repartitioned after sequence 4: it has"):
        asyncio.run(connect())
