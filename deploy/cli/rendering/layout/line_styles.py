"""How the lines of a drawing are told apart where they coincide: the first is the widest, the next lies on it. Pure."""

from typing import Any

_WIDEST, _NARROWEST = 4.2, 1.3
_MARKERS = ("o", "s", "^", "D", "v", "P")


def line_style(place: int, count: int, *, marked: bool = True) -> dict[str, Any]:
    """Return how to draw the line at ``place`` of ``count`` lines, drawn in that order, for matplotlib's ``plot``.

    Each is narrower than the one before and has a marker of its own, so that of lines with the same values all show.
    """
    share = place / max(1, count - 1)
    width = _WIDEST + (_NARROWEST - _WIDEST) * share
    line = {"linewidth": width, "zorder": 2 + share, "solid_capstyle": "round"}
    return {**line, "marker": _MARKERS[place % len(_MARKERS)], "markersize": width + 4} if marked else line
