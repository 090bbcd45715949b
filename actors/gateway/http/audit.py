"""Putting on record what operators do over HTTP."""

import time
from collections.abc import Callable

from actors.gateway import Client
from actors.gateway.agent_events import build_event
from events.log import Log
from schemas.vocabulary.access import Operated


class Auditing:
    """Appends to the log who did what, before it is done.

    Args:
        log: The log.
        edge: What appends to it, through restarts of the broker.
        wait_s: Seconds that this may take.
        now_ns: This process's clock, Unix nanoseconds, for envelopes.
    """

    def __init__(self, log: Log, edge: Client, *, wait_s: float, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._log = log
        self._edge = edge
        self._wait_s = wait_s
        self._now_ns = now_ns

    async def __call__(self, operated: Operated) -> None:
        """Record an act; raises LogError where that cannot be done in time: the act is then not done."""
        addressed = build_event(operated, "", key="", partitions=self._log.partitions, now_ns=self._now_ns())
        await self._edge.submit(addressed, self._wait_s)
