"""Telling that a broker is away: at once, then at growing intervals, however many attempts fail meanwhile."""

import time
from collections.abc import Callable

from events.loggers import get_logger

FIRST_S, MOST_S = 1.0, 60.0
"""Seconds between the first two lines about one absence, and at most between any two."""

LOGIN = "give a login that it knows, by --creds or --context"
"""What to do about a broker that answers, and refuses whoever asks."""

_logger = get_logger("neuraxis.broker")


def is_refused(detail: str) -> bool:
    """Whether a broker that could not be used is there, and does not know the login: by the client's words for it."""
    return "authorization violation" in detail.lower()


class Absence:
    """One connection's view of whether its broker is there.

    A client tries ten times a second. A line an attempt would bury everything else, and silence would look like work.

    Args:
        servers: Where the broker should be; without secrets.
        clock: Monotonic seconds.
    """

    def __init__(self, servers: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = servers
        self._clock = clock
        self._since: float | None = None
        self._next = 0.0
        self._interval = FIRST_S

    def failed(self, detail: str) -> None:
        """Take in that an attempt to reach the broker failed, and say so when it is time."""
        now = self._clock()
        if self._since is None:
            self._since, self._next, self._interval = now, now, FIRST_S
        if now < self._next:
            return
        self._next = now + self._interval
        self._interval = min(2 * self._interval, MOST_S)
        _logger.warning(
            "broker_unreachable",
            servers=self._servers,
            for_s=round(now - self._since, 1),
            detail=detail,
            remedy=f"{LOGIN if is_refused(detail) else 'start it, or name another with --nats'}; this process tries on",
        )

    def ended(self) -> None:
        """Take in that the broker is there."""
        self._since = None
