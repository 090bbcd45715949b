"""Rows as a table that fits a width without cutting a word: what has no room stands below what has. Pure.

A table that fits is shown as it is. In a narrower one the widest column of prose is wrapped by words, and columns that
leave it too little room stand below it, each value with its column's name. A path or an id that is wider than all there
is is the only thing that is ever folded.
"""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

LEAST = 30
"""Characters that prose needs to be read; with less, other columns give way."""

_GAP = 2
_SHORT = 16
"""Cells up to this long are no prose: they are not wrapped."""

Cells = Mapping[str, str]


def fitted_table(names: Sequence[str], rows: Sequence[Cells], width: int) -> Table:
    """Return a table of rows.

    Args:
        names: The columns, in order.
        rows: Text by column.
        width: Characters of a line.
    """
    headings = {name: name.replace("_", " ") for name in names}
    cells = {name: max(_line(row[name]) for row in rows) for name in names}
    # A heading is broken between its words before any column has to go.
    for of_heading in (len, _longest):
        wide = {name: max(of_heading(headings[name]), cells[name]) for name in names}
        if sum(wide.values()) + _GAP * (len(names) - 1) <= width:
            return _grid(names, rows, headings, wide)
    names = [name for name in names if any(row[name] for row in rows)]
    prose = max(names, key=lambda name: (_is_prose(rows, name), name != names[0], wide[name]))
    beside = [name for name in names if name != prose]
    below: list[str] = []
    while _room(beside, wide, width) < min(LEAST, wide[prose]) and beside:
        # Prose goes first, then what is widest; the first column says what the row is about, and goes last.
        gone = max(beside, key=lambda name: (name != names[0], _is_prose(rows, name), wide[name]))
        beside.remove(gone)
        below.append(gone)
    wide[prose] = _room(beside, wide, width)
    under = [name for name in names if name in below]
    stacked = [{**row, prose: _stacked(row, prose, under, headings)} for row in rows]
    return _grid([name for name in names if name not in below], stacked, headings, wide)


def _grid(names: Sequence[str], rows: Sequence[Cells], headings: Cells, wide: Mapping[str, int]) -> Table:
    grid = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        grid.add_column(headings[name], overflow="fold", width=max(1, wide[name]))
    for row in rows:
        grid.add_row(*(Text(row[name]) for name in names))
    return grid


def _stacked(row: Cells, prose: str, below: Sequence[str], headings: Cells) -> str:
    """Return a cell with those below it: short ones share a line."""
    told = [(f"{headings[name]}: {row[name]}", _is_prose([row], name)) for name in below if row[name]]
    short = ", ".join(text for text, long in told if not long)
    return "\n".join(line for line in (row[prose], *(text for text, long in told if long), short) if line)


def _room(beside: Sequence[str], wide: Mapping[str, int], width: int) -> int:
    return width - sum(wide[name] + _GAP for name in beside)


def _is_prose(rows: Sequence[Cells], name: str) -> bool:
    return any(len(row[name]) > _SHORT and " " in row[name] for row in rows)


def _line(cell: str) -> int:
    return max(map(len, cell.splitlines()), default=0)


def _longest(heading: str) -> int:
    return max(map(len, heading.split()), default=0)
