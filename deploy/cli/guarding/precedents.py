"""``neuraxis precedents``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from deploy.cli import wrapped_lines
from deploy.cli.command_types import Commands
from deploy.cli.guarding import named_items
from deploy.cli.options import (
    Number,
    Target,
    agent_option,
    by_option,
    content_of,
    examples,
    json_option,
    target_options,
    timeout_option,
    why_option,
)
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import log_option
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.operating.deadline import Deadline
    from deploy.operating.guarding.allowances import Verdict
    from schemas.vocabulary.precedents import PrecedentRecorded

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
    import msgspec

    from actors.gateway import check_name
    from deploy.cli.connect import run_within
    from deploy.operating.guarding.precedents import precedents_in
    from deploy.operating.order_client import current_user_name

    check_name("agent", agent)
    events = precedents_in(file, content_of(file), by or current_user_name())
    new, last = run_within(target, timeout, lambda within: _import(target, events, agent, within))
    motifs = sum(event.outcome == "harmful" for event in new)
    unchanged = len(events) - len(new)
    if as_json:
        result = {"agent": agent, "recorded": len(new), "unchanged": unchanged, "motifs": motifs, "seq": last}
        click.echo(msgspec.json.encode(result).decode())
        return
    # A motif is the signature of a precedent that did harm; inputs are compared with it.
    rest = f"; {unchanged} unchanged" if unchanged else ""
    wrapped_lines.say(
        f"{counted(len(new), 'precedent')} recorded for agent {agent}, {motifs} of them motifs of danger{rest}"
    )


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
    from deploy.cli.output import emit
    from deploy.operating.guarding.precedents import precedents_in_force

    columns = ("precedent", "situation", "action", "outcome", "harm_level", "description", "by")
    found = run_command(named_items.list_in_force(target, log_file, "precedent", precedents_in_force, agent))
    emit(found, as_json=as_json, columns=columns)


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
        target,
        "precedent",
        names,
        withdrawal_orders,
        agent=agent,
        by=by,
        why=why,
        timeout=timeout,
        as_json=as_json,
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
    import msgspec

    from deploy.cli.connect import run_within
    from deploy.cli.failures import WrongUse

    is_given = click.get_current_context().get_parameter_source("harm_level") is not ParameterSource.DEFAULT
    if is_given and verdict != "harm":
        raise WrongUse(f"--harm-level says how bad a harm was: the verdict {verdict} has none; leave it out")
    done = run_within(target, timeout, lambda within: _judge(target, exchange, verdict, harm_level, by, why, within))
    if as_json:
        click.echo(msgspec.json.encode(done).decode())
        return
    allowed = "; its text is allowed" if verdict == "false-alarm" else ""
    wrapped_lines.say(f"{done['precedent']} recorded for agent {done['agent']} as {verdict}{allowed}")


async def _import(
    target: Target, events: "list[PrecedentRecorded]", agent: str, deadline: "Deadline"
) -> "tuple[list[PrecedentRecorded], int | None]":
    """Record the precedents that are not yet in force; return them and the last one's sequence, if any."""
    from actors.gateway.operator_orders import Order
    from deploy.cli.connect import open_log
    from deploy.operating.guarding.precedents import differing, precedents_in_force
    from deploy.operating.order_client import give
    from events.replay.sources import StreamSource

    async with open_log(target, deadline=deadline) as log:
        new = differing(events, await precedents_in_force(StreamSource(log), agent))
        orders = [Order(event=event, agent=agent) for event in new]
        if not new:
            return new, None
        deadline.note_sending(
            f"{counted(len(new), 'precedent')}", f"import them again: none is recorded twice; {_HOW_TO_CHECK}"
        )
        return new, (await give(log, orders, deadline.left_for_step)).seq


async def _judge(
    target: Target, exchange: str, verdict: "Verdict", harm_level: float, by: str, why: str, deadline: "Deadline"
) -> dict[str, str | int]:
    from deploy.cli.connect import open_log
    from deploy.cli.replaying.named_exchange import resolve
    from deploy.operating.guarding.allowances import judged_input, precedent_name, verdict_orders
    from deploy.operating.order_client import current_user_name, give
    from events.replay.sources import StreamSource

    async with open_log(target, deadline=deadline) as log:
        source = StreamSource(log)
        judged = await judged_input(source, await resolve(source, exchange))
        orders = await verdict_orders(source, judged, verdict, harm_level, by or current_user_name(), why)
        deadline.note_sending("the verdict", _HOW_TO_CHECK)
        last = (await give(log, orders, deadline.left_for_step)).seq
        return {"agent": judged.agent, "precedent": precedent_name(judged.exchange), "verdict": verdict, "seq": last}
