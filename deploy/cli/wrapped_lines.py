"""Printing sentences: on a terminal, long lines are wrapped between words; elsewhere they stay one line."""

import shutil
import sys
import textwrap

import click


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
    if len(line) <= width or "\x1b" in line:  # styled words have no plain length
        return line
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
