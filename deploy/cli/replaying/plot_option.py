"""The check of ``--plot FILE``: a file that cannot be drawn is refused before the command computes anything."""

from pathlib import Path


def check_plot(file: Path) -> None:
    """Check that a drawing can be written to a file: its name, its folder, and the library that draws.

    Raises:
        WrongUse: it cannot; the message says what to do.
    """
    from deploy.cli.failures import WrongUse
    from deploy.cli.rendering.sweeps import FORMS, PlotUnavailable, require_matplotlib

    if file.suffix.lower() not in FORMS:
        raise WrongUse(f"--plot {file}: name a file that ends in {' or '.join(FORMS)}")
    if not file.parent.is_dir():
        raise WrongUse(f"--plot {file}: there is no folder {file.parent}")
    try:
        require_matplotlib()
    except PlotUnavailable as missing:
        raise WrongUse(str(missing)) from missing
