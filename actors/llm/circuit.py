"""A circuit breaker: an endpoint that fails repeatedly is not called for a while, and callers fail at once."""

import time
from collections.abc import Callable


class CircuitOpen(Exception):
    """The endpoint is not called now, because it failed too often recently."""


class Circuit:
    """Closed: calls pass. After ``failures`` in a row it opens for ``wait_s``. Then, half-open, one call is the trial.

    If the trial succeeds, the circuit closes; if it fails, the circuit opens again. An outcome that says nothing about
    the endpoint (the caller disconnected) changes nothing.
    """

    def __init__(self, failures: int, wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = failures
        self._wait_s = wait_s
        self._clock = clock
        self._failed = 0
        self._opened: float | None = None
        self._trying = False

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        if self._opened is None:
            return False
        return self._trying or self._clock() - self._opened < self._wait_s

    def enter(self) -> bool:
        """Begin a call, which must end in one of the three methods below; returns whether it is the trial.

        Raises:
            CircuitOpen: it is open.
        """
        if self.is_open:
            raise CircuitOpen
        self._trying = self._opened is not None
        return self._trying

    def succeeded(self) -> None:
        """The endpoint answered, even if with a refusal."""
        self._failed, self._opened, self._trying = 0, None, False

    def failed(self, trying: bool) -> None:
        """The endpoint did not answer, or is broken; ``trying`` is the result of :meth:`enter`."""
        self._failed += 1
        if trying or (self._opened is None and self._failed >= self._limit):
            self._opened = self._clock()
        self.abandoned(trying)

    def abandoned(self, trying: bool) -> None:
        """The call was given up for a reason that says nothing about the endpoint."""
        if trying:
            self._trying = False
