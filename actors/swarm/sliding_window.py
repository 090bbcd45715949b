"""Counts over a sliding window of time, in slices: the cost of a count does not depend on the window. Pure."""

import msgspec

from schemas.persistent import Map


class Slice(msgspec.Struct, frozen=True):
    """What was counted from ``start_ns`` (Unix nanoseconds) on, until the next slice."""

    start_ns: int
    counts: Map[str, int]


class Window(msgspec.Struct, frozen=True):
    """The current slice, from ``start_ns`` to before ``end_ns``; the closed slices that are not empty, and their sum.

    Counting changes only the current slice. No count is stored as zero.
    """

    start_ns: int = 0
    end_ns: int = 0
    counts: Map[str, int] = Map()
    closed: tuple[Slice, ...] = ()
    closed_sum: Map[str, int] = Map()

    def add(self, name: str, count: int = 1) -> "Window":
        """Return the window with ``count`` more of ``name``."""
        if count <= 0:
            return self
        counts = self.counts.set(name, self.counts.get(name, 0) + count)
        return Window(self.start_ns, self.end_ns, counts, self.closed, self.closed_sum)

    def count_of(self, name: str) -> int:
        """Return how many of ``name`` the window holds."""
        return self.closed_sum.get(name, 0) + self.counts.get(name, 0)

    def move_to(self, now_ns: int, width_ns: int, slices: int) -> "Window":
        """Return the window of ``slices`` slices of ``width_ns`` each, the last of which contains ``now_ns``.

        A time before the current slice (the server's clock was set back) leaves the window as it is.
        """
        if now_ns < self.end_ns:
            return self
        start_ns = now_ns // width_ns * width_ns
        closed, closed_sum = self.closed, self.closed_sum
        if self.counts:
            closed = (*closed, Slice(self.start_ns, self.counts))
            closed_sum = _sum(closed_sum, self.counts, 1)
        oldest_ns = start_ns - (slices - 1) * width_ns
        for each in closed:
            if each.start_ns < oldest_ns:
                closed_sum = _sum(closed_sum, each.counts, -1)
        kept = tuple(each for each in closed if each.start_ns >= oldest_ns)
        return Window(start_ns, start_ns + width_ns, Map(), kept, closed_sum)


def _sum(total: Map[str, int], counts: Map[str, int], factor: int) -> Map[str, int]:
    for name, count in counts.items():
        changed = total.get(name, 0) + factor * count
        total = total.set(name, changed) if changed else total.delete(name)
    return total
