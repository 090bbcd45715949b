"""``neuraxis bisect``."""

from datetime import UTC, datetime
from pathlib import Path

import click

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, json_option, target_options, to_option
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import change_text, print_json
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.cli.wrapped_lines import say, say_note


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
@to_option
@json_option
async def bisect(
    target: Target, actor: str, key: str, condition: str, log_file: Path | None, upto: str, as_json: bool
) -> None:
    """Find the first event after which CONDITION holds of an actor's state; exit status 1 if none.

    CONDITION is a path as `neuraxis state` prints it, below anything that is kept under KEY or else from the top; one
    of == != < <= > >= in exists; and a JSON value. The condition may hold and cease again: every state is checked.
    """
    from actors.registry import actor_named
    from events.replay.presence_checks import check_holds_key, check_reaches
    from events.replay.run_replay import END, point_of
    from events.replay.states.bisecting import first_holding
    from events.replay.states.conditions import BadCondition, condition_of
    from events.replay.states.partition_state import partition_named

    try:
        parsed = condition_of(condition)
    except BadCondition as bad:
        raise WrongUse(str(bad)) from None
    named_actor, point = actor_named(actor), point_of(upto) if upto else END
    async with open_source(target, log_file) as source:
        say_note(await check_reaches(source, point))
        partition = partition_named(named_actor, key, source.partitions)
        kept = f"the states of {named_actor.name} are kept"
        await check_holds_key(source, key, tokens=[partition], scope=named_actor.scope, kept=kept)
        with progress("folding", min((await source.info()).last_seq, point.seq)) as advance:
            found = await first_holding(source, named_actor, partition, key, parsed, point, advance)
    if found is None:
        raise CheckFailed(f"{condition} holds of no state of {named_actor.name} under {key}")
    if as_json:
        print_json(found)
        return
    if not found.seq:
        say(f"{found.actor}/{found.partition}: it holds from the start")
        return
    moment = datetime.fromtimestamp(found.time_ns / 1e9, UTC).isoformat(timespec="milliseconds")
    say(printable(f"{found.actor}/{found.partition}: sequence {found.seq}, {moment}, {found.topic}"))
    say(printable(f"  {change_text(found.before, found.after)}"))
    if found.exchange:
        say(printable(f"  `neuraxis why {found.exchange}` shows the exchange"))
