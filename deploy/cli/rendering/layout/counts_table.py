"""Tables of counts: in columns if they fit, else each count on a line with its name. No number is cut."""

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_GAP = 2


class CountsTable:
    """A table of counts. Each row has a name, a style, and one count for each of ``headings``.

    ``name_heading`` is the heading of the names. The layout depends on the width of the terminal.
    """

    def __init__(self, name_heading: str, headings: Sequence[str]) -> None:
        self._name_heading, self._headings = name_heading, tuple(headings)
        self._rows: list[tuple[str, tuple[str, ...], str]] = []

    def add(self, name: str, counts: Sequence[int], style: str = "") -> None:
        """Add a row."""
        self._rows.append((name, tuple(f"{count:,}" for count in counts), style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield a table or, if that is too wide for the terminal, each row as lines of its counts."""
        columns = [(self._name_heading, [name for name, _, _ in self._rows])]
        columns += [(heading, [row[1][index] for row in self._rows]) for index, heading in enumerate(self._headings)]
        width = sum(max(map(len, (heading, *cells))) + _GAP for heading, cells in columns) - _GAP
        if width <= options.max_width:
            yield self._grid()
            return
        for name, counts, style in self._rows:
            yield Text(name, style or "bold")
            line = ", ".join(f"{count}\u00a0{heading}" for count, heading in zip(counts, self._headings, strict=True))
            yield Padding(Text(line, style), (0, 0, 0, _GAP))

    def _grid(self) -> Table:
        grid = Table(box=None, pad_edge=False, header_style="bold")
        grid.add_column(self._name_heading, no_wrap=True)
        for heading in self._headings:
            grid.add_column(heading, justify="right", no_wrap=True)
        for name, counts, style in self._rows:
            grid.add_row(name, *counts, style=style)
        return grid
