"""Logging that a broker is away: at once, then at growing intervals, however many attempts fail meanwhile."""

import time
from collections.abc import Callable

from events.loggers import get_logger
from events.warning_backoff import WarningBackoff

LOGIN = "give a login that it knows, by --creds or --context"
"""What to do about a broker that answers, and refuses whoever asks."""

_logger = get_logger("neuraxis.broker")


def is_refused(detail: str) -> bool:
    """Whether a broker that could not be used is there, and does not know the login: by the client's words for it."""
    return "authorization violation" in detail.lower()


class BrokerOutage:
    """One connection's view of whether its broker is there.

    A client tries ten times a second. A line an attempt would bury everything else, and silence would look like work.

    Args:
        servers: Where the broker should be; without secrets.
        clock: Monotonic seconds.
    """

    def __init__(self, servers: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = servers
        self._intervals = WarningBackoff(clock)

    def failed(self, detail: str) -> None:
        """Note that an attempt to reach the broker failed, and log it when that is due."""
        if not self._intervals.is_due():
            return
        _logger.warning(
            "broker_unreachable",
            servers=self._servers,
            for_s=round(self._intervals.lasted_s, 1),
            detail=detail,
            remedy=f"{LOGIN if is_refused(detail) else 'start it, or name another with --nats'}; this process tries on",
        )

    def ended(self) -> None:
        """Note that the broker was reached."""
        self._intervals.ended()
