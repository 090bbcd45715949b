"""Appends the events of timers that are due, while a partition leads."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from schemas.actor import Timer


class TimerPartition(Protocol):
    """A partition with a timer; implemented by ``Shard``."""

    @property
    def has_no_backlog(self) -> bool:
        """Whether nothing waits that may cancel the timer."""

    def now_ns(self) -> int:
        """Return the time, Unix nanoseconds."""

    def timer(self) -> Timer | None:
        """Return the timer of the state as it is now."""

    @property
    def needs_proof(self) -> bool:
        """Whether the log must still be proved complete before anything is appended."""

    async def prove(self) -> bool:
        """Give that proof; return False if the partition has started to recover meanwhile."""

    def fire(self, now_ns: int) -> None:
        """Append the event of the timer that is due."""


class TimerLoop:
    """Sleeps until a partition's timer is due; reads the state again whenever it has changed."""

    def __init__(self, partition: TimerPartition) -> None:
        self._partition = partition
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def on_change(self) -> None:
        """Read the state again: it has changed."""
        if self._task is not None:
            self._changed.set()

    def start(self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        """Start; the partition leads now."""
        self._task = spawn(self._run())

    def stop(self) -> None:
        """Append nothing more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            timer = self._partition.timer()
            now = self._partition.now_ns()
            if timer is not None and timer.due_ns <= now:
                # A timer that waits for a backlog to be decided is looked at again at the next change: with a look
                # each millisecond, the timers of many partitions would take the time that the backlog needs.
                if self._partition.has_no_backlog:
                    if self._partition.needs_proof:
                        if not await self._partition.prove():
                            return
                        continue
                    self._partition.fire(now)
                timer = None
            wait = None if timer is None else max(0.001, (timer.due_ns - now) / 1e9)
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue
