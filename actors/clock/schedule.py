"""A persistent ordered set of due times.

Nearly all deadlines are removed before they are due. A heap would keep these until they reach its top. A balanced
binary tree copies a path of seventeen nodes at 100,000 entries. Here the entries lie in sorted spans of at most
``SPAN`` (more only if due times are equal), each with the least due time that it may hold. Adding and removing copy
one short tuple. The list of spans is copied only when a span is made or emptied: where deadlines come in order, at
most once in ``SPAN`` of them.
"""

from bisect import bisect_left, bisect_right

import msgspec

from schemas.persistent import Map

SPAN = 32
"""Places a span may hold before it is split. Measured: 128 costs twice as much at 100,000 places, by cache misses."""

Place = tuple[int, str, str]
"""(due time in Unix nanoseconds, id of the message that set it, exchange): ordered by due time, then id."""


class Schedule(msgspec.Struct, frozen=True, gc=False):
    """Places in order.

    ``starts`` are ascending; the span of ``starts[i]`` holds the places due from there up to ``starts[i + 1]``. No
    span is empty.
    """

    starts: tuple[int, ...] = ()
    spans: Map[int, tuple[Place, ...]] = Map()

    def first(self) -> Place | None:
        """Return the earliest place, or None when there is none."""
        return self.spans[self.starts[0]][0] if self.starts else None

    def add(self, place: Place) -> "Schedule":
        """Return the schedule with ``place``, which it must not hold yet."""
        due = place[0]
        if not self.starts or due < self.starts[0]:
            return self._add_before(due, place)
        at = bisect_right(self.starts, due) - 1
        start = self.starts[at]
        span = self.spans[start]
        if len(span) >= SPAN and at == len(self.starts) - 1 and due > span[-1][0]:
            # Deadlines mostly come in order: a new span at the end leaves the others full.
            return Schedule((*self.starts, due), self.spans.set(due, (place,)))
        index = bisect_left(span, place)
        grown = (*span[:index], place, *span[index:])
        return self._split(at, grown) if len(grown) > SPAN else Schedule(self.starts, self.spans.set(start, grown))

    def remove(self, place: Place) -> "Schedule":
        """Return the schedule without ``place``; the same when it does not hold it."""
        at = bisect_right(self.starts, place[0]) - 1
        if at < 0:
            return self
        start = self.starts[at]
        span = self.spans[start]
        index = bisect_left(span, place)
        if index == len(span) or span[index] != place:
            return self
        if len(span) > 1:
            return Schedule(self.starts, self.spans.set(start, span[:index] + span[index + 1 :]))
        return Schedule(self.starts[:at] + self.starts[at + 1 :], self.spans.delete(start))

    def __len__(self) -> int:
        return sum(len(span) for span in self.spans.values())

    def _add_before(self, due: int, place: Place) -> "Schedule":
        """Add a place due before every start: to the first span while it has room, which then starts with it."""
        if not self.starts:
            return Schedule((due,), self.spans.set(due, (place,)))
        start = self.starts[0]
        span = self.spans[start]
        if len(span) >= SPAN:
            return Schedule((due, *self.starts), self.spans.set(due, (place,)))
        return Schedule((due, *self.starts[1:]), self.spans.delete(start).set(due, (place, *span)))

    def _split(self, at: int, span: tuple[Place, ...]) -> "Schedule":
        start = self.starts[at]
        middle = span[len(span) // 2][0]
        # Places of one due time stay together, since the due time alone leads to the span.
        index = bisect_left(span, middle, key=_due) or bisect_right(span, middle, key=_due)
        if index == len(span):
            return Schedule(self.starts, self.spans.set(start, span))
        boundary = span[index][0]
        starts = (*self.starts[: at + 1], boundary, *self.starts[at + 1 :])
        return Schedule(starts, self.spans.set(start, span[:index]).set(boundary, span[index:]))


def _due(place: Place) -> int:
    return place[0]
