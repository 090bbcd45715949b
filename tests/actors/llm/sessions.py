"""Sessions that have begun: their first input makes the key that a sealed log keeps their words with."""

import time

from actors.gateway import Client, new_input
from events.jetstream import JetStreamLog


async def begun(log: JetStreamLog, agent: str = "ann", session: str = "s") -> None:
    """Have a session begin."""
    addressed = new_input(
        "Hello",
        agent=agent,
        session=session,
        partitions=log.partitions,
        now_ns=time.time_ns(),
        exchange="exchange-first",
    )
    async with Client.open(log) as edge:
        await edge.submit(addressed)
