"""``neuraxis diff``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.options import Target, examples, json_option, target_options
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import change_text, print_json
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.cli.wrapped_lines import say, say_note

if TYPE_CHECKING:
    from events.replay.run_replay import Point


@command(
    epilog=examples(
        "neuraxis diff breaker ann --at 1200 --at 1300",
        "neuraxis diff 1200 1300 --log backup/ledger.db",
        "neuraxis diff 1200 2026-01-31T12:00:00Z --actor router --key travel --json",
    )
)
@click.argument("first", metavar="ACTOR|FROM")
@click.argument("second", metavar="KEY|TO")
@target_options
@log_option
@click.option("--at", "at", multiple=True, metavar="SEQ|TIME", help="A point; twice, with ACTOR and KEY.")
@click.option("--actor", "actor", default="", metavar="NAME", help="With FROM and TO: this actor only.")
@click.option("--key", "key", default="", metavar="KEY", help="With --actor: this session's, agent's or partition's.")
@json_option
async def diff(
    target: Target,
    first: str,
    second: str,
    log_file: Path | None,
    at: Sequence[str],
    actor: str,
    key: str,
    as_json: bool,
) -> None:
    """Print what changed in the actors' states between two points of the log.

    Either one actor's partition, `diff ACTOR KEY --at FROM --at TO`, or all of them, `diff FROM TO`. With --json, a
    line for each change: op, path, before, after. The states hold people's words.
    """
    from actors.registry import ACTORS, actor_named
    from events.replay.presence_checks import check_holds_both, check_holds_key
    from events.replay.run_replay import point_of
    from events.replay.states.diffing import changed_between, path_text
    from events.replay.states.partition_state import partition_named

    if at and (len(at) != 2 or actor or key):
        raise WrongUse("--at is given twice, with an actor and a key: neuraxis diff ACTOR KEY --at FROM --at TO")
    if not at and first in ACTORS:
        raise WrongUse(f"{first} is an actor: give two points, too: neuraxis diff {first} {second} --at FROM --at TO")
    if at and not second:
        raise WrongUse("the key is empty: name a session, an agent or a partition")
    if key and not actor:
        raise WrongUse("--key needs --actor: keys of different actors name different things")
    name, wanted = (first, second) if at else (actor, key)
    actors = [actor_named(name)] if name else list(ACTORS.values())
    points = (point_of(at[0]), point_of(at[1])) if at else (point_of(first), point_of(second))
    if _is_behind(*points):
        raise WrongUse("the first point lies behind the second: give the earlier one first")
    async with open_source(target, log_file) as source:
        partition = partition_named(actors[0], wanted, source.partitions) if wanted else None
        say_note(await check_holds_both(source, *points))
        if partition:
            kept = f"the states of {actors[0].name} are kept"
            await check_holds_key(source, wanted, tokens=[partition], scope=actors[0].scope, kept=kept)
        last = (await source.info()).last_seq
        with progress("folding", min(last, max(point.seq for point in points))) as advance:
            found = await changed_between(source, actors, partition, points, advance)
    for part in found:
        if not as_json:
            say(f"{part.actor}/{part.partition} from sequence {part.place_before} to {part.place_after}")
        for change in part.changes:
            if as_json:
                where = {"actor": part.actor, "partition": part.partition}
                print_json(where | msgspec.to_builtins(change))
            else:
                say(printable(f"  {path_text(change.path)}: {change_text(change.before, change.after)}"))
    if not found and not as_json:
        say("nothing changed")


def _is_behind(first: "Point", second: "Point") -> bool:
    """Whether the first of two points is surely the later one; a sequence and a time are not compared."""
    if first.time_ns == second.time_ns:
        return first.seq > second.seq
    return first.seq == second.seq and first.time_ns > second.time_ns
