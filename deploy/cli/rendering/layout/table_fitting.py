"""Rows as a table that fits a width without cutting a word: columns without room go below another column. Pure.

A table that fits is shown as it is. Otherwise the widest column of prose is wrapped between words. Columns that leave
it too little room go below it, each value with its column's name. Only a path or an id that is wider than the terminal
is broken within.
"""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

MIN_PROSE_WIDTH = 30
"""Least width of a column of prose, in characters; to make room for it, other columns go below it."""

_GAP = 2
_MAX_SHORT_CELL = 16
"""Longest cell, in characters, that does not count as prose, and is not wrapped."""

Cells = Mapping[str, str]


def fitted_table(names: Sequence[str], rows: Sequence[Cells], width: int) -> Table:
    """Return a table of rows.

    Args:
        names: The columns, in order.
        rows: Text by column.
        width: Characters of a line.
    """
    headings = {name: name.replace("_", " ") for name in names}
    cells = {name: max(_cell_width(row[name]) for row in rows) for name in names}
    # First try with headings wrapped between words, before any column goes below another.
    for heading_width in (len, _word_width):
        widths = {name: max(heading_width(headings[name]), cells[name]) for name in names}
        if sum(widths.values()) + _GAP * (len(names) - 1) <= width:
            return _grid(names, rows, headings, widths)
    names = [name for name in names if any(row[name] for row in rows)]
    prose = max(names, key=lambda name: (_is_prose(rows, name), name != names[0], widths[name]))
    beside = [name for name in names if name != prose]
    below: list[str] = []
    while _width_left(beside, widths, width) < min(MIN_PROSE_WIDTH, widths[prose]) and beside:
        # Prose goes below first, then the widest column. The first column, which names the row, goes last.
        moved = max(beside, key=lambda name: (name != names[0], _is_prose(rows, name), widths[name]))
        beside.remove(moved)
        below.append(moved)
    widths[prose] = _width_left(beside, widths, width)
    moved_names = [name for name in names if name in below]
    stacked = [{**row, prose: _stacked(row, prose, moved_names, headings)} for row in rows]
    return _grid([name for name in names if name not in below], stacked, headings, widths)


def _grid(names: Sequence[str], rows: Sequence[Cells], headings: Cells, widths: Mapping[str, int]) -> Table:
    grid = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        grid.add_column(headings[name], overflow="fold", width=max(1, widths[name]))
    for row in rows:
        grid.add_row(*(Text(row[name]) for name in names))
    return grid


def _stacked(row: Cells, prose: str, below: Sequence[str], headings: Cells) -> str:
    """Return a cell with the cells that go below it; short ones share a line."""
    lines = [(f"{headings[name]}: {row[name]}", _is_prose([row], name)) for name in below if row[name]]
    short = ", ".join(text for text, long in lines if not long)
    return "\n".join(line for line in (row[prose], *(text for text, long in lines if long), short) if line)


def _width_left(beside: Sequence[str], widths: Mapping[str, int], width: int) -> int:
    return width - sum(widths[name] + _GAP for name in beside)


def _is_prose(rows: Sequence[Cells], name: str) -> bool:
    return any(len(row[name]) > _MAX_SHORT_CELL and " " in row[name] for row in rows)


def _cell_width(cell: str) -> int:
    return max(map(len, cell.splitlines()), default=0)


def _word_width(heading: str) -> int:
    return max(map(len, heading.split()), default=0)
