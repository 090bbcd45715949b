"""``neuraxis train``."""

from collections.abc import Iterable
from pathlib import Path

import click

from deploy.cli.groups import Commands
from deploy.cli.mind.training import tell_training
from deploy.cli.options import examples

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_EXAMPLE = "neuraxis train detection prompts.jsonl --into models"


@click.group(cls=Commands, epilog=examples(_EXAMPLE))
def train() -> None:
    """Weights of one's own, from labelled files."""


@train.command(epilog=examples(_EXAMPLE, "neuraxis train detection prompts.jsonl --into models --report caught.md"))
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the weights files."
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Markdown file for what is caught, by source, weak ones first.",
)
def detection(files: tuple[Path, ...], into: Path, report: Path | None) -> None:
    """Train the scorer of intuition and the trust evaluator of appraisal on labelled FILES (JSON Lines).

    A line has `text`, `label` (attack, benign or hard_benign), `category` and `source`. Sources are held out in turn:
    each is judged by weights that saw neither it nor what quotes it, and thresholds are fixed on that, for false-alarm
    rates. So is the report of what is caught. Workers started with NEURAXIS_MODELS=FOLDER judge by what is written
    there; decisions name the weights that they rest on, and a replay without those says so. Equal inputs give equal
    files. Needs scipy: pip install 'neuraxis[train]'.
    """

    def steps() -> Iterable[str]:
        from deploy.training.writing import train_into

        return train_into(files, into, report)

    tell_training(steps)
