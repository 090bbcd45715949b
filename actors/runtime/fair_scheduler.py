"""Fair scheduling: a partition that has used up its time slice waits until the others had their turn.

All partitions of a process share one thread, and deciding one message may take milliseconds. A partition that has
decided for ``SLICE_NS`` goes to the end of this queue; until its next turn its messages wait. Messages of other
partitions are decided at once. Large messages are always decided in such turns. Thus many slow messages of one
partition delay a message of another by one decision, not by all of them. The order within a partition never changes,
and no decision depends on this schedule.

Background work has its turn when no partition waits for one and the dispatcher waits for messages (is not ``busy``), or
when reading pauses because too much waits. Background work that has waited for ``BACKGROUND_WAIT_NS`` takes turns with
urgent work. So a process that is never idle still notices what only background actors observe: a stage that nobody
serves, an alert, a deadline.

No turn is given while messages are dispatched (``paused``). Otherwise a partition would use its turns before the
dispatcher has seen the messages of other partitions that come later in the same read.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from actors.runtime.clock import Clock

SLICE_NS = 5_000_000
"""Nanoseconds (5 ms) that a partition may decide without a break; a decision that has begun is always finished."""

LONG_BYTES = 16_384
"""From this size in bytes on, a message may take longer than a slice, so its partition waits for its turn."""

BACKGROUND_NS = 500_000
"""Nanoseconds (0.5 ms) of background work before something more urgent may have its turn."""

BACKGROUND_WAIT_NS = 500_000_000
"""Nanoseconds (0.5 s) after which background work takes turns with urgent work."""

MOST_WAITING = 2_000
"""Reading pauses while more messages than this wait for the turn of their partition, or as background work."""


class Scheduled(Protocol):
    """A partition that decides in turns; implemented by ``Shard``."""

    @property
    def backlog(self) -> int:
        """How many messages wait to be decided."""

    def turn(self) -> None:
        """Decide for a slice of time."""


class FairScheduler:
    """The queue of partitions that wait for their next turn, and after them the background work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: dict[Scheduled, None] = {}
        self._background: deque[tuple[int, Callable[[], None]]] = deque()
        self._busy = False
        self._work_waits = asyncio.Event()
        self._unpaused = asyncio.Event()
        self._unpaused.set()
        self._turn_ended = asyncio.Event()

    def __contains__(self, partition: Scheduled) -> bool:
        """Return whether a partition waits for its turn."""
        return partition in self._queue

    def add(self, partition: Scheduled) -> None:
        """Put a partition at the end of the queue, unless it is already queued."""
        self._queue.setdefault(partition)
        self._work_waits.set()

    def add_background(self, work: Callable[[], None]) -> None:
        """Add background work; it is done in the order of adding."""
        now = self._clock.elapsed_ns()
        self._background.append((now, work))
        # While messages are dispatched only overdue work has its turn: the end of ``busy`` wakes the rest.
        if not self._busy or now - self._background[0][0] >= BACKGROUND_WAIT_NS:
            self._work_waits.set()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Do no background work while the block runs, unless it is overdue or reading pauses for it."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
            if self._background:
                self._work_waits.set()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Give no turns while the block runs."""
        self._unpaused.clear()
        try:
            yield
        finally:
            self._unpaused.set()

    async def wait_capacity(self) -> None:
        """Wait until there is room for more messages."""
        while self._is_full:
            self._turn_ended.clear()
            self._work_waits.set()
            await self._turn_ended.wait()

    @property
    def _is_full(self) -> bool:
        return sum(partition.backlog for partition in self._queue) + len(self._background) > MOST_WAITING

    async def run(self) -> None:
        """Give turns until cancelled, one per iteration of the event loop; overdue background work comes before it."""
        while True:
            await self._work_waits.wait()
            await self._unpaused.wait()
            overdue = self._do_overdue_work()
            partition = next(iter(self._queue), None)
            if partition is not None:
                del self._queue[partition]
                partition.turn()
            elif self._background and (not self._busy or self._is_full):
                self._do_background_work()
            elif not overdue:
                self._work_waits.clear()
                continue
            self._turn_ended.set()
            await asyncio.sleep(0)

    def _do_background_work(self) -> None:
        begun = self._clock.elapsed_ns()
        while self._background:
            self._background.popleft()[1]()
            if self._clock.elapsed_ns() - begun >= BACKGROUND_NS:
                return

    def _do_overdue_work(self) -> bool:
        """Do background work that has waited too long, for a slice of time; return whether there was any."""
        if not self._background:
            return False
        begun = now = self._clock.elapsed_ns()
        while self._background and now - self._background[0][0] >= BACKGROUND_WAIT_NS and now - begun < SLICE_NS:
            self._background.popleft()[1]()
            now = self._clock.elapsed_ns()
        return now > begun
