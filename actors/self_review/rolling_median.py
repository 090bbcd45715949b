"""Median and median absolute deviation of a window that is kept sorted, without sorting or scanning it. Pure.

In a sorted window, the values nearest to the median are contiguous. So the deviations need not be computed one by one:
bisection finds the span that holds the nearest half of the values.
"""

from bisect import bisect_left, insort

Ordered = tuple[float, ...]
"""Values from the lowest to the highest."""


def replaced_in_order(ordered: Ordered, removed: float | None, added: float) -> Ordered:
    """Return the window with ``added`` added and ``removed`` removed (None: nothing is removed)."""
    values = list(ordered)
    if removed is not None:
        del values[bisect_left(values, removed)]
    insort(values, added)
    return tuple(values)


def median(ordered: Ordered) -> float:
    """Return the middle value, or the mean of the two middle ones; 0 for an empty window."""
    count = len(ordered)
    if not count:
        return 0.0
    if count % 2:
        return ordered[count // 2]
    return (ordered[count // 2 - 1] + ordered[count // 2]) / 2


def deviation(ordered: Ordered) -> float:
    """Return the median absolute deviation from the median; 0 for an empty window."""
    count, middle = len(ordered), median(ordered)
    if not count:
        return 0.0
    upper = _nearest(ordered, middle, count // 2 + 1)
    return upper if count % 2 else (_nearest(ordered, middle, count // 2) + upper) / 2


def normalised(value: float, middle: float, spread: float, floor: float) -> float:
    """Return how many deviations (``spread``) a value lies above the median; ``floor`` prevents a division by zero."""
    return (value - middle) / (spread + floor)


def _nearest(ordered: Ordered, middle: float, rank: int) -> float:
    """Return the distance to ``middle`` of the value that is ``rank``-th nearest to it, counted from 1."""
    low, high = 0, len(ordered) - rank
    while low < high:
        start = (low + high) // 2
        if middle - ordered[start] > ordered[start + rank] - middle:
            low = start + 1
        else:
            high = start
    return max(middle - ordered[low], ordered[low + rank - 1] - middle)
