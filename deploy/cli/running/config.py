"""``neuraxis config``."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from deploy.cli.command_types import Commands
from deploy.cli.options import config_options, examples, json_option
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import emit
from deploy.cli.wrapped_lines import say_note


@click.group(cls=Commands, epilog=examples("neuraxis config show"))
def config() -> None:
    """Look at the configuration."""


@config.command(
    epilog=examples(
        "neuraxis config show",
        "neuraxis config show router --set router.base_scores.RESPOND=0.45",
        "NEURAXIS_BROKER__SYNC=1s neuraxis config show broker --json",
    )
)
@click.argument("sections", nargs=-1, metavar="[SECTION]...")
@config_options
@json_option
def show(sections: tuple[str, ...], config_file: Path | None, assignments: Sequence[str], as_json: bool) -> None:
    """Print the values in effect and where each came from: the default, a file, a variable or a flag."""
    from deploy.config.ignored_variables import REMEDY, ignored_variables
    from deploy.config.loading import all_sections, assignment_layer, load
    from schemas.intake.strict import did_you_mean

    known = all_sections()
    if unknown := [name for name in sections if name not in known]:
        section = unknown[0].partition(".")[0]
        hint = f"name its section, {section!r}" if section in known else did_you_mean(unknown[0], known)
        raise WrongUse(f"there is no section {unknown[0]!r}: {hint}")
    effective = load(
        known,
        file=config_file,
        environment=os.environ,
        flags=[assignment_layer(assignment) for assignment in assignments],
    )
    if ignored := ignored_variables(os.environ):
        say_note(f"nothing reads {', '.join(ignored)}: {REMEDY}")
    shown = (value for value in effective.values() if not sections or value.key.split(".")[0] in sections)
    emit(shown, as_json=as_json)
