"""What a log has recorded about an agent, as the events that this release can read."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from events.codec import Recorded, decode
from events.log import Log
from events.replay.sources import Source


async def events_of_agent(
    log: Log | Source, agent: str, filters: Sequence[str], upto: int | None = None
) -> AsyncIterator[Recorded]:
    """Read what is recorded about an agent under filters over stored subjects, in order.

    A partition holds other agents' events too, and a log may hold what this release cannot read: both are passed over.

    Args:
        log: What is read.
        agent: Whose events; empty for those of no agent.
        filters: What of the log is read: the agent's partition is part of them.
        upto: The last sequence that is read; without it the log's end.

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
    """Return the latest of what :func:`events_of_agent` reads and is wanted, ``most`` at most, oldest first."""
    found: deque[Recorded] = deque(maxlen=most)
    async for recorded in events_of_agent(log, agent, filters, upto):
        if is_wanted(recorded):
            found.append(recorded)
    return list(found)
