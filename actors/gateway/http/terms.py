"""How long requests wait, and that they wait less once their process is to stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple


class Term(NamedTuple):
    """When a request began, and when it must be answered, by the loop's time."""

    begun: float
    until: float

    @property
    def waited(self) -> float:
        """Seconds since it began."""
        return asyncio.get_running_loop().time() - self.begun

    @property
    def left(self) -> float:
        """Seconds until it must be answered, none at least."""
        return max(0.0, self.until - asyncio.get_running_loop().time())


class Terms:
    """The times of the requests under way; each waits ``wait_s`` seconds at most, all its steps together."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._deadlines: set[asyncio.Timeout] = set()

    def begin(self) -> Term:
        """Return the time of a request that begins now."""
        now = asyncio.get_running_loop().time()
        return Term(now, now + self._wait_s)

    def hurry(self, seconds: float) -> None:
        """Let those who wait do so for ``seconds`` more at most: this process is to stop."""
        latest = asyncio.get_running_loop().time() + seconds
        self._wait_s = min(self._wait_s, seconds)
        for deadline in self._deadlines:
            when = deadline.when()
            deadline.reschedule(latest if when is None else min(when, latest))

    @contextlib.asynccontextmanager
    async def deadline(self, term: Term) -> AsyncIterator[None]:
        """Raise TimeoutError in a block that is not done in time."""
        # A process that is to stop has given everybody less by now, perhaps.
        async with asyncio.timeout_at(min(term.until, self.begin().until)) as deadline:
            self._deadlines.add(deadline)
            try:
                yield
            finally:
                self._deadlines.discard(deadline)
