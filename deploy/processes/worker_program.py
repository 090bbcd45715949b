"""A worker process as a program that the supervisor keeps running."""

import asyncio
import socket
from asyncio.subprocess import Process
from collections.abc import Sequence

from deploy.processes.supervising.child import spawn
from deploy.processes.supervising.lifeline import hear_ready
from deploy.processes.supervising.supervisor import ProgramFailed

STOP_DEADLINE = 15.0
"""Seconds a worker may take to hand over when asked to stop."""

WRONG_USE = 2
"""Exit status of a process that only a person can put right: it is not started again before it was ever ready."""


class WorkerProgram:
    """A ``Program``: a child that takes ``--lifeline FD`` and says on that line when it serves.

    ``argv`` is its command, ``keep_fds`` open descriptors that it inherits at every start.
    """

    def __init__(
        self, name: str, argv: Sequence[str], *, stop_deadline: float = STOP_DEADLINE, keep_fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self.stop_deadline = stop_deadline
        self._argv = tuple(argv)
        self._keep_fds = tuple(keep_fds)
        self._line: socket.socket | None = None

    async def start(self) -> Process:
        """Start it with a fresh line; raises ProgramFailed when the command cannot be run."""
        self._line, theirs = socket.socketpair()
        try:
            line = theirs.fileno()
            return await spawn((*self._argv, "--lifeline", str(line)), keep_fds=(line, *self._keep_fds))
        except OSError as wrong:
            self.release()
            raise ProgramFailed(f"{self.name} cannot be started: {wrong}") from wrong
        finally:
            theirs.close()

    async def ready(self, process: Process) -> None:
        """Wait for the child's word; a child that closes the line without one is seen to end."""
        line = self._line
        if line is None or not await hear_ready(line):
            await asyncio.Event().wait()

    def refused(self, status: int) -> str | None:
        """Return why an early end is final: the child said on stderr what a person must put right."""
        if status != WRONG_USE:
            return None
        return f"{self.name} cannot run as it is configured: its own message is above"

    def release(self) -> None:
        """Close our end of the line."""
        if self._line is not None:
            self._line.close()
            self._line = None
