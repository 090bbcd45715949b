"""Running a process of a set to its end: the signal to stop, and the deadline after it."""

import asyncio
import faulthandler
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from deploy.processes.event_loop import Choice
from deploy.processes.event_loop import run as run_on_loop
from deploy.processes.supervising.lifeline import Lifeline
from events.loggers import get_logger

STOP_DEADLINE = 14.0
"""Seconds from the signal to stop until a process has ended; handing its partitions over takes up to 10 of them."""

_logger = get_logger("neuraxis.worker")


@asynccontextmanager
async def stop_signal(lifeline: Lifeline) -> AsyncIterator[asyncio.Event]:
    """Yield an event that SIGTERM, SIGINT or the end of the supervisor sets within the block.

    From then on the process has :data:`STOP_DEADLINE` seconds.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(lifeline, stop), name="lifeline")
            limiting = tasks.create_task(_enforce_deadline(stop), name="stop deadline")
            yield stop
            watching.cancel()
            limiting.cancel()
    finally:
        faulthandler.cancel_dump_traceback_later()


async def _watch(lifeline: Lifeline, stop: asyncio.Event) -> None:
    await lifeline.ended()
    _logger.warning("supervisor_gone", pid=os.getpid())
    stop.set()


async def _enforce_deadline(stop: asyncio.Event) -> None:
    """After the signal to stop, end the process at the deadline, by a timer in C that works even if the loop hangs."""
    await stop.wait()
    faulthandler.dump_traceback_later(STOP_DEADLINE, exit=True)


def run_process(main: Coroutine[Any, Any, None], event_loop: Choice, lifeline: Lifeline) -> None:
    """Run a process of a set to its end, and close its lifeline; raises the first error of any of its tasks."""
    try:
        run_on_loop(main, event_loop)
    except* Exception as wrong:
        # The first error is the reason why the process ends, whether it was foreseen or is a bug.
        raise first_error(wrong) from wrong
    finally:
        lifeline.close()


def first_error(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the first error of a group and of groups within it: the reason why a process ends."""
    wrong: BaseException = group
    while isinstance(wrong, BaseExceptionGroup):
        wrong = wrong.exceptions[0]
    assert isinstance(wrong, Exception)
    return wrong
