"""``neuraxis log tail``."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.command_types import command
from deploy.cli.following import FollowedTail
from deploy.cli.options import Target, examples, json_option, target_options, whole_number
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.terminal import console, print_hanging
from deploy.cli.replaying.source_opening import (
    filter_of,
    log_option,
    open_source,
    stream_or_ledger,
    stream_source,
    until_ctrl_c,
)

if TYPE_CHECKING:
    from events.jetstream import JetStreamLog
    from events.log import Stored
    from events.replay.sources import Source

_DEFAULT_COUNT = 10


@command(
    epilog=examples(
        "neuraxis log tail",
        "neuraxis log tail --topic 'forged_id.router.>' --since 1 --json",
        "neuraxis log tail --log backup/ledger.db --count 100 --text",
    )
)
@target_options
@log_option
@click.option("--topic", default="", metavar="SUBJECT", help="Only this public subject; * and > are wildcards.")
@click.option(
    "--since", type=whole_number(1), metavar="SEQ", help=f"From there on.  [default: the last {_DEFAULT_COUNT}]"
)
@click.option(
    "--count",
    type=whole_number(1),
    metavar="N",
    help="End after N events; without --since, the last N come first.",
)
@click.option("--no-follow", is_flag=True, help="End at the end of the log instead of waiting for more.")
@click.option("--text", "show_text", is_flag=True, help="Show people's words, which are hidden otherwise.")
@json_option
async def tail(
    target: Target,
    log_file: Path | None,
    topic: str,
    since: int | None,
    count: int | None,
    no_follow: bool,
    show_text: bool,
    as_json: bool,
) -> None:
    """Print events as they are stored, until Ctrl-C; a ledger file is read to its end."""
    from deploy.cli.rendering.event_rows import entry_of, group_unreadable, line_of

    out, remaining = console(), count
    follow = not no_follow and log_file is None
    with until_ctrl_c():
        async with aclosing(_messages(target, log_file, topic, since, count, follow)) as messages:
            async for batch in messages:
                entries = [entry_of(stored, words=show_text) for stored in batch[:remaining]]
                if as_json:
                    for entry in entries:
                        print_json(entry)
                else:
                    for entry, others in group_unreadable(entries):
                        print_hanging(out, line_of(entry, others), 9)
                if remaining is not None:
                    remaining -= len(batch)
                    if remaining <= 0:
                        return


async def _messages(
    target: Target, log_file: Path | None, topic: str, since: int | None, count: int | None, follow: bool
) -> AsyncGenerator[Sequence["Stored"]]:
    """Yield the events since a sequence, or the latest ones, and then new ones.

    ``count`` is how many of the latest ones; None: the default number.
    """
    from events.replay.presence_checks import NothingFound, check_holds_since
    from events.replay.sources import LedgerSource
    from schemas.intake.topics import unknown_topic

    filter = filter_of(topic)
    async with AsyncExitStack() as open_things:
        source: Source
        live: JetStreamLog | None = None
        if follow:
            found = await open_things.enter_async_context(stream_or_ledger(target))
            # A ledger is read where the set is stopped: no new events come to it.
            live = None if isinstance(found, LedgerSource) else found
            source = found if isinstance(found, LedgerSource) else stream_source(open_things, found)
        else:
            source = await open_things.enter_async_context(open_source(target, log_file))
        last = (await source.info()).last_seq
        if live is None or (since or 0) > last + 1:
            await check_holds_since(source, since or 1)
        latest = count or _DEFAULT_COUNT
        any_past = False
        async for batch in _past(source, filter, since, latest, last):
            any_past = True
            yield batch
        # No new event will be of a subject that neither this release nor the log knows.
        if not any_past and (live is None or (topic and unknown_topic(topic))):
            begin = f" from sequence {since:,} on" if since is not None else ""
            raise NothingFound(f"no event in the {source.name}{begin} is of that subject, so that nothing is shown")
        if live is not None:
            reading = FollowedTail(await live.tail([filter], max(last, (since or 1) - 1)), live)
            open_things.push_async_callback(reading.close)
            while True:
                yield await reading.next()


async def _past(
    source: "Source", filter: str, since: int | None, latest: int, last: int
) -> AsyncIterator[Sequence["Stored"]]:
    from schemas.subjects import EVERYTHING

    if since is not None:
        async for batch in source.history([filter], since - 1, last):
            yield batch
        return
    # The latest events of one subject may be anywhere in the log, so all of it is read.
    after = max(0, last - latest) if filter == EVERYTHING else 0
    kept: deque[Stored] = deque(maxlen=latest)
    async for batch in source.history([filter], after, last):
        kept.extend(batch)
    if kept:
        yield tuple(kept)
