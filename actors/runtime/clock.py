"""The two clocks that the runtime may read; deciders read none."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time and elapsed time; simulations provide their own."""

    def now_ns(self) -> int:
        """Return the wall time, Unix nanoseconds."""

    def elapsed_ns(self) -> int:
        """Return a monotonic count of nanoseconds, for measuring."""


class SystemClock:
    """The machine's clocks. Each is read several times a decision, so these are ``time``'s own functions."""

    now_ns = staticmethod(time.time_ns)
    elapsed_ns = staticmethod(time.perf_counter_ns)
