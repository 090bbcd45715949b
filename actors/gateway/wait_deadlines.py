"""The deadlines of waits, which are shortened once the process is stopping."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from math import isnan
from typing import Any, NamedTuple

from actors.gateway.external_events import InvalidInput

STALL_S = 0.2
"""Seconds. A deadline that is noticed later than this shows that this process stood still: paused, without processor
time, or writing into a pipe that nobody read."""

AFTER_STALL_S = 2.0
"""Seconds to read what has come meanwhile, before an answer counts as missing."""


class WaitDeadline(NamedTuple):
    """When something began and when it must be over, in the event loop's time."""

    begun: float
    until: float

    @property
    def waited(self) -> float:
        """Seconds since it began."""
        return asyncio.get_running_loop().time() - self.begun

    @property
    def left(self) -> float:
        """Seconds until it must be over; never negative."""
        return max(0.0, self.until - asyncio.get_running_loop().time())

    @property
    def stall_grace_s(self) -> float:
        """Seconds to wait beyond its end: some if the end was noticed late, because this process stood still."""
        return AFTER_STALL_S if asyncio.get_running_loop().time() - self.until > STALL_S else 0.0


Within = float | WaitDeadline
"""How long something may take: seconds from now on, or until a deadline that several steps share."""


def deadline_within(within: Within) -> WaitDeadline:
    """Return the deadline ``within`` seconds from now, or the one that was given.

    Raises:
        InvalidInput: it is not a number of seconds. NaN would never be over, and confuse the timers of the event loop.
    """
    if isinstance(within, WaitDeadline):
        return within
    if isnan(within):
        raise InvalidInput("a wait is nan seconds: give it a number of them")
    now = asyncio.get_running_loop().time()
    return WaitDeadline(now, now + within)


class WaitDeadlines:
    """The deadlines of all waits in progress."""

    def __init__(self) -> None:
        self._most_s: float | None = None
        self._timeouts: set[asyncio.Timeout] = set()
        self._waits: set[asyncio.Future[Any]] = set()

    @property
    def is_stopping(self) -> bool:
        """Whether this process is stopping."""
        return self._most_s is not None

    def shorten(self, seconds: float) -> None:
        """Let each wait, present or future, last at most ``seconds`` from now on: this process is stopping."""
        latest = asyncio.get_running_loop().time() + seconds
        self._most_s = seconds
        for timeout in self._timeouts:
            when = timeout.when()
            timeout.reschedule(latest if when is None else min(when, latest))

    def close(self) -> None:
        """Cancel all waits, since nothing is left to complete them."""
        for each in self._waits:
            each.cancel()

    @contextlib.asynccontextmanager
    async def cancelled_at_close(self, waiting: "asyncio.Future[Any]") -> AsyncIterator[None]:
        """While the block runs, have a wait cancelled when this is closed."""
        self._waits.add(waiting)
        try:
            yield
        finally:
            self._waits.discard(waiting)

    @contextlib.asynccontextmanager
    async def deadline(self, deadline: WaitDeadline) -> AsyncIterator[None]:
        """Raise TimeoutError in a block that is not done in time."""
        until = deadline.until
        if self._most_s is not None:
            until = min(until, asyncio.get_running_loop().time() + self._most_s)
        async with asyncio.timeout_at(until) as timeout:
            self._timeouts.add(timeout)
            try:
                yield
            finally:
                self._timeouts.discard(timeout)
