"""What the commands have in common that show where an actor stands: fold a partition of it, print what was found."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

if TYPE_CHECKING:
    from events.replay.sources import Source
    from events.view import View

S = TypeVar("S", bound=msgspec.Struct)


async def fold_partition(source: "Source", upto: int, partition: str, *actors: str) -> "Mapping[str, View]":
    """Fold one partition of some actors from a log; return their views by name, those of which the log tells.

    Args:
        source: The log.
        upto: Its last sequence, for the bar of progress.
        partition: The token of an agent or a session.
        actors: Their names.
    """
    from actors.registry import actor_named
    from deploy.cli.rendering.layout.terminal import progress
    from events.replay.replay import Replay
    from events.replay.run import run_replay
    from events.routes import partition_filters, without_overlap

    wanted = [actor_named(name) for name in actors]
    replay = Replay(wanted, source.partitions)
    filters = without_overlap(name for actor in wanted for name in partition_filters(actor, partition))
    with progress("folding", upto) as advance:
        await run_replay(source, replay, filters=filters, progress=advance)
    return {name: view for (name, token), view in replay.views.items() if token == partition}


def print_state(found: S, head: Callable[[S], Iterable[str]], *, as_json: bool) -> None:
    """Print where an actor stands: as JSON, or for people, the head and then each of its fields that holds rows."""
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    from deploy.cli.output import emit
    from deploy.cli.rendering.layout.printable import printable_struct
    from deploy.cli.wrapped_lines import say

    for line in head(printable_struct(found)):
        say(line)
    for rows in msgspec.structs.asdict(found).values():
        if isinstance(rows, tuple) and rows and isinstance(rows[0], msgspec.Struct):
            click.echo()
            emit(rows, as_json=False)
