"""Piecewise linear functions, given by their points (*knots*). Pure."""

from itertools import pairwise

Knots = tuple[tuple[float, float], ...]
"""Points (argument, value), by ascending argument: linear between them, constant outside.

Two points with the same argument are a step; at that argument itself the first of them counts.
"""


def interpolated(knots: Knots, argument: float) -> float:
    """Return the value of a piecewise linear function."""
    if argument <= knots[0][0]:
        return knots[0][1]
    for (left, low), (right, high) in pairwise(knots):
        if argument <= right:
            return low + (high - low) * (argument - left) / (right - left)
    return knots[-1][1]
