"""``neuraxis bisect``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, json_option, target_options
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.replaying.source_opening import log_option, open_source, say_note
from deploy.cli.wrapped_lines import say
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from events.replay.run_replay import Point
    from events.replay.states.bisecting import BisectResult
    from events.replay.states.conditions import Condition


@command(
    epilog=examples(
        "neuraxis bisect breaker travel 'trust < 0.5'",
        "neuraxis bisect breaker travel 'state == \"VIOLATED\"' --log backup/ledger.db",
        "neuraxis bisect router travel 'pending exists' --to 1200 --json",
    )
)
@click.argument("actor")
@click.argument("key")
@click.argument("condition")
@target_options
@log_option
@click.option("--to", "upto", default="", metavar="SEQ|TIME", help="Stop there.  [default: the end]")
@json_option
def bisect(
    target: Target, actor: str, key: str, condition: str, log_file: Path | None, upto: str, as_json: bool
) -> None:
    """Find the first event after which CONDITION holds of an actor's state; exit status 1 if none.

    CONDITION is a path as `neuraxis state` prints it, below anything that is kept under KEY or else from the top; one
    of == != < <= > >= in exists; and a JSON value. The condition may hold and cease again: every state is checked.
    """
    from actors.registry import actor_named
    from events.replay.run_replay import END, point_of
    from events.replay.states.conditions import BadCondition, condition_of

    try:
        parsed = condition_of(condition)
    except BadCondition as bad:
        raise WrongUse(str(bad)) from None
    name = actor_named(actor).name
    found = run_command(_bisect(target, log_file, name, key, parsed, point_of(upto) if upto else END))
    if found is None:
        raise CheckFailed(f"{condition} holds of no state of {name} under {key}")
    if as_json:
        print_json(found)
        return
    if not found.seq:
        say(f"{found.actor}/{found.partition}: it holds from the start")
        return
    moment = datetime.fromtimestamp(found.time_ns / 1e9, UTC).isoformat(timespec="milliseconds")
    was, now = (
        "nothing" if value is msgspec.UNSET else msgspec.json.encode(value).decode()
        for value in (found.before, found.after)
    )
    say(printable(f"{found.actor}/{found.partition}: sequence {found.seq}, {moment}, {found.topic}"))
    say(printable(f"  {was} → {now}"))
    if found.exchange:
        say(printable(f"  `neuraxis why {found.exchange}` shows the exchange"))


async def _bisect(
    target: Target, log_file: Path | None, name: str, key: str, condition: "Condition", upto: "Point"
) -> "BisectResult | None":
    from actors.registry import ACTORS
    from events.replay.presence_checks import check_holds_key, check_reaches
    from events.replay.states.bisecting import first_holding
    from events.replay.states.partition_state import partition_named

    async with open_source(target, log_file) as source:
        say_note(await check_reaches(source, upto))
        partition = partition_named(ACTORS[name], key, source.partitions)
        kept = f"the states of {name} are kept"
        await check_holds_key(source, key, tokens=[partition], scope=ACTORS[name].scope, kept=kept)
        with progress("folding", min((await source.info()).last_seq, upto.seq)) as advance:
            return await first_holding(source, ACTORS[name], partition, key, condition, upto, advance)
