"""Printing sentences: on a terminal, long lines are wrapped between words; elsewhere they stay one line."""

import re
import shutil
import sys
import textwrap

import click

_ANSI_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


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


def say_note(note: str) -> None:
    """Print a note to stderr, if it is not empty, beside what a command prints or does."""
    if note:
        say(f"neuraxis: {note}", err=True)


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
    return "\n".join(rows) if plain == line else _styled(rows, _ANSI_STYLE.split(line), indent)


def _styled(rows: list[str], parts: list[str], indent: int) -> str:
    """Return wrapped rows of a text with its styles put back; ``parts`` are texts and ANSI styles by turns."""
    found, column = [], 0
    row, rest = rows[0], rows[1:]
    for index, part in enumerate(parts):
        if index % 2:
            found.append(part)
            continue
        for character in part:
            if column == len(row) and rest:  # blanks at the break were dropped
                if character.isspace():
                    continue
                row, rest, column = rest[0], rest[1:], indent
                found.append("\n" + " " * indent)
            found.append(character)
            column += 1
    return "".join(found)
