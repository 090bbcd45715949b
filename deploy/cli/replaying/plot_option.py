"""The option ``--plot``, and its check: what cannot be drawn into is refused before the command computes anything."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from deploy.cli.options import FILE
from deploy.cli.outcomes import WrongUse


def plot_option(what: str) -> Callable[[Any], Any]:
    """Return a decorator that adds ``--plot``, the file of a drawing of ``what``."""
    help = f"Also draw {what} there, as its name ends: .svg or .png. Needs the extra neuraxis[plot]."
    return click.option("--plot", type=FILE, metavar="FILE", help=help)


def check_plot(file: Path) -> None:
    """Check that a drawing can be written to a file: its name, its folder, and the library that draws.

    Raises:
        WrongUse: it cannot; the message says what to do.
    """
    from deploy.cli.rendering.sweeps import FORMS

    if file.suffix.lower() not in FORMS:
        raise WrongUse(f"--plot {file}: name a file that ends in {' or '.join(FORMS)}")
    if not file.parent.is_dir():
        raise WrongUse(f"--plot {file}: there is no folder {file.parent}")
    _check_library()


def check_folder(folder: Path) -> None:
    """Check that drawings can be written into a folder, which may still be missing: its parent, and the library.

    Raises:
        WrongUse: they cannot; the message says what to do.
    """
    if not folder.parent.is_dir():
        raise WrongUse(f"--plot {folder}: there is no folder {folder.parent}")
    _check_library()


def _check_library() -> None:
    from deploy.cli.rendering.sweeps import PlotUnavailable, require_matplotlib

    try:
        require_matplotlib()
    except PlotUnavailable as missing:
        raise WrongUse(str(missing)) from missing
