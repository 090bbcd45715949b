"""A worker's or the gateway's process as a program that the supervisor keeps running."""

import asyncio
import socket
from asyncio.subprocess import Process
from collections.abc import Sequence

from deploy.processes.supervising.child import spawn
from deploy.processes.supervising.lifeline import wait_ready
from deploy.processes.supervising.supervisor import ProgramFailed

STOP_DEADLINE = 15.0
"""Seconds that a worker may take to hand its partitions over when asked to stop."""

WRONG_USE = 2
"""Exit status of a process with a fault that only a person can correct: if it was never ready, it is not restarted."""


class WorkerProgram:
    """A ``Program``: a child that gets one end of a socket pair, its *lifeline*, by ``--lifeline FD``.

    Through it the child reports that it serves, and sees when the supervisor ends: its end is then closed.

    ``argv`` is its command; ``keep_fds`` are open file descriptors that it inherits at every start.
    """

    def __init__(
        self, name: str, argv: Sequence[str], *, stop_deadline: float = STOP_DEADLINE, keep_fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self.stop_deadline = stop_deadline
        self._argv = tuple(argv)
        self._keep_fds = tuple(keep_fds)
        self._lifeline: socket.socket | None = None

    async def start(self) -> Process:
        """Start it with a new lifeline; raises ProgramFailed if the command cannot be run."""
        try:
            self._lifeline, theirs = socket.socketpair()
            with theirs:
                descriptor = theirs.fileno()
                return await spawn((*self._argv, "--lifeline", str(descriptor)), keep_fds=(descriptor, *self._keep_fds))
        except OSError as wrong:
            self.release()
            raise ProgramFailed(f"{self.name} cannot be started: {wrong}") from wrong

    async def ready(self, process: Process) -> None:
        """Wait for the child's report. A child that closes the lifeline without one is about to end: wait for ever."""
        lifeline = self._lifeline
        if lifeline is None or not await wait_ready(lifeline):
            await asyncio.Event().wait()

    def refusal(self, status: int) -> str | None:
        """Return why it must not be started again: its error message asks a person to correct something."""
        if status != WRONG_USE:
            return None
        return f"{self.name} cannot run as it is configured: its own message is above"

    def release(self) -> None:
        """Close our end of the lifeline."""
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None
