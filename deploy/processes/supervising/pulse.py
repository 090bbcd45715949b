"""The pulse of a process: once a second it reports that its event loop turns, and whether it is ready.

Docker, Kubernetes and the like read it from a file, by ``neuraxis-probe``; systemd gets it as its watchdog's
keep-alive. A process under a supervisor of ours reports to neither: the supervisor does.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from deploy.config.loading import BadConfiguration
from deploy.processes.supervising.lifeline import notify_systemd
from events.files.bounded_files import read_bounded
from events.loggers import get_logger
from neuraxis_server.probe import HEARTBEAT_INTERVAL_S, Health

START_EXTENSION_S = 60
"""Seconds by which each beat of a process that is still starting extends systemd's time limit for the start."""

MOST_SHOWN = 300
"""Characters of a fault that a health file holds at most."""

FILE_BYTES = 2048
"""Size of a health file, always the same: so a beat can be written over the one before where a disk has no room."""

STARTING = "starting"
"""The fault of a process that does not serve yet."""

_logger = get_logger("neuraxis.worker")

_LONGEST_HEALTH_FILE = 64 * 1024
"""Most bytes of a health file."""


class Pulse:
    """Reports once a second. ``fault`` is called each time; it returns why the process is not ready, or ``""``.

    Raises:
        BadConfiguration: the file is there and is no health file: it would be replaced, and removed at the end.
    """

    def __init__(self, file: str, *, supervised: bool) -> None:
        self.fault: Callable[[], str] = lambda: STARTING
        self._file = Path(file) if file and not supervised else None
        if self._file is not None and self._file.exists() and not _is_health_file(self._file):
            raise BadConfiguration(
                f"runtime.health_file names {file}, which is there, is no health file, and would be replaced: name "
                "another"
            )
        self._supervised = supervised
        self._unwritable = False

    @property
    def is_read(self) -> bool:
        """Whether somebody is told of the fault: systemd, or whoever reads the file."""
        return self._file is not None or (not self._supervised and "NOTIFY_SOCKET" in os.environ)

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Report within the block, and remove the file at its end."""
        # Not a task group, which would wrap the errors of the block. If this task fails, its missing beats show it.
        task = asyncio.create_task(self._beat(), name="pulse")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))
            if self._file is not None:
                with suppress(OSError):
                    self._file.unlink(missing_ok=True)

    async def _beat(self) -> None:
        while True:
            self.report()
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    def report(self) -> None:
        """Report once."""
        fault = self.fault()
        if not self._supervised:
            extension = f"\nEXTEND_TIMEOUT_USEC={START_EXTENSION_S * 1_000_000}" if fault == STARTING else ""
            with suppress(OSError):  # systemd, when busy, must not hold up the work; it gets the next beat
                notify_systemd(f"WATCHDOG=1\nSTATUS={fault or 'ready'}{extension}", wait=False)
        if self._file is not None:
            self._write(self._file, Health(pid=os.getpid(), beat_s=time.monotonic(), fault=fault))

    def _write(self, file: Path, health: Health) -> None:
        content = msgspec.json.encode(health._replace(fault=health.fault[:MOST_SHOWN])._asdict()).ljust(FILE_BYTES)
        draft = file.with_name(f".{file.name}-{health.pid}")
        try:
            try:
                draft.write_bytes(content)
                draft.replace(file)
            except OSError:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
                _write_over(file, content)
        except OSError as wrong:
            # The work goes on. The file gets old, and ``neuraxis-probe`` then reports that.
            if not self._unwritable:
                _logger.warning("health_file_not_written", path=str(file), error=wrong.strerror)
            self._unwritable = True
        else:
            self._unwritable = False


def _write_over(file: Path, content: bytes) -> None:
    """Write over a file of the same size, which needs no room on its disk; raises OSError."""
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.pwrite(descriptor, content, 0)
    finally:
        os.close(descriptor)


def _is_health_file(file: Path) -> bool:
    """Whether a file holds what a health file does, or nothing, like a file that was just made."""
    if not file.is_file():  # such as /dev/null, in whose place a file would be put
        return False
    try:
        content = read_bounded(file, _LONGEST_HEALTH_FILE)
        # One that another version left behind may have more fields, or fewer; a power cut may leave zeros.
        return not content.strip(b"\0 \n") or "beat_s" in msgspec.json.decode(content, type=dict[str, object])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
