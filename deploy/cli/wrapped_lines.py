"""Printing sentences: on a terminal, long lines are wrapped between words; elsewhere they stay one line."""

import re
import shutil
import sys
import textwrap

import click

_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


def say(text: str, *, err: bool = False, indent: int = 2) -> None:
    """Print a text to stdout, or to stderr.

    Args:
        text: One or several lines.
        err: To stderr.
        indent: Spaces before the continuation of a long line, on a terminal.
    """
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(_wrapped(line, width, indent) for line in text.split("\n"))
    click.echo(text, err=err)


def _wrapped(line: str, width: int, indent: int) -> str:
    plain = click.unstyle(line)
    if len(plain) <= width:
        return line
    rows = textwrap.wrap(
        plain,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
    return "\n".join(rows) if plain == line else _styled(rows, _STYLE.split(line), indent)


def _styled(rows: list[str], parts: list[str], indent: int) -> str:
    """Return wrapped rows of a text with its styles put back; ``parts`` are its words and its styles by turns."""
    found, at = [], 0  # at: the place in the row
    row, rest = rows[0], rows[1:]
    for place, part in enumerate(parts):
        if place % 2:
            found.append(part)
            continue
        for sign in part:
            if at == len(row) and rest:  # what stands at the break was dropped
                if sign.isspace():
                    continue
                row, rest, at = rest[0], rest[1:], indent
                found.append("\n" + " " * indent)
            found.append(sign)
            at += 1
    return "".join(found)
