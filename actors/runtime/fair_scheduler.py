"""Fair scheduling: a partition that has used up its time slice waits until the others had their turn.

All partitions of a process share one thread, and deciding one message may take milliseconds. A partition that has
decided for ``SLICE_NS`` goes to the end of this queue; until its next turn its messages wait in its view. Messages of
other partitions are decided at once. Large messages are always decided in such turns. So many slow messages of one
partition delay a message of another by one decision, not by all of them. The order within a partition never changes,
and no decision depends on this schedule.

No turn is given while messages are dispatched (``paused``). Otherwise a partition would use its turns before the
dispatcher has seen the messages of other partitions that come later in the same read.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Protocol

SLICE_NS = 5_000_000
"""Nanoseconds that a partition may decide without a break; a decision that has begun is always finished."""

LONG_BYTES = 16_384
"""From this size in bytes on, a message may take longer than a slice, so its partition waits for its turn."""

ROOM = 2_000
"""Reading pauses while more messages than this wait for the turn of their partition."""


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
    """The partitions that wait for their next turn, first in, first out."""

    def __init__(self) -> None:
        self._line: dict[Scheduled, None] = {}
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
        while sum(decider.backlog for decider in self._line) > ROOM:
            self._given.clear()
            await self._given.wait()

    async def run(self) -> None:
        """Give turns until cancelled, one per iteration of the event loop."""
        while True:
            await self._wanted.wait()
            await self._free.wait()
            decider = next(iter(self._line), None)
            if decider is None:
                self._wanted.clear()
                continue
            del self._line[decider]
            decider.turn()
            self._given.set()
            await asyncio.sleep(0)
