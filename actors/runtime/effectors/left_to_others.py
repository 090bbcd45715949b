"""Leaves requests to other workers that may be able to answer them: of a newer release, or with newer configuration.

During a rolling restart, old workers compete for requests that only new workers can answer. If an old worker recorded a
failure, that failure would be the request's only answer. So an old worker gives such a request back to the queue for
some time. It records the failure only if no other worker has taken the request by then.
"""

import msgspec

from actors.runtime.clock import Clock

NEWER_S = 10.0
"""Seconds for which a message of a newer release is left to newer workers: longer than a worker takes to start."""

_FIRST_S, _MOST_S = 0.1, 2.0
"""First and longest pause before a request is tried again, in seconds."""

_MOST = 1_000
"""Most requests that are remembered. Other workers have taken most of them, but nothing reports that to this one."""

_NS_PER_S = 1_000_000_000


class _Left(msgspec.Struct):
    """Since when a request has been left to others, and how often."""

    since_ns: int
    times: int = 0


class LeftToOthers:
    """Remembers which requests were left to others.

    Args:
        clock: Measures for how long.
        patience_s: Seconds for which a request is left to other workers.
    """

    def __init__(self, clock: Clock, patience_s: float) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._left: dict[tuple[str, int], _Left] = {}
        self._not_taken_at: dict[str, int] = {}  # kind -> when a request of it was found not to be taken

    def pause_s(self, kind: str, seq: int, stored_ns: int) -> float:
        """Return after how many seconds a request is to be tried again; 0 where no other worker has taken it.

        If nobody has taken one request of a kind, requests of that kind that were stored before are not left to others
        either: otherwise each would wait in turn. A request that is stored later is left to others again: the process
        that made it knows the kind, so a newer release runs.

        Args:
            kind: Equal for requests that the same workers can answer.
            seq: The request's sequence.
            stored_ns: When it was stored, Unix nanoseconds.
        """
        if stored_ns <= self._not_taken_at.get(kind, -1):
            return 0.0
        now_ns = self._clock.elapsed_ns()
        left = self._left.setdefault((kind, seq), _Left(now_ns))
        if len(self._left) > _MOST:
            del self._left[next(iter(self._left))]  # the oldest: others have most likely taken it
        if now_ns - left.since_ns >= self._patience_s * _NS_PER_S:
            self._not_taken_at[kind] = self._clock.now_ns()
            self._left.pop((kind, seq), None)
            return 0.0
        left.times += 1
        return min(_FIRST_S * 2.0 ** min(left.times - 1, 8), _MOST_S)
