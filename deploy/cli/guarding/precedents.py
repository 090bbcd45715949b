"""``neuraxis precedents``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from deploy.cli.command_types import Commands
from deploy.cli.guarding import named_items
from deploy.cli.named_files import content_of
from deploy.cli.options import (
    Number,
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
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.named_exchange import resolve
from deploy.cli.replaying.source_opening import log_option

if TYPE_CHECKING:
    from actors.gateway import Order
    from deploy.operating.guarding.allowances import Verdict
    from events.replay.sources import Source

_TIMEOUT_S = 60.0
_HOW_TO_CHECK = "`neuraxis precedents list` tells, once the broker answers"


@click.group(cls=Commands, epilog=examples("neuraxis precedents list", "neuraxis precedents import incidents.yaml"))
def precedents() -> None:
    """What intuition learns from: earlier situations, what was done in them, and how that turned out."""


@precedents.command(
    name="import",
    epilog=examples(
        "neuraxis precedents import incidents.yaml",
        "neuraxis precedents import incidents.jsonl --agent support --by ann --json",
        "jq -c .[] incidents.json | neuraxis precedents import -",
    ),
)
@click.argument("file", metavar="FILE")
@target_options
@agent_option("whose precedents they are")
@by_option
@timeout_option(_TIMEOUT_S)
@json_option
def import_(target: Target, file: str, agent: str, by: str, timeout: float, as_json: bool) -> None:
    """Record the precedents of FILE (`-`: stdin): a YAML list, a JSON array, or JSON a line.

    An item has `precedent` (its name) and `description`, and may have `situation`, `action` (answer, act or
    withhold), `outcome` (benign or harmful), `harm_level` (0 to 1) and an approved `answer`. An item replaces an
    earlier one of the same name; if both are equal, nothing is recorded. A file with a mistake is refused as a whole,
    and the error names the line.
    """
    from actors.gateway import Order, check_name
    from deploy.operating.guarding.precedents import differing, precedents_in, precedents_in_force
    from schemas.vocabulary.precedents import PrecedentRecorded

    check_name("agent", agent)
    events = precedents_in(file, content_of(file), by)

    async def orders_in(source: "Source") -> list[Order]:
        new = differing(events, await precedents_in_force(source, agent))
        return [Order(event=event, agent=agent) for event in new]

    orders, last = named_items.give_orders(
        target,
        timeout,
        orders_in,
        lambda count: counted(count, "precedent"),
        f"import them again: none is recorded twice; {_HOW_TO_CHECK}",
    )
    recorded = [order.event for order in orders if isinstance(order.event, PrecedentRecorded)]
    motifs = sum(event.outcome == "harmful" for event in recorded)
    unchanged = len(events) - len(recorded)
    result = {"agent": agent, "recorded": len(recorded), "unchanged": unchanged, "motifs": motifs, "seq": last}
    # A motif is the signature of a precedent that did harm; inputs are compared with it.
    rest = f"; {unchanged} unchanged" if unchanged else ""
    line = f"{counted(len(recorded), 'precedent')} recorded for agent {agent}, {motifs} of them motifs of danger{rest}"
    print_result(result, line, as_json=as_json)


@precedents.command(
    name="list",
    epilog=examples("neuraxis precedents list", "neuraxis precedents list --agent support --json | jq .precedent"),
)
@target_options
@log_option
@agent_option("whose precedents they are")
@json_option
def list_(target: Target, log_file: Path | None, agent: str, as_json: bool) -> None:
    """Print the precedents in force, in the order of recording. They hold people's words."""
    from deploy.operating.guarding.precedents import precedents_in_force

    columns = ("precedent", "situation", "action", "outcome", "harm_level", "description", "by")
    named_items.print_in_force(target, log_file, "precedent", precedents_in_force, agent, columns, as_json=as_json)


@precedents.command(epilog=examples('neuraxis precedents withdraw p-12 --why "recorded by mistake"'))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@target_options
@agent_option("whose precedents they are")
@by_option
@why_option()
@timeout_option(_TIMEOUT_S)
@json_option
def withdraw(
    target: Target, names: tuple[str, ...], agent: str, by: str, why: str, timeout: float, as_json: bool
) -> None:
    """Withdraw precedents: from then on, harmful ones among them reject no inputs."""
    from deploy.operating.guarding.precedents import withdrawal_orders

    named_items.withdraw(
        target, "precedent", names, withdrawal_orders, agent=agent, by=by, why=why, timeout=timeout, as_json=as_json
    )


@precedents.command(
    epilog=examples(
        'neuraxis precedents judge last false-alarm --why "our own handbook"',
        'neuraxis precedents judge 01936f2c8a41 harm --harm-level 0.8 --why "somebody was locked out"',
    )
)
@click.argument("exchange")
@click.argument("verdict", type=click.Choice(["harm", "false-alarm", "benign"]))
@target_options
@click.option("--harm-level", type=Number(0.0, 1.0, min_open=True), default=0.9, show_default=True, help="Of a harm.")
@by_option
@why_option()
@timeout_option(_TIMEOUT_S)
@json_option
def judge(
    target: Target,
    exchange: str,
    verdict: "Verdict",
    harm_level: float,
    by: str,
    why: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Judge how EXCHANGE (its id, or `last`) turned out: its input becomes a precedent of its agent.

    `harm`: inputs like it are rejected from then on. `benign`: it is a precedent without harm. `false-alarm`: the same,
    and the text is allowed from then on. `precedents withdraw` and `allowances withdraw` undo it.
    """
    from deploy.operating.guarding.allowances import judged_input, verdict_orders
    from schemas.vocabulary.precedents import PrecedentRecorded

    is_given = click.get_current_context().get_parameter_source("harm_level") is not ParameterSource.DEFAULT
    if is_given and verdict != "harm":
        raise WrongUse(f"--harm-level says how bad a harm was: the verdict {verdict} has none; leave it out")

    async def orders_in(source: "Source") -> "list[Order]":
        judged = await judged_input(source, await resolve(source, exchange))
        return await verdict_orders(source, judged, verdict, harm_level, by, why)

    orders, last = named_items.give_orders(target, timeout, orders_in, lambda _: "the verdict", _HOW_TO_CHECK)
    [(agent, precedent)] = [
        (order.agent, order.event.precedent) for order in orders if isinstance(order.event, PrecedentRecorded)
    ]
    allowed = "; its text is allowed" if verdict == "false-alarm" else ""
    line = f"{precedent} recorded for agent {agent} as {verdict}{allowed}"
    result = {"agent": agent, "precedent": precedent, "verdict": verdict, "seq": last}
    print_result(result, line, as_json=as_json)
