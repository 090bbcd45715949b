"""A persistent ordered set of due times.

Nearly all deadlines are removed before they are due. A heap would keep these until they reach its top. A balanced
binary tree copies a path of seventeen nodes at 100,000 entries. Here the entries lie in sorted spans of at most
``SPAN_LENGTH`` (more only if due times are equal), each with the least due time that it may hold. Adding and removing
copy one short tuple. The list of spans is copied only when a span is made or emptied: where deadlines come in order, at
most once in ``SPAN_LENGTH`` of them.
"""

from bisect import bisect_left, bisect_right

import msgspec

from schemas.persistent import Map

SPAN_LENGTH = 32
"""Most entries of a span before it is split. Measured at 100,000 entries: 128 costs twice as much, by cache misses."""

DueEntry = tuple[int, str, str]
"""(due time in Unix nanoseconds, id of the message that set it, exchange): ordered by due time, then id."""


class Schedule(msgspec.Struct, frozen=True, gc=False):
    """Entries in order.

    ``starts`` are ascending; the span of ``starts[i]`` holds the entries due from there up to ``starts[i + 1]``. No
    span is empty.
    """

    starts: tuple[int, ...] = ()
    spans: Map[int, tuple[DueEntry, ...]] = Map()

    def first(self) -> DueEntry | None:
        """Return the earliest entry, or None when there is none."""
        return self.spans[self.starts[0]][0] if self.starts else None

    def add(self, entry: DueEntry) -> "Schedule":
        """Return the schedule with ``entry``, which it must not hold yet."""
        due = entry[0]
        if not self.starts or due < self.starts[0]:
            return self._add_before(due, entry)
        at = bisect_right(self.starts, due) - 1
        start = self.starts[at]
        span = self.spans[start]
        if len(span) >= SPAN_LENGTH and at == len(self.starts) - 1 and due > span[-1][0]:
            # Deadlines mostly come in order: a new span at the end leaves the others full.
            return Schedule((*self.starts, due), self.spans.set(due, (entry,)))
        index = bisect_left(span, entry)
        entries = (*span[:index], entry, *span[index:])
        return (
            self._split(at, entries)
            if len(entries) > SPAN_LENGTH
            else Schedule(self.starts, self.spans.set(start, entries))
        )

    def remove(self, entry: DueEntry) -> "Schedule":
        """Return the schedule without ``entry``; the same when it does not hold it."""
        at = bisect_right(self.starts, entry[0]) - 1
        if at < 0:
            return self
        start = self.starts[at]
        span = self.spans[start]
        index = bisect_left(span, entry)
        if index == len(span) or span[index] != entry:
            return self
        if len(span) > 1:
            return Schedule(self.starts, self.spans.set(start, span[:index] + span[index + 1 :]))
        return Schedule(self.starts[:at] + self.starts[at + 1 :], self.spans.delete(start))

    def __len__(self) -> int:
        return sum(len(span) for span in self.spans.values())

    def _add_before(self, due: int, entry: DueEntry) -> "Schedule":
        """Add an entry due before every start: to the first span while it has room, which then starts with it."""
        if not self.starts:
            return Schedule((due,), self.spans.set(due, (entry,)))
        start = self.starts[0]
        span = self.spans[start]
        if len(span) >= SPAN_LENGTH:
            return Schedule((due, *self.starts), self.spans.set(due, (entry,)))
        return Schedule((due, *self.starts[1:]), self.spans.delete(start).set(due, (entry, *span)))

    def _split(self, at: int, span: tuple[DueEntry, ...]) -> "Schedule":
        start = self.starts[at]
        middle_due = span[len(span) // 2][0]
        # Entries of one due time stay together, since the due time alone leads to the span.
        index = bisect_left(span, middle_due, key=_due) or bisect_right(span, middle_due, key=_due)
        if index == len(span):
            return Schedule(self.starts, self.spans.set(start, span))
        boundary_due = span[index][0]
        starts = (*self.starts[: at + 1], boundary_due, *self.starts[at + 1 :])
        return Schedule(starts, self.spans.set(start, span[:index]).set(boundary_due, span[index:]))


def _due(entry: DueEntry) -> int:
    return entry[0]
