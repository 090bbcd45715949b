"""For commands that show an actor's state: folds one of its partitions, and prints the result."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from deploy.cli.output import emit, print_json
from deploy.cli.rendering.layout.printable import printable_struct
from deploy.cli.rendering.layout.terminal import progress
from deploy.cli.wrapped_lines import say

if TYPE_CHECKING:
    from events.partition_fold import View
    from events.replay.sources import Source

S = TypeVar("S", bound=msgspec.Struct)


async def fold_partition(source: "Source", partition: str, *actors: str) -> "Mapping[str, View]":
    """Fold one partition (a token) of some actors from a log; return the views, by actor, of those that occur in it."""
    from actors.registry import actor_named
    from events.replay.replay import Replay
    from events.replay.run_replay import run_replay
    from events.routes import partition_filters, without_overlap

    wanted = [actor_named(name) for name in actors]
    replay = Replay(wanted, source.partitions)
    filters = without_overlap(
        name for actor in wanted for name in partition_filters(actor, partition, source.partitions)
    )
    with progress("folding", (await source.info()).last_seq) as advance:
        await run_replay(source, replay, filters=filters, progress=advance)
    source.unread.add(replay.unread)
    return {name: view for (name, token), view in replay.views.items() if token == partition}


def print_state(state: S, head: Callable[[S], Iterable[str]], *, as_json: bool) -> None:
    """Print an actor's state: as JSON, or for people: the head, and then a table for each field that holds rows."""
    if as_json:
        print_json(state)
        return

    for line in head(printable_struct(state)):
        say(line)
    for rows in msgspec.structs.asdict(state).values():
        if isinstance(rows, tuple) and rows and isinstance(rows[0], msgspec.Struct):
            click.echo()
            emit(rows, as_json=False)
