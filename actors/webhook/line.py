"""The way to one receiver: one call at a time, and a queue of alerts that wait for theirs, bounded while it is down."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Line:
    """The way to a receiver.

    Args:
        places: Alerts that may wait while the receiver is down.

    Attributes:
        open_ns: When the receiver wants to be called again (Unix nanoseconds); it is not called before.
    """

    def __init__(self, places: int) -> None:
        self.open_ns = 0
        self._places = places
        self._turn = asyncio.Lock()
        self._down = False
        self._waiting: dict[asyncio.Timeout, None] = {}

    @asynccontextmanager
    async def joined(self, limit: asyncio.Timeout) -> AsyncIterator[None]:
        """Have the turn for the block, after all who came before; ``limit`` is the caller's, entered."""
        self._waiting[limit] = None
        self._give_way()
        try:
            await self._turn.acquire()
        finally:
            self._waiting.pop(limit, None)
        try:
            yield
        finally:
            self._turn.release()

    def went_down(self) -> None:
        """Note that the receiver does not take what it is sent for the moment."""
        self._down = True
        self._give_way()

    def answered(self) -> None:
        """Note that the receiver answers."""
        self._down = False

    def _give_way(self) -> None:
        """End the limits of those that have waited longest, where a receiver that is down has too many waiting.

        The latest stay: an end whose beginning a receiver was never told of does less harm than the other way round.
        """
        while self._down and len(self._waiting) > self._places:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())
