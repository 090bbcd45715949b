"""Whose turn it is: partitions that have used up their time wait until the others had theirs.

All partitions of a process share one thread, and one message may take milliseconds to decide. A partition that has
decided for ``SLICE_NS`` goes to the end of this queue, and what comes for it meanwhile waits in its view; what comes
for another is decided at once. Long messages are decided in such turns from the first on. So many dear messages delay
those of other partitions by one decision, not by all of them. Order within a partition is never touched, and nothing
that is decided depends on any of this.

While messages are handed out no turn is given (``paused``), or the partition would have worked off its time before what
lies behind its next message was even seen.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Protocol

SLICE_NS = 5_000_000
"""Nanoseconds that a partition decides at a stretch; the decision under way is ended."""

LONG_BYTES = 16_384
"""Bytes of a message from which deciding it may take longer than a slice, so that its partition waits for its turn."""

ROOM = 2_000
"""Messages waiting for their partition's turn above which no more are read."""


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
    """The partitions that wait for their next turn, the first in line first."""

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
        """Put a partition at the end of the line, unless it is in it."""
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
        """Give turns until cancelled, one in each turn of the loop."""
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
