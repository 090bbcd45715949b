"""``--plot FILE``: what could not be drawn is refused before anything is computed for it."""

from pathlib import Path


def check_plot(file: Path) -> None:
    """Refuse a file that no drawing could be written to, by its name, its folder, or for want of the library.

    Raises:
        WrongUse: that is so; the message says what to do.
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
