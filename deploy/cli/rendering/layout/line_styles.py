"""Styles for the lines of a drawing, so that coinciding lines all show: each is narrower than the last. Pure."""

from typing import Any

_WIDEST, _NARROWEST = 4.2, 1.3
_MARKERS = ("o", "s", "^", "D", "v", "P")


def line_style(place: int, count: int, *, marked: bool = True) -> dict[str, Any]:
    """Return the arguments for matplotlib's ``plot`` of line number ``place`` of ``count``, drawn in that order.

    Each line is narrower than the one before and has a marker of its own.
    """
    share = place / max(1, count - 1)
    width = _WIDEST + (_NARROWEST - _WIDEST) * share
    line = {"linewidth": width, "zorder": 2 + share, "solid_capstyle": "round"}
    return {**line, "marker": _MARKERS[place % len(_MARKERS)], "markersize": width + 4} if marked else line
