"""Styles for the lines of a drawing: each is narrower than the one before, so that coinciding lines all show. Pure."""

from collections.abc import Mapping
from typing import Any

MODE_COLOURS: Mapping[str, str] = {
    "RESPOND": "#0072b2",
    "CLARIFY": "#e69f00",
    "ACT": "#009e73",
    "ACKNOWLEDGE": "#cc79a7",
    "IGNORE": "#555555",
}
"""Mode -> the colour of its line in every drawing."""

_WIDEST, _NARROWEST = 4.2, 1.3  # in points
_MARKERS = ("o", "s", "^", "D", "v", "P")


def line_style(index: int, count: int, *, marked: bool = True) -> dict[str, Any]:
    """Return the arguments for matplotlib's ``plot`` of line number ``index`` of ``count``, drawn in that order.

    Each line is narrower than the one before and has a marker of its own.
    """
    share = index / max(1, count - 1)
    width = _WIDEST + (_NARROWEST - _WIDEST) * share
    line = {"linewidth": width, "zorder": 2 + share, "solid_capstyle": "round"}
    return {**line, "marker": _MARKERS[index % len(_MARKERS)], "markersize": width + 4} if marked else line
