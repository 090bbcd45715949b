"""Starting and ending child processes that cannot outlive this one, however it ends."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from subprocess import DEVNULL
from typing import IO, Any

from deploy.processes.supervising import guardian

# Options of prctl(2): send a signal when the parent dies; how many nanoseconds late a sleep may end.
_PR_SET_PDEATHSIG, _PR_SET_TIMERSLACK = 1, 29


async def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    keep_fds: Sequence[int] = (),
    output: IO[bytes] | None = None,
    guarded: bool = sys.platform != "linux",
    timer_slack_us: int = 0,
) -> asyncio.subprocess.Process:
    """Start a process that is killed when this one ends, ``kill -9`` included. Call from the main thread.

    On Linux the kernel kills it. Elsewhere (``guarded``) a small guardian process between both kills the child when a
    pipe closes whose other end only this process holds. The child leads a session of its own: Ctrl-C in a terminal
    reaches this process alone, which then stops its children in order.

    Args:
        argv: The program and its arguments.
        env: Its whole environment; ``None`` inherits ours.
        keep_fds: Open file descriptors that the child inherits under the same numbers.
        output: Where its stdout and stderr go; ``None`` inherits ours.
        guarded: Whether to start it through a guardian.
        timer_slack_us: How late its sleeps and time-outs may end, in microseconds; 0: as late as ours. Only the kernel
            of Linux can be told, so it has no effect on a guarded process.

    Raises:
        OSError: the program cannot be started.
    """
    options: dict[str, Any] = {"env": env, "stdout": output, "stderr": output, "start_new_session": True}
    if not guarded:
        # Popen forks from this thread, and the kernel's signal is bound to the thread that forked: the main
        # thread lives as long as the process.
        return await asyncio.create_subprocess_exec(
            *argv, stdin=DEVNULL, pass_fds=tuple(keep_fds), preexec_fn=_prepare(os.getpid(), timer_slack_us), **options
        )
    reading, writing = os.pipe()  # only this process has the writing end, which closes when it ends
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
"""Process id of a guardian -> our end of its pipe."""


async def end(process: asyncio.subprocess.Process, deadline: float, kill_now: asyncio.Event | None = None) -> bool:
    """Ask a spawned process to end; after ``deadline`` seconds, or when ``kill_now`` is set, kill its whole session.

    Returns:
        Whether it ended by itself.
    """
    ending = asyncio.create_task(process.wait())
    killing = asyncio.create_task((kill_now or asyncio.Event()).wait())
    try:
        _signal_group(process, signal.SIGTERM)
        await asyncio.wait((ending, killing), timeout=deadline, return_when=asyncio.FIRST_COMPLETED)
        ended = ending.done()
        if not ended:
            _signal_group(process, signal.SIGKILL)
            await ending
        return ended
    finally:
        killing.cancel()
        reap(process)


def reap(process: asyncio.subprocess.Process) -> None:
    """Release what belongs to a process that has ended; kill a child that its guardian left behind."""
    lifeline = _lifelines.pop(process.pid, None)
    if lifeline is not None:
        os.close(lifeline)
        _signal_group(process, signal.SIGKILL)  # the guardian may have been killed, and its child not


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):  # gone; macOS refuses permission for a group of zombies
        return


def _prepare(parent: int, timer_slack_us: int) -> Callable[[], None]:
    """Return what a child calls before its program begins: it ties its life to ``parent``, and sets its slack."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # found before the fork: after it, imports could deadlock

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the line above
            os._exit(1)
        if timer_slack_us:
            prctl(_PR_SET_TIMERSLACK, timer_slack_us * 1_000)

    return prepare
