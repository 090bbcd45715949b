"""Limits how often a lasting problem is logged: at once, then at growing intervals."""

import time
from collections.abc import Callable

FIRST_S, MAX_INTERVAL_S = 1.0, 60.0
"""Seconds between the first two lines about one problem, and the longest interval between any two."""

OVER_S = 2 * MAX_INTERVAL_S
"""Seconds without an occurrence after which a problem known by its text is over."""

MOST_PROBLEMS = 64
"""Most problems that are distinguished by their texts at a time."""


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


class SharedWarningBackoff:
    """Limits the log lines about problems that many parts of a process meet alike, such as all readers of a connection.

    A problem is known by its text. It is logged once for all who meet it, and is over when nobody has met it for
    :data:`OVER_S`, since none of them can tell that it is over for the others.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._problems: dict[str, tuple[WarningBackoff, float]] = {}  # text -> its intervals, when it occurred last

    def is_due(self, text: str) -> bool:
        """Note that a problem occurred; return whether it is time to log it."""
        now = self._clock()
        self._problems = {each: found for each, found in self._problems.items() if now - found[1] < OVER_S}
        backoff = self._problems.pop(text, (WarningBackoff(self._clock), now))[0]
        self._problems[text] = backoff, now
        if len(self._problems) > MOST_PROBLEMS:
            del self._problems[next(iter(self._problems))]
        return backoff.is_due()
