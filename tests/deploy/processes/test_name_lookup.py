"""Name servers that do not answer: nobody waits for a look-up longer than for anything else."""

import asyncio
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from deploy.processes import event_loop, name_lookup
from tests.deploy.waiting import run_side_by_side

HELD_S = 30.0
"""Seconds for which a look-up is held: a process that waits for one ends later than a test waits."""

HOLDING = f"""
import socket, sys, time
def held(*_, **__):
    time.sleep({HELD_S})
    raise socket.gaierror(-3, "Temporary failure in name resolution")
socket.getaddrinfo = held
from deploy.cli import main
main(sys.argv[1:])
"""
COMMANDS = (
    ("ask", "hi", "--timeout", "2"),
    ("state", "router", "s"),
    ("alerts", "--no-follow"),
    ("log", "tail", "--no-follow"),
    ("doctor",),
)


def test_a_command_ends_although_a_look_up_goes_on(tmp_path: Path) -> None:
    where = ("--nats", "nats://broker.example:4222", "--data", str(tmp_path))
    given = [[sys.executable, "-c", HOLDING, *command, *where] for command in COMMANDS]
    for command, done in zip(COMMANDS, run_side_by_side(given, timeout=HELD_S - 5), strict=True):
        assert done.returncode in (1, 3), (command, done.stderr)
        assert "broker.example" in done.stderr + done.stdout, command
        assert "never retrieved" not in done.stderr, command


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> "threading.Event":
    """Hold all look-ups until this event is set; then each finds this machine."""
    held = threading.Event()
    real = socket.getaddrinfo

    def slow(_: object, port: int, *others: int) -> object:
        held.wait(HELD_S)
        return real("127.0.0.1", port, *others)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    return held


@pytest.mark.parametrize("choice", ["auto", "asyncio"])
def test_a_loop_ends_before_a_look_up_does_and_asks_once_for_all(
    choice: event_loop.Choice, release: threading.Event
) -> None:
    async def try_three_times() -> int:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await asyncio.open_connection("broker.example", 4222)
        return sum(thread.name == "name-lookup" for thread in threading.enumerate())

    begun = time.monotonic()
    assert event_loop.run(try_three_times(), choice) == 1
    assert time.monotonic() - begun < HELD_S / 2
    release.set()


@pytest.mark.parametrize("choice", ["auto", "asyncio"])
def test_a_look_up_for_which_no_thread_was_left_is_made_when_it_is_asked_for_again(
    choice: event_loop.Choice, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.set()

    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    async def try_twice() -> None:
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with monkeypatch.context() as short:
                short.setattr(name_lookup, "Thread", NoThread)
                with pytest.raises(OSError, match="can't start new thread"):
                    await asyncio.open_connection("broker.example", port)
            async with asyncio.timeout(HELD_S / 2):
                _, writer = await asyncio.open_connection("broker.example", port)
            writer.close()

    event_loop.run(try_twice(), choice)


@pytest.mark.parametrize("choice", ["auto", "asyncio"])
def test_a_name_leads_to_where_it_points(choice: event_loop.Choice, release: threading.Event) -> None:
    release.set()

    async def say_and_hear() -> bytes:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            writer.close()

        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("broker.example", port)
            writer.write(b"hello\n")
            heard = await reader.readline()
            writer.close()
            return heard

    assert event_loop.run(say_and_hear(), choice) == b"hello\n"


@pytest.mark.parametrize("choice", ["auto", "asyncio"])
def test_a_name_that_nobody_has_is_an_error_of_the_system(choice: event_loop.Choice) -> None:
    async def connect() -> None:
        await asyncio.open_connection("nobody.invalid", 4222)

    with pytest.raises(OSError, match=r"nobody|[Nn]ame"):
        event_loop.run(connect(), choice)


@pytest.mark.parametrize("folder", ["deploy/cli", "deploy/processes"])
def test_no_command_and_no_process_runs_on_a_loop_that_waits_for_look_ups(folder: str) -> None:
    root = Path(__file__).parents[3]
    own = [path for path in (root / folder).rglob("*.py") if "asyncio.run(" in path.read_text()]
    # The child that examines logs is asked by its parent, connects to nothing by name, and is ended by it.
    assert [path.name for path in own] in ([], ["examiner_child.py"])
