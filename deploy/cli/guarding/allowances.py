"""``neuraxis allowances``."""

from pathlib import Path

import click

from deploy.cli.command_types import Commands
from deploy.cli.guarding import named_items
from deploy.cli.named_files import text_of
from deploy.cli.options import (
    Target,
    agent_option,
    by_option,
    examples,
    json_option,
    target_options,
    timeout_option,
    why_option,
)
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import print_result
from deploy.cli.replaying.source_opening import log_option
from schemas.names import wrong_with_name

_TIMEOUT_S = 60.0


@click.group(cls=Commands, epilog=examples("neuraxis allowances list"))
def allowances() -> None:
    """What is allowed in spite of the guards: texts, and phrases in any text, of one agent."""


@allowances.command(
    epilog=examples(
        'neuraxis allowances add button --phrase "ignore previous" --why "a button of our editor"',
        'neuraxis allowances add handbook --file chapter.txt --why "our own text on attacks"',
    )
)
@click.argument("name")
@click.option("--phrase", default="", help="A phrase of whole words that reflex, intuition and appraisal skip.")
@click.option("--file", metavar="FILE", help="A file (`-`: stdin) with a text that is allowed as a whole.")
@target_options
@agent_option("whose allowance it is")
@by_option
@why_option()
@timeout_option(_TIMEOUT_S)
@json_option
def add(
    target: Target,
    name: str,
    phrase: str,
    file: str | None,
    agent: str,
    by: str,
    why: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Allow a phrase, or the text of a file, under NAME; one of that name is replaced.

    Reflex, intuition and appraisal judge an input without what is allowed, and say so. The text around a phrase is
    judged. The allowed text is recorded in the log.
    """
    from actors.contract.text.allowances import why_refused
    from actors.gateway import check_name
    from deploy.operating.guarding.allowances import allowance_orders
    from schemas.vocabulary.allowances import AllowanceRecorded

    check_name("agent", agent)
    if wrong := wrong_with_name(name) if name else "is empty: write a word":
        raise WrongUse(f"NAME: the name {wrong}")
    if bool(phrase) == (file is not None):
        raise WrongUse("give either --phrase PHRASE or --file FILE")
    text = "" if file is None else text_of(file)
    if file is not None and not text:
        raise WrongUse(f"{file}: there is no text in it")
    if refused := why_refused(text, phrase):
        _, why_not = refused
        raise WrongUse(f"{file or '--phrase'}: {why_not}")
    event = AllowanceRecorded(allowance=name, text=text, phrase=phrase, by=by, why=why)
    _, last = named_items.give_orders(
        target,
        timeout,
        lambda source: allowance_orders(source, agent, event),
        lambda _: "the allowance",
        "`neuraxis allowances list` tells, once the broker answers",
    )
    done = {"agent": agent, "allowance": name, "seq": last}
    print_result(done, f"{name} is allowed for agent {agent}", as_json=as_json)


@allowances.command(name="list", epilog=examples("neuraxis allowances list --agent support --json"))
@target_options
@log_option
@agent_option("whose allowances they are")
@json_option
def list_(target: Target, log_file: Path | None, agent: str, as_json: bool) -> None:
    """Print the allowances in force, in the order of recording. They hold people's words."""
    from deploy.operating.guarding.allowances import allowances_in_force

    columns = ("allowance", "phrase", "text", "by", "why")
    named_items.print_in_force(target, log_file, "allowance", allowances_in_force, agent, columns, as_json=as_json)


@allowances.command(epilog=examples('neuraxis allowances withdraw button --why "the button is gone"'))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@target_options
@agent_option("whose allowances they are")
@by_option
@why_option()
@timeout_option(_TIMEOUT_S)
@json_option
def withdraw(
    target: Target, names: tuple[str, ...], agent: str, by: str, why: str, timeout: float, as_json: bool
) -> None:
    """Withdraw allowances: from then on, what they allowed is judged again."""
    from deploy.operating.guarding.allowances import withdrawal_orders

    named_items.withdraw(
        target, "allowance", names, withdrawal_orders, agent=agent, by=by, why=why, timeout=timeout, as_json=as_json
    )
