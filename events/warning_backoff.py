"""Limits how often a lasting problem is logged: at once, then at growing intervals."""

import time
from collections.abc import Callable

FIRST_S, MAX_INTERVAL_S = 1.0, 60.0
"""Seconds between the first two lines about one problem, and the longest interval between any two."""


class WarningBackoff:
    """Limits the log lines about one problem that occurs again and again.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._next = 0.0
        self._interval = FIRST_S

    @property
    def lasted_s(self) -> float:
        """For how many seconds the problem has lasted; 0 if there is none."""
        return 0.0 if self._since is None else self._clock() - self._since

    def is_due(self) -> bool:
        """Note that the problem occurred; return whether it is time to log it."""
        now = self._clock()
        if self._since is None:
            self._since, self._next, self._interval = now, now, FIRST_S
        if now < self._next:
            return False
        self._next = now + self._interval
        self._interval = min(2 * self._interval, MAX_INTERVAL_S)
        return True

    def ended(self) -> None:
        """Note that the problem is over."""
        self._since = None
