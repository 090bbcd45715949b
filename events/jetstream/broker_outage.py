"""Messages about a broker that does not answer: log lines, at once and then at growing intervals, and errors."""

import time
from collections.abc import Callable

from events.errors import Unavailable
from events.loggers import get_logger
from events.warning_backoff import WarningBackoff
from schemas.permissions import READ_ROOT

LOGIN = "give a login that it knows, by --creds or --context"
"""What to do about a broker that refuses the login."""

_REFUSALS = ("authorization violation", "authorization failed", "authentication expired", "authentication revoked")

_logger = get_logger("neuraxis.broker")


def is_refused(detail: str) -> bool:
    """Whether an error of the NATS client says that the broker refused the login."""
    return any(each in detail.lower() for each in _REFUSALS)


class BrokerOutage:
    """Whether one connection's broker is reachable, and when to log that it is not.

    A client tries ten times a second. A line for each attempt would hide all other lines, and no line would hide the
    problem.

    Args:
        servers: The broker's URLs, without secrets.
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


_INTERNAL_PREFIXES = ("$", "log.", "_INBOX.", "nx-")


def on_subject(subject: str) -> str:
    """Return ``on`` and the subject, for an error message; empty for an internal one, which means nothing to people."""
    return "" if subject.startswith(_INTERNAL_PREFIXES) else f" on {subject}"


def unserved(subject: str) -> Unavailable:
    """Return the error that says that nobody serves a subject now, and what to start."""
    if subject.startswith(f"{READ_ROOT}."):
        return Unavailable(
            "this login reads the log through the process of a ledger or a gateway, and none answers: start "
            "`neuraxis worker ledger`, or `neuraxis gateway`, through which effectors cannot read"
        )
    if subject.startswith(_INTERNAL_PREFIXES):
        return Unavailable("the broker does not serve or store this now: JetStream is off there, or not up yet")
    return Unavailable(f"nobody serves {subject} at the broker now")
