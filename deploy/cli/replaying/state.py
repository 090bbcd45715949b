"""``neuraxis state``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, json_option, target_options
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.cli.wrapped_lines import say, say_note
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from events.replay.states.partition_state import PartitionState


@command(
    epilog=examples(
        "neuraxis state router travel",
        "neuraxis state responder 07 --at 1200 --json | jq .state",
        "neuraxis state breaker travel --path trust",
        "neuraxis state clock all --log backup/ledger.db",
    )
)
@click.argument("actor")
@click.argument("key")
@target_options
@log_option
@click.option("--at", "at", default="", metavar="SEQ|TIME", help="As of then.  [default: now]")
@click.option("--path", "path", default="", metavar="PATH", help="Print what is there alone, as JSON.")
@json_option
def state(target: Target, actor: str, key: str, log_file: Path | None, at: str, path: str, as_json: bool) -> None:
    """Print what an actor's partition knew at a point of the log: what is kept under KEY, and the whole state.

    KEY is a session's or agent's name, whichever the actor is divided by, or a partition: two digits, or `all` for an
    actor that is not divided.
    PATH is written as paths are printed, `sessions["travel"].trust`. It is looked up below every entry kept under KEY,
    and where it leads nowhere there, from the top. The state holds people's words.
    """
    from actors.registry import actor_named
    from events.replay.run_replay import END, point_of
    from events.replay.states.conditions import BadCondition, path_of
    from events.replay.states.partition_state import no_such_path, value_at

    try:
        steps = path_of(path) if path else ()
    except BadCondition as bad:
        raise WrongUse(str(bad)) from None
    found, unknown = run_command(_state(target, log_file, actor_named(actor).name, key, point_of(at) if at else END))
    if not found.under_key and key != found.partition:
        # On stderr, so that it does not disturb JSON output.
        warning = (
            f"nothing is kept under {key} there: this is all of {found.actor}/{found.partition}, which would hold it"
        )
        say(printable(warning), err=True)
    if steps:
        values = value_at(found.state, found.under_key, steps)
        if not values:
            raise CheckFailed(f"{found.actor}/{found.partition}: {no_such_path(found.state, found.under_key, path)}")
        value = next(iter(values.values())) if len(values) == 1 else values
        click.echo(msgspec.json.encode(value).decode() if as_json else _pretty(value))
    elif as_json:
        print_json(found)
    else:
        say(f"{found.actor}/{found.partition} after sequence {found.place}, state hash {found.state_hash}")
        if found.under_key:
            click.echo(f"\nunder {key}:\n{_pretty(found.under_key)}")
        click.echo(f"\nstate:\n{_pretty(found.state)}")
    if unknown:
        raise CheckFailed(unknown)


async def _state(
    target: Target, log_file: Path | None, actor: str, key: str, upto: Any
) -> "tuple[PartitionState, str]":
    """Return the state, and a note if no event reached it, or none of the key."""
    from actors.registry import ACTORS
    from events.replay.presence_checks import NothingFound, OtherKind, check_holds, check_holds_key, span_of
    from events.replay.states.partition_state import is_kept_under, partition_named, state_at

    async with open_source(target, log_file) as source:
        say_note(await check_holds(source, upto))
        partition = partition_named(ACTORS[actor], key, source.partitions)
        with progress("folding", min((await source.info()).last_seq, upto.seq)) as advance:
            found = await state_at(source, ACTORS[actor], partition, key, upto, advance)
        if not found.place and key == partition:
            end = (await span_of(source)).end
            where = f"{actor}/{partition}, so that it knows nothing: the {source.name} ends at {end}"
            return found, f"no event up to there reached {where}"
        try:
            if not is_kept_under(found.under_key, key, ACTORS[actor].scope):
                kept = f"the states of {actor} are kept"
                await check_holds_key(source, key, tokens=[partition], scope=ACTORS[actor].scope, kept=kept)
        except OtherKind:
            raise  # such as a session's name where an agent's is needed
        except NothingFound as unknown_key:
            return found, str(unknown_key)
        return found, ""


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()
