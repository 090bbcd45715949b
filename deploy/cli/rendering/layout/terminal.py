"""The terminal, if there is one: a console of a sensible width, and progress bars. Rich is imported when it is used."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def console() -> "Console":
    """Return a console on stdout; if that is no terminal, nothing is coloured, cut or wrapped."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=1000)


def print_hanging(out: "Console", line: "Text", indent: int) -> None:
    """Print a text; a line that is too long for the terminal continues below, indented."""
    from rich.text import Text

    for each in line.split("\n", allow_blank=True):
        if each.cell_len <= out.width:
            out.print(each)
            continue
        first, *others = each.wrap(out, out.width - indent)
        out.print(first)
        for part in others:
            out.print(Text(" " * indent).append_text(part))


@contextmanager
def progress(what: str, total: float | None, *, wanted: bool = True) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on stderr, if that is a terminal; yields a function to call with the progress so far.

    ``total`` is the progress at the end, None if unknown.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def step_progress(what: str) -> Iterator[Callable[[str, int], None]]:
    """Show the progress of work in several steps; yields a function to call with a step and how far it has come."""
    done: dict[str, int] = {}
    with progress(what, None) as advance:

        def show(step: str, reached: int) -> None:
            done[step] = reached
            advance(sum(done.values()))

        yield show
