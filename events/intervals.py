"""When to tell again of what lasts: at once, then at growing intervals, however often it is met meanwhile."""

import time
from collections.abc import Callable

FIRST_S, MOST_S = 1.0, 60.0
"""Seconds between the first two lines about one thing, and at most between any two."""


class Intervals:
    """Paces the lines about one thing that is met again and again.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._next = 0.0
        self._interval = FIRST_S

    @property
    def for_s(self) -> float:
        """For how many seconds it has lasted; 0 where it does not."""
        return 0.0 if self._since is None else self._clock() - self._since

    def is_due(self) -> bool:
        """Take in that it was met; return whether it is time to tell of it."""
        now = self._clock()
        if self._since is None:
            self._since, self._next, self._interval = now, now, FIRST_S
        if now < self._next:
            return False
        self._next = now + self._interval
        self._interval = min(2 * self._interval, MOST_S)
        return True

    def ended(self) -> None:
        """Take in that it is over."""
        self._since = None
