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
        # Key id -> requests that it may still send at once, and when that was counted.
        self._tokens: dict[str, tuple[float, float]] = {}

    def take(self, key: Key) -> int:
        """Count a request; return 0 if it may be served, else after how many seconds the key may send the next one."""
        if not key.per_minute:
            return 0
        now, per_second = self._clock(), key.per_minute / _MINUTE_S
        left, at = self._tokens.get(key.id, (float(key.per_minute), now))
        left = min(float(key.per_minute), left + (now - at) * per_second)
        if left < 1.0:
            self._tokens[key.id] = left, now
            return max(1, math.ceil((1.0 - left) / per_second))
        self._tokens[key.id] = left - 1.0, now
        return 0
