"""A circuit breaker: an endpoint that fails repeatedly is not called for a while, and its callers fail at once."""

import time
from collections.abc import Callable


class CircuitOpen(Exception):
    """The endpoint is not called now, because it failed too often recently."""


class Circuit:
    """Closed: calls pass. After ``failures`` in a row it opens for ``wait_s`` seconds. Then one call is the trial.

    During the trial it is half-open. If the trial succeeds, the circuit closes; if it fails, the circuit opens again.
    An outcome that says nothing about the endpoint (the caller disconnected) changes nothing.
    """

    def __init__(self, failures: int, wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = failures
        self._wait_s = wait_s
        self._clock = clock
        self._failures = 0
        self._opened_s: float | None = None
        self._trial_runs = False

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        if self._opened_s is None:
            return False
        return self._trial_runs or self._clock() - self._opened_s < self._wait_s

    def enter(self) -> bool:
        """Begin a call, which must end in one of the three methods below; returns whether it is the trial.

        Raises:
            CircuitOpen: it is open.
        """
        if self.is_open:
            raise CircuitOpen
        self._trial_runs = self._opened_s is not None
        return self._trial_runs

    def succeeded(self) -> None:
        """The endpoint answered, even if with a refusal."""
        self._failures, self._opened_s, self._trial_runs = 0, None, False

    def failed(self, is_trial: bool) -> None:
        """The endpoint did not answer, or is broken; ``is_trial`` is the result of :meth:`enter`."""
        self._failures += 1
        if is_trial or (self._opened_s is None and self._failures >= self._limit):
            self._opened_s = self._clock()
        self.abandoned(is_trial)

    def abandoned(self, is_trial: bool) -> None:
        """The call was given up for a reason that says nothing about the endpoint."""
        if is_trial:
            self._trial_runs = False
