"""Printing the steps of a training, for the commands that train."""

from collections.abc import Callable, Iterable

import click

from deploy.cli.outcomes import WrongUse


def print_steps(steps: Callable[[], Iterable[str]]) -> None:
    """Train, and print a line about each step; ``steps`` imports what it needs.

    Raises:
        WrongUse: scipy is not installed, or files cannot be read, trained on or written; the message says what to do.
    """
    try:
        for line in steps():
            click.echo(line)
    except ModuleNotFoundError as missing:
        if missing.name != "scipy":
            raise
        raise WrongUse("training needs scipy: pip install 'neuraxis[train]'") from missing
    except OSError as wrong:
        raise WrongUse(f"{wrong.filename}: {wrong.strerror}: name what can be read and written") from wrong
    except ValueError as wrong:
        raise WrongUse(str(wrong)) from wrong
