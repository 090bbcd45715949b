"""What a process tells orchestrators once a second: that its event loop turns, and whether it is ready.

Docker, Kubernetes and the like read it from a file, by ``neuraxis-probe``; systemd is sent it as its watchdog's
keep-alive. The process that runs under a supervisor of ours tells neither: the supervisor does.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from deploy.processes.supervising.lifeline import notify_systemd
from events.loggers import get_logger
from neuraxis_server.probe import HEARTBEAT_INTERVAL_S, Health

START_EXTENSION_S = 60
"""Seconds by which each beat of a process that starts puts off systemd's time limit for the start."""

STARTING = "starting"

_logger = get_logger("neuraxis.worker")


class Pulse:
    """The state that is told. ``fault`` is asked at each beat why the process is not ready; empty: it is."""

    def __init__(self, file: str, *, supervised: bool) -> None:
        self.fault: Callable[[], str] = lambda: STARTING
        self._file = Path(file) if file and not supervised else None
        self._supervised = supervised
        self._unwritable = False

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Tell for the length of the block; the file is gone after it."""
        # No task group, which would change the errors of the block: if this task fails, its silence is what is noticed.
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
            self.tell()
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    def tell(self) -> None:
        """Tell once."""
        fault = self.fault()
        if not self._supervised:
            more = f"\nEXTEND_TIMEOUT_USEC={START_EXTENSION_S * 1_000_000}" if fault == STARTING else ""
            with suppress(OSError):  # a manager that is busy must not hold up the work; it hears the next beat
                notify_systemd(f"WATCHDOG=1\nSTATUS={fault or 'ready'}{more}", wait=False)
        if self._file is not None:
            self._write(self._file, Health(pid=os.getpid(), beat_s=time.monotonic(), fault=fault))

    def _write(self, file: Path, health: Health) -> None:
        draft = file.with_name(f".{file.name}-{health.pid}")
        try:
            draft.write_bytes(msgspec.json.encode(health._asdict()))
            draft.replace(file)
        except OSError as wrong:
            # A file that is not written grows old, and the probe then says so: no reason to stop work that goes on.
            if not self._unwritable:
                _logger.warning("health_file_not_written", path=str(file), error=wrong.strerror)
            self._unwritable = True
        else:
            self._unwritable = False
