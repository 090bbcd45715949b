"""When a batch beats single appends: from what either has cost lately on this broker.

A batch costs a single-node broker some milliseconds whatever its size. A single append costs a flush where the broker
flushes each (then two dozen of them cost as much as a batch), and a tenth of that where it does not.
"""

FEWEST, MOST = 24, 160
"""Bounds of the number of events from which a batch is preferred."""

TELLING = 8
"""Single appends at once from which their time tells what one more costs."""

_WEIGHT = 0.1
_SINGLE_S = 250e-6
_BATCH_S = 6e-3


class Pace:
    """Moving averages of what appends cost; seconds throughout."""

    def __init__(self) -> None:
        self._single = _SINGLE_S
        self._batch = _BATCH_S

    def took_single(self, seconds: float, in_flight: float) -> None:
        """Note a single append, one of ``in_flight`` at once: in that time as many are done.

        Few at once say nothing of a backlog, which would have many under way: they wait for the wire, not for each other.
        """
        if in_flight >= TELLING:
            self._single += _WEIGHT * (seconds / in_flight - self._single)

    def took_batch(self, seconds: float, events: int) -> None:
        """Note a batch. An event within it is taken to cost half of a single append; the rest is the batch's own."""
        fixed = max(0.0, seconds - events * self._single / 2)
        self._batch += _WEIGHT * (fixed - self._batch)

    @property
    def batch_from(self) -> int:
        """The number of waiting events from which one batch is done sooner than as many single appends."""
        if self._single <= 0:
            return MOST
        return min(MOST, max(FEWEST, round(self._batch / (self._single / 2))))
