"""Reading the events of one agent from a log."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from events.decoding import Recorded, decode
from events.log import Log
from events.replay.sources import Source


async def events_of_agent(
    log: Log | Source, agent: str, filters: Sequence[str], upto: int | None = None
) -> AsyncIterator[Recorded]:
    """Read an agent's events that match filters over stored subjects, in order.

    The filters select partitions, which hold other agents' events, too. These are skipped, and events that this release
    cannot read.

    Args:
        log: The log or source to read.
        agent: Whose events; empty for those of no agent.
        filters: Filters over stored subjects; they should name the agent's partition.
        upto: The last sequence to read; None reads to the log's end.

    Raises:
        LogError: see ``events.log.Log.history``.
    """
    end = (await log.info()).last_seq if upto is None else upto
    async for batch in log.history(filters, 0, end):
        for each in map(decode, batch):
            if isinstance(each, Recorded) and each.message.agent == agent:
                yield each


async def latest_events_of_agent(
    log: Log | Source, agent: str, filters: Sequence[str], upto: int, most: int, is_wanted: Callable[[Recorded], bool]
) -> list[Recorded]:
    """Return the latest wanted events of those that :func:`events_of_agent` reads, at most ``most``, oldest first."""
    found: deque[Recorded] = deque(maxlen=most)
    async for recorded in events_of_agent(log, agent, filters, upto):
        if is_wanted(recorded):
            found.append(recorded)
    return list(found)
