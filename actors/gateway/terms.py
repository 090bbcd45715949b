"""How long waits last, and that they last less once their process is to stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple


class Term(NamedTuple):
    """When something began, and when it must be over, by the loop's time."""

    begun: float
    until: float

    @property
    def waited(self) -> float:
        """Seconds since it began."""
        return asyncio.get_running_loop().time() - self.begun

    @property
    def left(self) -> float:
        """Seconds until it must be over, none at least."""
        return max(0.0, self.until - asyncio.get_running_loop().time())


Within = float | Term
"""How long something may take: seconds from now on, or what is left of a term that several steps share."""


def term_of(within: Within) -> Term:
    """Return the term that begins now, or the one that was given."""
    if isinstance(within, Term):
        return within
    now = asyncio.get_running_loop().time()
    return Term(now, now + within)


class Terms:
    """The deadlines of the waits under way."""

    def __init__(self) -> None:
        self._most: float | None = None
        self._deadlines: set[asyncio.Timeout] = set()
        self._waits: set[asyncio.Future[Any]] = set()

    @property
    def hurried(self) -> bool:
        """Whether this process is to stop."""
        return self._most is not None

    def hurry(self, seconds: float) -> None:
        """Let each wait last ``seconds`` more at most, and those that begin later as long: this process is to stop."""
        latest = asyncio.get_running_loop().time() + seconds
        self._most = seconds
        for deadline in self._deadlines:
            when = deadline.when()
            deadline.reschedule(latest if when is None else min(when, latest))

    def close(self) -> None:
        """Cancel what is waited for: nobody is left to keep it going."""
        for each in self._waits:
            each.cancel()

    @contextlib.asynccontextmanager
    async def cancelled_at_close(self, waiting: "asyncio.Future[Any]") -> AsyncIterator[None]:
        """Have a wait cancelled that is under way when this is closed, for the length of the block."""
        self._waits.add(waiting)
        try:
            yield
        finally:
            self._waits.discard(waiting)

    @contextlib.asynccontextmanager
    async def deadline(self, term: Term) -> AsyncIterator[None]:
        """Raise TimeoutError in a block that is not done in time."""
        until = term.until
        if self._most is not None:
            until = min(until, asyncio.get_running_loop().time() + self._most)
        async with asyncio.timeout_at(until) as deadline:
            self._deadlines.add(deadline)
            try:
                yield
            finally:
                self._deadlines.discard(deadline)
