"""How long requests wait: each for so long from its beginning, and all of them shorter once the process is to stop."""

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
        """Seconds that are left of it; none once it is over."""
        return max(0.0, self.until - asyncio.get_running_loop().time())


class Terms:
    """The terms of the requests that are under way; ``wait_s``: seconds that a request waits for its answer."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._deadlines: set[asyncio.Timeout] = set()

    def begin(self) -> Term:
        """Return the term of a request that begins now, for all its steps together."""
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
        """Raise TimeoutError in the block once a term is over."""
        # A process that is to stop has given everybody less by now, perhaps.
        async with asyncio.timeout_at(min(term.until, self.begin().until)) as deadline:
            self._deadlines.add(deadline)
            try:
                yield
            finally:
                self._deadlines.discard(deadline)
