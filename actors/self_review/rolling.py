"""Median and median absolute deviation of a window that is kept in order: no sorting, no scan. Pure.

The nearest values to the median lie side by side in an ordered window, so the deviations need not be written out: the
span that holds the nearest half of them is found by halving.
"""

from bisect import bisect_left, insort

Ordered = tuple[float, ...]
"""Values from the lowest to the highest."""


def replaced(ordered: Ordered, gone: float | None, come: float) -> Ordered:
    """Return the window with one value more, and without ``gone``, which is in it, unless that is None."""
    values = list(ordered)
    if gone is not None:
        del values[bisect_left(values, gone)]
    insort(values, come)
    return tuple(values)


def median(ordered: Ordered) -> float:
    """Return the middle value, or the mean of the two; 0 of nothing."""
    count = len(ordered)
    if not count:
        return 0.0
    if count % 2:
        return ordered[count // 2]
    return (ordered[count // 2 - 1] + ordered[count // 2]) / 2


def deviation(ordered: Ordered) -> float:
    """Return the median absolute deviation from the median; 0 of nothing."""
    count, middle = len(ordered), median(ordered)
    if not count:
        return 0.0
    upper = _nearest(ordered, middle, count // 2 + 1)
    return upper if count % 2 else (_nearest(ordered, middle, count // 2) + upper) / 2


def normalised(value: float, middle: float, spread: float, floor: float) -> float:
    """Return how many deviations a value lies above the median."""
    return (value - middle) / (spread + floor)


def _nearest(ordered: Ordered, middle: float, rank: int) -> float:
    """Return the distance of the value that is the ``rank``-th nearest to ``middle``, counted from 1."""
    low, high = 0, len(ordered) - rank
    while low < high:
        start = (low + high) // 2
        if middle - ordered[start] > ordered[start + rank] - middle:
            low = start + 1
        else:
            high = start
    return max(middle - ordered[low], ordered[low + rank - 1] - middle)
