"""The embedded nats-server as a supervised program: it keeps its address over restarts, and is ready with JetStream."""

import asyncio
import json
import re
import shutil
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from deploy.config.settings import BrokerSettings
from deploy.processes.broker.binary import BinaryMissing, find_nats_server
from deploy.processes.broker.configuration import Layout, render, server_configuration
from deploy.processes.broker.storage_watch import restart_when_disk_has_space
from deploy.processes.broker.users import (
    SYSTEM,
    Logins,
    accounts,
    broker_users,
    context_file,
    load_logins,
    write_contexts,
    write_private,
)
from deploy.processes.supervising.child import spawn
from deploy.processes.supervising.supervisor import ProgramFailed
from events.errors import LogError
from events.jetstream.connection import Access
from events.loggers import get_logger
from schemas.permissions import STREAM

NAME = "broker"
STOP_DEADLINE = 10.0
"""Seconds that the server may take to end when asked."""

TIMER_SLACK_US = 200
"""How late the server's sleeps may end, in microseconds, on Linux.

Go's runtime has a thread that looks for blocked system calls every 20 µs, up to 50 times after each: with the kernel's
own slack of 50 µs it took a fifth of the server's processor time, since each append ends in a flush that blocks.
"""

_POLL_INTERVAL_S = 0.005
_STORING_CHECK_INTERVAL_S = 5.0
_logger = get_logger("neuraxis.broker")


async def _nothing_to_prepare(broker: "EmbeddedBroker") -> None:
    """Make nothing."""


class EmbeddedBroker:
    """A ``Program``: a nats-server on loopback, its store and users under ``folder``.

    Args:
        folder: Its own folder; made if need be.
        settings: Port, flushing, limits.
        stream: The stream that holds the log; permissions name it.
        keep_fds: File descriptors that the server inherits and holds open while it lives: the lock of the data folder.
        prepare: Called after every start, before the broker counts as ready: makes streams and buckets that are
            missing.
        check_every_s: Seconds between two checks that the server still stores messages.

    Attributes:
        logins: The users' secrets, by user name.
    """

    name = NAME
    stop_deadline = STOP_DEADLINE

    def __init__(
        self,
        folder: Path,
        settings: BrokerSettings,
        *,
        stream: str = STREAM,
        keep_fds: Sequence[int] = (),
        prepare: Callable[["EmbeddedBroker"], Awaitable[None]] = _nothing_to_prepare,
        check_every_s: float = _STORING_CHECK_INTERVAL_S,
    ) -> None:
        self.layout = Layout(folder.resolve())
        self._settings = settings
        # A command that makes or changes the stream itself prepares nothing.
        self._watched_stream = stream if prepare is not _nothing_to_prepare else ""
        self._keep_fds = tuple(keep_fds)
        self._prepare = prepare
        self._users = broker_users(stream, settings.alert_consumers)
        self.logins: Logins = load_logins(self.layout.contexts, (*(user.name for user in self._users), SYSTEM))
        self._may_change_port = not settings.port
        self._port = settings.port or _last_port(self.layout) or -1
        self._log_offset = 0
        self._check_every_s = check_every_s
        self._watch: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The URL for clients; empty until the server listens for the first time, and the same from then on."""
        return f"nats://127.0.0.1:{self._port}" if self._port > 0 else ""

    async def start(self) -> Process:
        """Write the configuration and start the server; raises ProgramFailed if that cannot be done."""
        layout = self.layout
        try:
            binary = find_nats_server(self._settings.binary)
            layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(layout.ports, ignore_errors=True)
            layout.ports.mkdir()
            self._write_configuration()
            with layout.log.open("ab") as output:
                self._log_offset = output.tell()
                command = (str(binary), "-c", str(layout.configuration))
                return await spawn(command, keep_fds=self._keep_fds, output=output, timer_slack_us=TIMER_SLACK_US)
        except BinaryMissing as missing:
            raise ProgramFailed(str(missing)) from missing
        except OSError as wrong:
            raise ProgramFailed(f"the broker cannot be started in {layout.folder}: {wrong}") from wrong

    async def ready(self, process: Process) -> None:
        """Wait until the server accepts connections and JetStream is on; then make missing streams and buckets."""
        deadline = self._settings.start_deadline_s
        try:
            async with asyncio.timeout(deadline):
                self._port = await self._listening_port()
                await jetstream_serves(self._port)
                write_contexts(self.layout.contexts, self.logins, self.url)
                await self._prepare(self)
        except TimeoutError:
            raise ProgramFailed(
                f"the broker was not ready within {deadline:g} s: see {self.layout.log}, "
                "or raise broker.start_deadline_s"
            ) from None
        except (LogError, OSError) as wrong:
            raise ProgramFailed(f"the broker at {self.url} cannot be prepared: {wrong}") from wrong
        self._may_change_port = False  # clients know the address from now on
        self._watch = asyncio.create_task(
            restart_when_disk_has_space(
                process,
                Access(servers=self.url, user=SYSTEM, password=self.logins[SYSTEM].password, name="neuraxis up"),
                self.layout.store,
                stream=self._watched_stream,
                stop_deadline=self.stop_deadline,
                check_every_s=self._check_every_s,
            ),
            name="broker stores",
        )
        _logger.info("broker_listens", url=self.url, store=str(self.layout.store), sync=self._settings.sync)

    def refusal(self, status: int) -> str | None:
        """Return why the server ended at its start, from its own log; None if the supervisor should try again."""
        complaints = self.complaints()
        if any("address already in use" in line for line in complaints):
            if self._may_change_port and self._port > 0:
                self._port = -1  # another program has the port of the last run: any other will do
                return None
            return (
                f"port {self._port} is taken by another program: stop that one, or choose another port with --port "
                "(0: any free one)"
            )
        if complaints:
            return f"the broker does not start in {self.layout.folder}: {complaints[-1]}"
        return None

    def release(self) -> None:
        """Stop checking that the server stores messages."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def complaints(self) -> list[str]:
        """Return the warnings and errors in the server's log since its last start, without time stamps."""
        with self.layout.log.open("rb") as log:
            log.seek(self._log_offset)
            lines = log.read().decode(errors="replace").splitlines()
        return [_message(line) for line in lines if line and "[INF]" not in line and "Plaintext passwords" not in line]

    def _write_configuration(self) -> None:
        layout = self.layout
        configuration = server_configuration(
            layout,
            port=self._port,
            sync=self._settings.sync,
            max_store=self._settings.max_store_bytes or _store_limit(layout.store),
            accounts=accounts(self._users, self.logins),
        )
        write_private(layout.configuration, render(configuration))

    async def _listening_port(self) -> int:
        """Wait until the server has written the port that it listens on; return it."""
        while True:
            for file in self.layout.ports.glob("*.ports"):
                with suppress(FileNotFoundError):  # the server has just ended, and deleted it
                    # The file is JSON, which may be half written: its URL such as "nats://127.0.0.1:4222" is enough.
                    if found := re.search(rb'"nats:\S*?:(\d+)"', file.read_bytes()):
                        return int(found[1])
            await asyncio.sleep(_POLL_INTERVAL_S)


async def jetstream_serves(port: int) -> None:
    """Wait until the server on ``port`` of this machine says in its greeting (``INFO``) that JetStream is on."""
    while True:
        # A server that dies meanwhile refuses or resets the connection, or has sent half of its greeting: ask again.
        with suppress(ConnectionError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                line = await reader.readline()
            finally:
                writer.close()
            if line.startswith(b"INFO ") and json.loads(line[5:]).get("jetstream"):
                return
        await asyncio.sleep(_POLL_INTERVAL_S)


def _last_port(layout: Layout) -> int:
    """Return the port in the contexts that the last run wrote; 0 if there are none."""
    try:
        context = json.loads(context_file(layout.contexts, SYSTEM).read_bytes())
        return urlsplit(context["url"]).port or 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _store_limit(store: Path) -> int:
    """Return the store's size plus 90% of the free space, in bytes.

    The server's default is a share of the free space alone, and so would shrink as the store grows.
    """
    held = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    return held + shutil.disk_usage(store.parent).free * 9 // 10


def _message(line: str) -> str:
    """Return a line of the server's log without what it begins with, such as ``[7] 2026/01/02 03:04:05 [ERR]``."""
    return re.sub(r"^\[\d+\] \S+ \S+ \[\w+\]\s*", "", line).strip().removeprefix("nats-server: ")
