"""``neuraxis log repartition``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import command
from deploy.cli.connect import admin_access
from deploy.cli.options import Target, examples, json_option, ledger_option, target_options, whole_number
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.terminal import step_progress
from deploy.cli.wrapped_lines import say

if TYPE_CHECKING:
    from deploy.copying.repartitioning import Repartitioned


@command(
    epilog=examples(
        "neuraxis log repartition --sessions 32",
        "neuraxis log repartition --agents 8 --sessions 32 --context admin.json --ledger ledger.db",
        "neuraxis log repartition --cancel",
    )
)
@target_options
@click.option("--agents", type=whole_number(1), help="Partitions of agents.  [default: as many as there are]")
@click.option("--sessions", type=whole_number(1), help="Partitions of sessions.  [default: as many as there are]")
@click.option("--cancel", is_flag=True, help="Give up one that was interrupted; the log is then as it was before.")
@ledger_option("The ledger that keeps what was removed from the stream, if anything.  [default: the data folder's]")
@json_option
async def repartition(
    target: Target, agents: int | None, sessions: int | None, cancel: bool, ledger: Path | None, as_json: bool
) -> None:
    """Divide the partitions of a log, so that more workers can share them.

    Each count must be a multiple of what it is: a partition is divided, and never joined with another. No event is
    changed or copied, and the ledger goes on. Every new partition begins with the state of the one that it comes from,
    which is checked. No set or worker may run. If this was interrupted, run it again: it goes on.
    """
    from deploy.copying.repartitioning import cancel as give_up
    from deploy.copying.repartitioning import repartition as divide
    from schemas.subjects import MOST_PARTITIONS

    if cancel and (agents or sessions):
        raise WrongUse("--cancel takes no counts: it leaves the log with those it has")
    if not cancel and not agents and not sessions:
        raise WrongUse("name the new counts: --sessions N, --agents N or both")
    if max(agents or 0, sessions or 0) > MOST_PARTITIONS:
        raise WrongUse(f"there are at most {MOST_PARTITIONS} partitions of each kind")
    config = target.config()
    async with admin_access(target, config) as access:
        if cancel:
            was_there = await give_up(access, config)
            done = "given up: the log is as it was before" if was_there else "there was nothing to give up"
            click.echo(done, err=True)
            return
        with step_progress("repartitioning") as progress:
            found = await divide(access, config, agents, sessions, progress, ledger or target.data.ledger)
    _report(found, as_json=as_json)


def _report(found: "Repartitioned", *, as_json: bool) -> None:
    before, after = found.before, found.after
    if as_json:
        counts = {"agents": after.agents, "sessions": after.sessions}
        former = {"agents": before.agents, "sessions": before.sessions, "through_seq": found.through}
        print_json({"stream": found.stream, **counts, "former": former, "states_checked": found.states})
        return
    say(
        f"stream {found.stream}: {before.agents} agent and {before.sessions} session partitions up to sequence "
        f"{found.through:,}, {after.agents} and {after.sessions} from then on; {counted(found.states, 'state')} checked"
    )
    say(f"its workers need log.agents = {after.agents} and log.sessions = {after.sessions} in their configuration")
