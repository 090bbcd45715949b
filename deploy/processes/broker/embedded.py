"""The embedded nats-server as a program to keep running: same address over restarts, ready when JetStream serves."""

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
from deploy.processes.broker.storing import end_once_there_is_room
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
"""Seconds the server may take to end when asked."""

_LOOK = 0.005
_LOOK_AT_STORING = 5.0
_logger = get_logger("neuraxis.broker")


async def _nothing_to_prepare(broker: "EmbeddedBroker") -> None:
    """Make nothing."""


class EmbeddedBroker:
    """A ``Program``: a nats-server on loopback, its store and users under ``folder``.

    Args:
        folder: Its own folder; made if need be.
        settings: Port, flushing, limits.
        stream: The stream that holds the log; permissions name it.
        keep_fds: Descriptors the server holds open while it lives: the lock of the data folder.
        prepare: Called after every start, before the broker counts as ready: makes what is missing.
        look_every_s: Seconds between two looks whether the server still stores.

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
        look_every_s: float = _LOOK_AT_STORING,
    ) -> None:
        self.layout = Layout(folder.resolve())
        self._settings = settings
        self._keep_fds = tuple(keep_fds)
        self._prepare = prepare
        self._users = broker_users(stream, settings.alert_consumers)
        self.logins: Logins = load_logins(self.layout.contexts, (*(user.name for user in self._users), SYSTEM))
        self._sticky = not settings.port
        self._port = settings.port or _last_port(self.layout) or -1
        self._log_offset = 0
        self._look_every_s = look_every_s
        self._watch: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where clients connect; empty until the server has taken a port, and the same from then on."""
        return f"nats://127.0.0.1:{self._port}" if self._port > 0 else ""

    async def start(self) -> Process:
        """Write the configuration and start the server; raises ProgramFailed when that cannot be done."""
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
                return await spawn(command, keep_fds=self._keep_fds, output=output)
        except BinaryMissing as missing:
            raise ProgramFailed(str(missing)) from missing
        except OSError as wrong:
            raise ProgramFailed(f"the broker cannot be started in {layout.folder}: {wrong}") from wrong

    async def ready(self, process: Process) -> None:
        """Wait until the server accepts connections with JetStream on, and missing streams and buckets are made."""
        deadline = self._settings.start_deadline_s
        try:
            async with asyncio.timeout(deadline):
                self._port = await self._take_port()
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
        self._sticky = False
        self._watch = asyncio.create_task(
            end_once_there_is_room(
                process,
                Access(servers=self.url, user=SYSTEM, password=self.logins[SYSTEM].password, name="neuraxis up"),
                self.layout.store,
                stop_deadline=self.stop_deadline,
                look_every_s=self._look_every_s,
            ),
            name="broker stores",
        )
        _logger.info("broker_listens", url=self.url, store=str(self.layout.store), sync=self._settings.sync)

    def refused(self, status: int) -> str | None:
        """Return why the server ended at its start, from its own log."""
        said = self.complaints()
        if any("address already in use" in line for line in said):
            if self._sticky and self._port > 0:
                self._port = -1  # the last run's port went to somebody else: any other does
                return None
            return (
                f"port {self._port} is taken by another program: stop that one, or choose another port with --port "
                "(0: any free one)"
            )
        if said:
            return f"the broker does not start in {self.layout.folder}: {said[-1]}"
        return None

    def release(self) -> None:
        """Look no more whether the server stores."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def complaints(self) -> list[str]:
        """Return what the server has said since its last start that is not mere information, without time stamps."""
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
            max_store=self._settings.max_store_bytes or _room_for(layout.store),
            accounts=accounts(self._users, self.logins),
        )
        write_private(layout.configuration, render(configuration))

    async def _take_port(self) -> int:
        while True:
            for file in self.layout.ports.glob("*.ports"):
                with suppress(FileNotFoundError):  # the server has just ended, and taken it along
                    if found := re.search(rb'"nats:\S*?:(\d+)"', file.read_bytes()):
                        return int(found[1])
            await asyncio.sleep(_LOOK)


async def jetstream_serves(port: int) -> None:
    """Wait until a server on this machine greets with JetStream on, however often it dies before it does."""
    while True:
        # A server that is killed meanwhile refuses, resets, or has sent half of its greeting.
        with suppress(ConnectionError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                line = await reader.readline()
            finally:
                writer.close()
            if line.startswith(b"INFO ") and json.loads(line[5:]).get("jetstream"):
                return
        await asyncio.sleep(_LOOK)


def _last_port(layout: Layout) -> int:
    """Return the port that the contexts of the last run name, 0 when there are none."""
    try:
        context = json.loads(context_file(layout.contexts, SYSTEM).read_bytes())
        return urlsplit(context["url"]).port or 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _room_for(store: Path) -> int:
    """Return the store's size plus 90% of the free space, as limit: the server's default shrinks as the store grows."""
    held = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    return held + shutil.disk_usage(store.parent).free * 9 // 10


def _message(line: str) -> str:
    return re.sub(r"^\[\d+\] \S+ \S+ \[\w+\]\s*", "", line).strip().removeprefix("nats-server: ")
