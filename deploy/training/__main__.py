"""``python -m deploy.training PROMPTS``: train both judges and write their weights into the actors' packages.

For a release of the project. Who trains on prompts of their own uses ``neuraxis precedents train``.
"""

from importlib.resources import files
from pathlib import Path

import click

from deploy.training.writing import train_into

_PLACES = {"scorer": "intuition/scorer", "trust": "appraisal"}
"""Judge -> folder below ``actors`` (not imported: the packages need the files that are written here)."""


@click.command()
@click.argument("prompts", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(prompts: Path) -> None:
    """Train the scorer and the trust evaluator on labelled PROMPTS (JSON Lines)."""
    try:
        for line in train_into(prompts, lambda name: Path(str(files("actors"))) / _PLACES[name]):
            click.echo(line)
    except ValueError as wrong:
        raise click.ClickException(str(wrong)) from wrong


if __name__ == "__main__":
    main()
