"""Printing what a command found or did: JSON, an object on each line, for programs; a line or a table for people."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click
import msgspec

from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.terminal import console
from deploy.cli.wrapped_lines import say

T = TypeVar("T")
Row = msgspec.Struct | Mapping[str, Any]


def emit(rows: Iterable[Row], *, as_json: bool, columns: Sequence[str] | None = None) -> None:
    """Print rows to stdout: JSON lines one by one as they come, or all together as a table.

    Args:
        rows: Structs, or mappings with the same keys.
        as_json: JSON lines instead of a table.
        columns: What the table shows, in order; default: every key of the first row.
    """
    if as_json:
        for row in rows:
            print_json(row)
        return
    table(rows, columns)


def print_json(value: object) -> None:
    """Print a value as JSON, on one line of stdout."""
    click.echo(msgspec.json.encode(value).decode())


def print_result(result: object, line: str, *, as_json: bool) -> None:
    """Print what a command has done: as JSON, or in a line for people."""
    if as_json:
        print_json(result)
    else:
        say(line)


def latest(items: Sequence[T], count: int) -> Sequence[T]:
    """Return the last ``count`` items: all if there are fewer, none for 0."""
    return items[max(0, len(items) - count) :]


def table(rows: Iterable[Row], columns: Sequence[str] | None = None) -> None:
    """Print rows as a table that fits the terminal; nothing when there are none."""
    plain: list[dict[str, Any]] = [msgspec.to_builtins(row) for row in rows]
    if not plain:
        return
    from deploy.cli.rendering.layout.table_fitting import fitted_table

    out = console()  # a file has no width: nothing is wrapped there
    names = list(columns or plain[0])
    out.print(fitted_table(names, [{name: cell(row.get(name)) for name in names} for row in plain], out.width))


def change_text(before: object, after: object) -> str:
    """Return a change of a value, each side as JSON, or ``nothing`` for an unset one."""
    return f"{_side(before)} → {_side(after)}"


def _side(value: object) -> str:
    return "nothing" if value is msgspec.UNSET else msgspec.json.encode(value).decode()


def cell(value: object) -> str:
    """Return a value as a table shows it: text made printable, all else as JSON."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return printable(text, "\n")
