"""Child processes that cannot outlive this one, however it ends."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from subprocess import DEVNULL
from typing import IO, Any

from deploy.processes.supervising import guardian

_DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG


async def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    keep_fds: Sequence[int] = (),
    output: IO[bytes] | None = None,
    guarded: bool = sys.platform != "linux",
) -> asyncio.subprocess.Process:
    """Start a process that is killed when this one ends, ``kill -9`` included. Call from the main thread.

    On Linux the kernel sees to it; elsewhere (``guarded``) a small guardian process stands between, which kills the
    child at the end of a pipe that only this process holds. The child leads a session of its own, so that
    Ctrl-C in a terminal reaches this process alone and the stop keeps its order.

    Args:
        argv: The program and its arguments.
        env: Its whole environment; ``None`` inherits ours.
        keep_fds: Open descriptors that the child inherits under the same numbers.
        output: Where its stdout and stderr go; ``None`` inherits ours.
        guarded: Use the guardian.

    Raises:
        OSError: the program cannot be started.
    """
    options: dict[str, Any] = {"env": env, "stdout": output, "stderr": output, "start_new_session": True}
    if not guarded:
        # Popen forks from this thread, and the kernel's signal is bound to the thread that forked: the main
        # thread lives as long as the process.
        return await asyncio.create_subprocess_exec(
            *argv, stdin=DEVNULL, pass_fds=tuple(keep_fds), preexec_fn=_die_with(os.getpid()), **options
        )
    reading, writing = os.pipe()  # the writing end is ours alone, and closes with us
    try:
        process = await asyncio.create_subprocess_exec(
            *guardian.command(reading, keep_fds, argv), stdin=DEVNULL, pass_fds=(reading, *keep_fds), **options
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    _lifelines[process.pid] = writing
    return process


_lifelines: dict[int, int] = {}


async def end(process: asyncio.subprocess.Process, deadline: float, at_once: asyncio.Event | None = None) -> bool:
    """Ask a spawned process to end; after ``deadline`` seconds, or when ``at_once`` is set, kill its whole session.

    Returns:
        Whether it ended by itself.
    """
    waiting = asyncio.create_task(process.wait())
    hurry = asyncio.create_task((at_once or asyncio.Event()).wait())
    try:
        _signal_group(process, signal.SIGTERM)
        await asyncio.wait((waiting, hurry), timeout=deadline, return_when=asyncio.FIRST_COMPLETED)
        ended = waiting.done()
        if not ended:
            _signal_group(process, signal.SIGKILL)
            await waiting
        return ended
    finally:
        hurry.cancel()
        reap(process)


def reap(process: asyncio.subprocess.Process) -> None:
    """Let go of a process that has ended; what a guardian left behind is killed."""
    lifeline = _lifelines.pop(process.pid, None)
    if lifeline is not None:
        os.close(lifeline)
        _signal_group(process, signal.SIGKILL)  # the guardian may have been killed, and its child not


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):  # gone; macOS says the latter of a group of zombies
        return


def _die_with(parent: int) -> Callable[[], None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up before the fork: no import or allocation after it

    def arm() -> None:
        prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return arm
