"""Fair scheduling: a partition that has used up its time slice waits until the others had their turn.

All partitions of a process share one thread, and deciding one message may take milliseconds. A partition that has
decided for ``SLICE_NS`` goes to the end of this queue; until its next turn its messages wait in its view. Messages of
other partitions are decided at once. Large messages are always decided in such turns. So many slow messages of one
partition delay a message of another by one decision, not by all of them. The order within a partition never changes,
and no decision depends on this schedule.

Work in the background has its turn when no partition waits for one and the dispatcher waits for messages (is not
``busy``), or when so much waits that reading pauses. Work that has waited for ``BACKGROUND_WAIT_NS`` takes turns with
what is urgent. So a process that is never idle still notices what only the background sees: a stage that nobody serves,
an alert, a deadline.

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
"""Nanoseconds that a partition may decide without a break; a decision that has begun is always finished."""

LONG_BYTES = 16_384
"""From this size in bytes on, a message may take longer than a slice, so its partition waits for its turn."""

BACKGROUND_NS = 500_000
"""Nanoseconds of work in the background before something more urgent may have its turn."""

BACKGROUND_WAIT_NS = 500_000_000
"""Nanoseconds after which work in the background waits no longer for a time when nothing is urgent."""

ROOM = 2_000
"""Reading pauses while more messages than this wait for the turn of their partition, or in the background."""


class Scheduled(Protocol):
    """A partition that decides in turns; implemented by ``Shard``."""

    @property
    def backlog(self) -> int:
        """How many messages wait to be decided."""
        ...

    def turn(self) -> None:
        """Decide for a slice of time."""
        ...


class FairScheduler:
    """The partitions that wait for their next turn, first in, first out, and behind them work in the background."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._line: dict[Scheduled, None] = {}
        self._background: deque[tuple[int, Callable[[], None]]] = deque()
        self._busy = False
        self._wanted = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._given = asyncio.Event()

    def __contains__(self, decider: Scheduled) -> bool:
        """Return whether a partition waits for its turn."""
        return decider in self._line

    def add(self, decider: Scheduled) -> None:
        """Put a partition at the end of the queue, unless it is already queued."""
        self._line.setdefault(decider)
        self._wanted.set()

    def add_background(self, work: Callable[[], None]) -> None:
        """Put work at the end of what is done in the background, in this order."""
        self._background.append((self._clock.elapsed_ns(), work))
        self._wanted.set()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Do no work in the background for the length of the block, unless it is overdue or reading pauses for it."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
            if self._background:
                self._wanted.set()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Give no turns for the length of the block."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    async def wait_capacity(self) -> None:
        """Wait until there is room for more messages."""
        while self._is_full:
            self._given.clear()
            self._wanted.set()
            await self._given.wait()

    @property
    def _is_full(self) -> bool:
        return sum(decider.backlog for decider in self._line) + len(self._background) > ROOM

    async def run(self) -> None:
        """Give turns until cancelled, one per iteration of the event loop, and one to overdue work before it."""
        while True:
            await self._wanted.wait()
            await self._free.wait()
            overdue = self._work_overdue()
            decider = next(iter(self._line), None)
            if decider is not None:
                del self._line[decider]
                decider.turn()
            elif self._background and (not self._busy or self._is_full):
                self._work_in_background()
            elif not overdue:
                self._wanted.clear()
                continue
            self._given.set()
            await asyncio.sleep(0)

    def _work_in_background(self) -> None:
        begun = self._clock.elapsed_ns()
        while self._background:
            self._background.popleft()[1]()
            if self._clock.elapsed_ns() - begun >= BACKGROUND_NS:
                return

    def _work_overdue(self) -> bool:
        """Do work in the background that has waited too long, for a slice of time; return whether there was any."""
        begun = now = self._clock.elapsed_ns()
        while self._background and now - self._background[0][0] >= BACKGROUND_WAIT_NS and now - begun < SLICE_NS:
            self._background.popleft()[1]()
            now = self._clock.elapsed_ns()
        return now > begun
