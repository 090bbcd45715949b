"""Reading the events of one agent from a log."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from events.decoding import Recorded, address_of, decode
from events.log import Log
from events.replay.sources import Source
from events.replay.unread_events import UnreadEvents


async def events_of_agent(
    log: Log | Source, agent: str, filters: Sequence[str], upto: int | None = None, *, unread: UnreadEvents
) -> AsyncIterator[Recorded]:
    """Read an agent's events that match filters over stored subjects, in order.

    The filters select partitions, which hold other agents' events, too. These are skipped.

    Args:
        log: The log or source to read.
        agent: Whose events; empty for those of no agent.
        filters: Filters over stored subjects; they should name the agent's partition.
        upto: The last sequence to read; None reads to the log's end.
        unread: Where the agent's events that this release cannot read are noted; they are skipped. For a source, give
            its ``unread``, which the command that opened it reports.

    Raises:
        LogError: see ``events.log.Log.history``.
    """
    end = (await log.info()).last_seq if upto is None else upto
    async for batch in log.history(filters, 0, end):
        for each in map(decode, batch):
            if address_of(each)[0] != agent:
                continue
            if isinstance(each, Recorded):
                yield each
            else:
                unread.note(each)


async def latest_events_of_agent(
    source: Source, agent: str, filters: Sequence[str], upto: int, most: int, is_wanted: Callable[[Recorded], bool]
) -> list[Recorded]:
    """Return the latest wanted events of those that :func:`events_of_agent` reads, at most ``most``, oldest first."""
    found: deque[Recorded] = deque(maxlen=most)
    async for recorded in events_of_agent(source, agent, filters, upto, unread=source.unread):
        if is_wanted(recorded):
            found.append(recorded)
    return list(found)
