"""The rate limit of each key: a token bucket that refills as time passes."""

import math
import time
from collections.abc import Callable

from actors.gateway.http.keys.key import Key

_MINUTE_S = 60.0


class Rates:
    """Counts the requests of keys that have a limit.

    Litestar's own limit (``RateLimitMiddleware``) has one rate for all keys, and stores the time of every request.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: Key) -> int:
        """Count a request; return 0, or after how many seconds the key may send the next one."""
        if not key.per_minute:
            return 0
        now, a_second = self._clock(), key.per_minute / _MINUTE_S
        left, at = self._left.get(key.id, (float(key.per_minute), now))
        left = min(float(key.per_minute), left + (now - at) * a_second)
        if left < 1.0:
            self._left[key.id] = left, now
            return max(1, math.ceil((1.0 - left) / a_second))
        self._left[key.id] = left - 1.0, now
        return 0
