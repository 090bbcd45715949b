"""Exponential decay in integers, which gives the same bits on every machine; powers of floats may not."""

from functools import lru_cache
from math import isqrt

MICRO = 1_000_000
"""Millionths in one."""

_PRECISION = 60
"""Shares are integers in units of two to the power of minus this."""

_STEPS = 16
"""A half-life is divided into two to the power of this many steps."""


def _roots() -> tuple[int, ...]:
    """Return the square root of a half, the root of that, and so on, in units of two to the power of -60."""
    found = []
    share = 1 << (_PRECISION - 1)
    for _ in range(_STEPS):
        share = isqrt(share << _PRECISION)
        found.append(share)
    return tuple(found)


_ROOTS = _roots()


@lru_cache(maxsize=1024)
def decayed(strength: int, elapsed_ns: int, half_life_ns: int) -> int:
    """Return what is left of a strength after decay, rounded down; time that runs backwards changes nothing.

    It is cached: terms that an agent remembers share the exchanges in which they occurred, so the same age is asked for
    again and again.

    The result never grows with time: each step lowers the share by about one in a hundred thousand, far more than
    rounding.
    """
    if elapsed_ns <= 0:
        return strength
    halvings, rest_ns = divmod(elapsed_ns, half_life_ns)
    steps = (rest_ns << _STEPS) // half_life_ns
    share = 1 << _PRECISION
    for index, root in enumerate(_ROOTS):
        if steps >> (_STEPS - 1 - index) & 1:
            share = share * root >> _PRECISION
    return strength * share >> (_PRECISION + halvings)
