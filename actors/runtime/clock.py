"""The two clocks that the runtime may read; deciders read none."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time and elapsed time; simulations provide their own."""

    def now_ns(self) -> int:
        """Return the wall time, Unix nanoseconds."""
        ...

    def elapsed_ns(self) -> int:
        """Return a monotonic count of nanoseconds, for measuring."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ns(self) -> int:
        """Return the wall time, Unix nanoseconds."""
        return time.time_ns()

    def elapsed_ns(self) -> int:
        """Return a monotonic count of nanoseconds, for measuring."""
        return time.perf_counter_ns()
