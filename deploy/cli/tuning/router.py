"""``neuraxis router``."""

from collections.abc import Iterable
from pathlib import Path

import click

from deploy.cli.command_types import Commands
from deploy.cli.options import FOLDER, examples
from deploy.cli.tuning.training_steps import print_steps

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=Commands, epilog=examples("neuraxis router train turns.jsonl prompts.jsonl --into models"))
def router() -> None:
    """Train how the router reads a turn of a conversation."""


@router.command(epilog=examples("neuraxis router train turns.jsonl prompts.jsonl --into models"))
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--into", type=FOLDER, required=True, help="Folder for the weights file.")
def train(files: tuple[Path, ...], into: Path) -> None:
    """Train the reading of turns on labelled FILES (JSON Lines), and write `turn.npz`.

    A line has `text` and `source`, and what the text is: `reads` (some of answerable, underspecified, social, recall
    and task), or `ok` (the modes that would be right for it as a first input), or the `label` and `category` of
    prompts, of which the benign ones are taken for requests that can be met. Several kinds or modes leave it open
    which; training decides. Phrases of our own, in many languages, are added. How far the weights are trusted is
    settled on sources that were left out.

    Workers started with NEURAXIS_MODELS=FOLDER read by what is written there; decisions name the weights that they
    rest on. Equal inputs give equal files. Needs scipy: pip install 'neuraxis[train]'.
    """

    def steps() -> Iterable[str]:
        from deploy.training.train_turns import train_turns

        return train_turns(files, into)

    print_steps(steps)
