"""``neuraxis train``."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import Commands
from deploy.cli.options import FILE, FOLDER, Target, examples, target_options
from deploy.cli.outcomes import WrongUse
from deploy.cli.tuning.training_steps import print_steps
from deploy.cli.wrapped_lines import say_note
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.training.labelled_corpus import Row

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_EXAMPLE = "neuraxis train detection prompts.jsonl --into models"


@click.group(cls=Commands, epilog=examples(_EXAMPLE))
def train() -> None:
    """Train weights of your own from labelled files."""


@train.command(
    epilog=examples(
        _EXAMPLE,
        "neuraxis train detection prompts.jsonl --into models --report caught.md",
        "neuraxis train detection prompts.jsonl --verdicts backup/ledger.db --into models",
    )
)
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--into", type=FOLDER, required=True, help="Folder for the weights files.")
@click.option("--report", type=FILE, help="Markdown file for what is caught, by source, weak ones first.")
@click.option(
    "--verdicts", type=_FILE, help="Ledger or bundle of a log: what people judged in it is learned from as well."
)
@target_options
def detection(target: Target, files: tuple[Path, ...], into: Path, report: Path | None, verdicts: Path | None) -> None:
    """Train the scorer of intuition and the trust evaluator of appraisal on labelled FILES (JSON Lines).

    A line has `text`, `label` (attack, benign, or hard_benign: harmless, but looks like an attack), `category` and
    `source`. Sources are held out in turn:
    each is judged by weights that saw neither it nor what quotes it, and thresholds are fixed on that, for false-alarm
    rates. So is the report of what is caught. Workers started with NEURAXIS_MODELS=FOLDER judge by what is written
    there; decisions name the weights that they rest on, and a replay without those says so. `neuraxis what-if --weights
    FOLDER` tells what they would change. Equal inputs give equal files. Needs scipy: pip install 'neuraxis[train]'.

    With --verdicts, precedents in force are rows, too: harmful ones as attacks, harmless ones as hard_benign.
    """

    def steps() -> Iterable[str]:
        from deploy.training.train_judges import train_into

        judged = [] if verdicts is None else run_command(_judged(target, verdicts))
        return train_into(files, into, report, judged)

    print_steps(steps)


async def _judged(target: Target, log: Path) -> "list[Row]":
    from deploy.cli.replaying.source_opening import open_source
    from deploy.training.verdict_rows import rows_of_verdicts

    async with open_source(target, log) as source:
        rows, left_out = await rows_of_verdicts(source)
    if left_out:
        say_note(f"precedents whose words are sealed, forgotten or redacted, which are left out: {left_out}")
    if not rows:
        raise WrongUse(
            f"--verdicts {log}: it holds no precedents that can be read: `neuraxis precedents judge` makes them"
        )
    return rows
