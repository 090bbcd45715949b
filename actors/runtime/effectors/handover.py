"""Leaving requests to workers that may know better: of a newer release, or of a configuration with one receiver more.

While workers are started again one after another, those of before compete for requests that only those of after can
answer. A failure that one of them recorded would be the request's only answer. So it gives such a request back, for a
while, and records the failure only when nobody else has taken it.
"""

import msgspec

from actors.runtime.clock import Clock

_FIRST_S, _MOST_S = 0.1, 2.0
_MOST = 1_000
"""Requests that are remembered; most were taken by others, which nobody tells."""

_NS_PER_S = 1_000_000_000


class _Left(msgspec.Struct):
    """Since when a request was left to others, and how often."""

    since_ns: int
    times: int = 0


class Handover:
    """Remembers which requests were left to others.

    Args:
        clock: Measures for how long.
        patience_s: Seconds for which a request is left to others.
    """

    def __init__(self, clock: Clock, patience_s: float) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._left: dict[tuple[str, int], _Left] = {}
        self._in_vain: dict[str, int] = {}

    def pause_s(self, kind: str, seq: int, stored_ns: int) -> float:
        """Return the seconds after which a request is to be tried again, 0 where nobody else has taken it.

        Where nobody has taken one request of a kind, those that were stored before that are not left to others: they
        would wait one after another. Whoever makes a later one knows its kind.

        Args:
            kind: What it takes to know.
            seq: The request's sequence.
            stored_ns: When it was stored, Unix nanoseconds.
        """
        if stored_ns <= self._in_vain.get(kind, -1):
            return 0.0
        now_ns = self._clock.elapsed_ns()
        left = self._left.setdefault((kind, seq), _Left(now_ns))
        if len(self._left) > _MOST:
            del self._left[next(iter(self._left))]  # others have taken it, most likely
        if now_ns - left.since_ns >= self._patience_s * _NS_PER_S:
            self._in_vain[kind] = self._clock.now_ns()
            self._left.pop((kind, seq), None)
            return 0.0
        left.times += 1
        return min(_FIRST_S * 2.0 ** min(left.times - 1, 8), _MOST_S)
