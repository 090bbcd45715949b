"""The embedded broker, with the real nats-server."""

import asyncio
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from deploy.config.loading import resolve
from deploy.config.settings import BrokerSettings, LogSettings, RuntimeSettings
from deploy.processes.broker import (
    ADMIN,
    DECIDERS,
    OBSERVER,
    OPERATOR,
    SYSTEM,
    BinaryMissing,
    EmbeddedBroker,
    find_nats_server,
)
from deploy.processes.broker.embedded import TIMER_SLACK_US, jetstream_serves
from deploy.processes.broker.storage_watch import room_on_disk, storing_failure
from deploy.processes.broker.users import context_file, load_logins
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder
from deploy.processes.supervising.supervisor import Backoff, ProgramFailed, Supervisor
from deploy.processes.up import prepare_embedded
from events.errors import LogError, UnknownOutcome
from events.jetstream import Access, Connection, JetStreamLog
from events.log import Append, Record
from tests.deploy.waiting import DEADLINE_S, is_gone, until
from tests.full_disk import small_disk

CONFIG = resolve({"broker": BrokerSettings, "log": LogSettings, "runtime": RuntimeSettings}, [])
CLOCK_SUBJECT = "log._.00.clock.fired"
PEOPLE_S_SUBJECTS = (
    "log.00.00.input.received",
    "log.00.00.operator.breaker_reset_ordered",
    "log.00._.precedent.recorded",
)


def embedded(folder: Path, **settings: object) -> EmbeddedBroker:
    return EmbeddedBroker(
        folder,
        msgspec.convert(settings, BrokerSettings),
        prepare=lambda broker: prepare_embedded(broker, CONFIG),
        check_every_s=0.05,
    )


def as_user(broker: EmbeddedBroker, user: str) -> Access:
    return access_of(BrokerChoice(context=str(context_file(broker.layout.contexts, user))), DataFolder(Path()))


def run(broker: EmbeddedBroker, meanwhile: Callable[[Supervisor], Awaitable[None]]) -> None:
    """Keep the broker running while ``meanwhile`` does."""

    async def scenario() -> None:
        stop, ready = asyncio.Event(), asyncio.Event()
        supervisor = Supervisor([[broker]], Backoff(first=0.01, most=0.1))
        running = asyncio.create_task(supervisor.run(stop, ready.set))
        getting_ready = asyncio.create_task(ready.wait())
        try:
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.wait((running, getting_ready), return_when=asyncio.FIRST_COMPLETED)
                if ready.is_set():
                    await meanwhile(supervisor)
        finally:
            getting_ready.cancel()
            stop.set()
            await running

    asyncio.run(scenario())


async def nothing(_: Supervisor) -> None:
    """Do nothing."""


def test_it_serves_jetstream_on_loopback_and_says_that_every_append_is_flushed(tmp_path: Path) -> None:
    broker = embedded(tmp_path)

    async def look(_: Supervisor) -> None:
        connection = await Connection.open(as_user(broker, SYSTEM))
        answer = await connection.request("$SYS.REQ.SERVER.PING.JSZ", b'{"config":true}')
        await connection.close()
        assert msgspec.json.decode(answer.data)["data"]["config"]["sync_always"] is True

    run(broker, look)
    assert broker.url.startswith("nats://127.0.0.1:")


def test_relaxed_flushing_reaches_the_server(tmp_path: Path) -> None:
    broker = embedded(tmp_path, sync="3s")

    async def look(_: Supervisor) -> None:
        connection = await Connection.open(as_user(broker, SYSTEM))
        answer = await connection.request("$SYS.REQ.SERVER.PING.JSZ", b'{"config":true}')
        await connection.close()
        assert msgspec.json.decode(answer.data)["data"]["config"]["sync_interval"] == 3_000_000_000

    run(broker, look)


@pytest.mark.skipif(sys.platform != "linux", reason="only the kernel of Linux can be told how late a sleep may end")
def test_its_sleeps_may_end_late_so_that_it_wakes_up_less_often(tmp_path: Path) -> None:
    async def look(supervisor: Supervisor) -> None:
        slack_ns = Path("/proc", str(supervisor.statuses()[0].pid), "timerslack_ns")
        assert int(await asyncio.to_thread(slack_ns.read_text)) == TIMER_SLACK_US * 1_000

    run(embedded(tmp_path), look)


def test_after_a_kill_it_serves_what_was_acknowledged_at_the_same_address(tmp_path: Path) -> None:
    broker = embedded(tmp_path)

    async def kill_it(supervisor: Supervisor) -> None:
        url = broker.url
        log = await JetStreamLog.connect(as_user(broker, DECIDERS))
        last = await log.append([Append([Record(CLOCK_SUBJECT, {"Nats-Msg-Id": "1"}, b"{}")])])
        os.kill(supervisor.statuses()[0].pid, signal.SIGKILL)
        await asyncio.to_thread(until, lambda: supervisor.statuses()[0].restarts == 1, "a restart")
        await asyncio.to_thread(until, lambda: supervisor.statuses()[0].ready, "the broker is back")
        await log.close()
        again = await JetStreamLog.connect(as_user(broker, OPERATOR), create=False)
        assert (await again.info()).last_seq == last
        await again.close()
        assert broker.url == url

    run(broker, kill_it)


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are Linux's to set")
def test_a_broker_that_could_not_write_stores_again_once_it_can(tmp_path: Path) -> None:
    broker = embedded(tmp_path)

    async def write_in_vain(supervisor: Supervisor) -> None:
        process = supervisor.statuses()[0].pid
        log = await JetStreamLog.connect(as_user(broker, DECIDERS))
        # Every write is past this limit, and fails as on a full disk. The next process has none.
        resource.prlimit(process, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        writing = asyncio.create_task(log.append([Append([Record(CLOCK_SUBJECT, {"Nats-Msg-Id": "1"}, b"{}")])]))
        await asyncio.to_thread(until, lambda: supervisor.statuses()[0].restarts == 1, "a restart")
        await asyncio.to_thread(until, lambda: supervisor.statuses()[0].ready, "the broker is back")
        await asyncio.gather(writing, return_exceptions=True)
        await log.close()
        again = await JetStreamLog.connect(as_user(broker, DECIDERS), create=False)
        before = (await again.info()).last_seq
        assert await again.append([Append([Record(CLOCK_SUBJECT, {"Nats-Msg-Id": "2"}, b"{}")])]) == before + 1
        await again.close()

    run(broker, write_in_vain)


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are Linux's to set")
def test_without_room_a_broker_that_cannot_write_is_left_alone_and_the_disk_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.processes.broker.storage_watch.ROOM_BYTES", 1 << 62)
    broker = embedded(tmp_path)

    async def write_in_vain(supervisor: Supervisor) -> None:
        resource.prlimit(supervisor.statuses()[0].pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        log = await JetStreamLog.connect(as_user(broker, DECIDERS))
        with pytest.raises(LogError), capture_logs() as said:
            await log.append([Append([Record(CLOCK_SUBJECT, {"Nats-Msg-Id": "1"}, b"{}")])])
        await log.close()
        assert "write error" in await storing_failure(as_user(broker, SYSTEM))
        assert [line["event"] for line in said].count("broker_stores_nothing") == 1
        assert supervisor.statuses()[0].restarts == 0

    run(broker, write_in_vain)


def test_a_broker_is_not_started_again_on_a_disk_without_bytes_or_without_inodes(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=24) as disk:
        assert room_on_disk(disk.folder).is_enough
        disk.use_up_inodes()
        assert not room_on_disk(disk.folder).is_enough
        disk.give_inodes()
        assert room_on_disk(disk.folder).is_enough
        disk.fill()
        assert not room_on_disk(disk.folder).is_enough


def test_the_next_start_in_the_folder_takes_the_same_port_and_secrets(tmp_path: Path) -> None:
    first = embedded(tmp_path)
    run(first, nothing)
    second = embedded(tmp_path)
    run(second, nothing)
    assert second.url == first.url
    assert second.logins == first.logins


def test_a_port_kept_from_the_last_run_is_given_up_when_somebody_else_has_it(tmp_path: Path) -> None:
    first = embedded(tmp_path)
    run(first, nothing)
    with socket.create_server(("127.0.0.1", int(first.url.rpartition(":")[2]))):
        second = embedded(tmp_path)
        run(second, nothing)
    assert second.url != first.url


def test_a_port_that_was_asked_for_and_is_taken_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ProgramFailed, match=f"port {port} is taken by another program: stop that one, or choose"):
            run(embedded(tmp_path, port=port), nothing)


def test_a_store_that_is_no_folder_is_an_error_in_the_servers_words(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(ProgramFailed, match=r"does not start in .*storage directory is not a directory"):
        run(embedded(tmp_path), nothing)


def test_a_damaged_stream_is_refused_instead_of_being_made_anew(tmp_path: Path) -> None:
    broker = embedded(tmp_path)

    async def store_something(_: Supervisor) -> None:
        log = await JetStreamLog.connect(as_user(broker, DECIDERS), create=False)
        await log.append([Append([Record(CLOCK_SUBJECT, {"Nats-Msg-Id": "1"}, b"{}")])])
        await log.close()

    run(broker, store_something)
    stream = next(path for path in broker.layout.streams() if path.name == "NEURAXIS")
    (stream / "meta.inf").write_text("{damaged")
    with pytest.raises(ProgramFailed, match=r"nats-server cannot read stream NEURAXIS .*checksums do not match"):
        run(embedded(tmp_path), nothing)
    assert (stream / "meta.inf").read_text() == "{damaged"


def test_a_server_that_cannot_be_run_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match=r"is not a program: correct broker.binary"):
        run(embedded(tmp_path, binary="/no/such/nats-server"), nothing)


def test_the_wheels_server_is_found_without_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert os.access(find_nats_server(), os.X_OK)
    with pytest.raises(BinaryMissing):
        find_nats_server("nats-server-of-another-name")


def test_secrets_are_in_private_files_alone(tmp_path: Path) -> None:
    broker = embedded(tmp_path)
    run(broker, nothing)
    secrets = [login.password.encode() for login in broker.logins.values()]
    holding = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in secrets)
    ]
    assert broker.layout.configuration in holding
    assert {path.stat().st_mode & 0o077 for path in holding} == {0}
    assert broker.layout.log not in holding
    assert not any(secret.decode() in repr(broker.logins) for secret in secrets)


def test_every_user_has_a_secret_of_its_own(tmp_path: Path) -> None:
    logins = load_logins(tmp_path, ("a", "b", "c"))
    assert len({login.password for login in logins.values()}) == 3
    assert min(len(login.password) for login in logins.values()) >= 40


def test_users_append_what_their_owners_may_and_nothing_else(tmp_path: Path) -> None:
    broker = embedded(tmp_path)

    may = {(DECIDERS, CLOCK_SUBJECT), *((OPERATOR, subject) for subject in PEOPLE_S_SUBJECTS)}

    async def append(user: str, subject: str) -> bool:
        # Nobody is told that he may not: he waits in vain.
        patience_s = DEADLINE_S / 2 if (user, subject) in may else 0.5
        connection = await Connection.open(as_user(broker, user))
        try:
            header = {"Nats-Msg-Id": f"{user} {subject}"}
            answer = await connection.request(subject, b"{}", header, deadline=patience_s)
            return b'"seq"' in answer.data
        except UnknownOutcome:
            return False
        finally:
            await connection.close()

    async def try_all(_: Supervisor) -> None:
        subjects = (CLOCK_SUBJECT, *PEOPLE_S_SUBJECTS)
        allowed: set[tuple[str, str]] = set()
        for user in (DECIDERS, OPERATOR, OBSERVER, ADMIN):
            # Side by side: a broker that denies says nothing, and each waits until its deadline.
            answers = await asyncio.gather(*(append(user, subject) for subject in subjects))
            allowed |= {(user, subject) for subject, stored in zip(subjects, answers, strict=True) if stored}
        assert allowed == may

    run(broker, try_all)


def test_nobody_gets_in_without_a_secret(tmp_path: Path) -> None:
    broker = embedded(tmp_path)

    async def knock(_: Supervisor) -> None:
        with pytest.raises(LogError, match="Authorization"):
            await Connection.open(Access(servers=broker.url), deadline=2.0)

    run(broker, knock)


def test_the_server_ends_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\n"
        "from deploy.processes.broker import EmbeddedBroker\n"
        "from deploy.config.settings import BrokerSettings\n"
        "from deploy.processes.supervising.supervisor import Supervisor\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "supervisor = Supervisor([[EmbeddedBroker(folder, BrokerSettings())]])\n"
        "def ready():\n"
        "    (folder / 'pid.new').write_text(str(supervisor.statuses()[0].pid))\n"
        "    (folder / 'pid.new').rename(folder / 'pid')\n"
        "asyncio.run(supervisor.run(asyncio.Event(), ready))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    try:
        until((tmp_path / "pid").exists, "the broker serves")
    finally:
        parent.kill()
        parent.wait()
    until(lambda: is_gone(int((tmp_path / "pid").read_text())), "the broker ends with its supervisor")


def test_a_server_that_dies_before_it_greets_is_waited_for_again() -> None:
    """Killed as it starts, it resets who connects, or sends half of its greeting: no reason to take the set down."""
    greetings = [b"", b'INFO {"server_id":"half', b'INFO {"jetstream":false}\r\n', b'INFO {"jetstream":true}\r\n']
    said: list[bytes] = []

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = greetings[len(said)]
        said.append(greeting)
        if greeting:
            writer.write(greeting)
            await writer.drain()
        else:
            reset = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.close()

    async def body() -> None:
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server, asyncio.timeout(DEADLINE_S):
            await jetstream_serves(server.sockets[0].getsockname()[1])

    asyncio.run(body())
    assert said == greetings
