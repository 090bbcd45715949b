"""What a stream's leader says, and whether it still leads.

In a cluster a server that was stopped, or cut off from the others, may believe for a while that it leads a stream. Then
it answers by its own copy, which lacks what was stored meanwhile. What a log *holds* is never wrong in such an answer;
what it *lacks* may be. So a message counts as absent only if the answer stays the same for a while, and comes from a
leader that has heard from most copies a moment ago. On a single server the first answer is the truth.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from events.errors import Unavailable
from events.jetstream.connection import Connection

ABSENT_FOR_S = 2.0
"""Seconds for which a cluster must say that a message is absent, or that a stream ends before it."""

_HEARD_WITHIN_NS = 2_000_000_000  # servers send heartbeats every second
_GIVE_UP_AFTER_S = 15.0  # without a leader that hears most copies
_POLL_INTERVAL_S = 0.25


class AbsenceCheck:
    """Confirms an answer that says that a stream lacks something, by asking until that is certain."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._stream = stream
        self._clock = asyncio.get_running_loop().time
        self._started_at = self._since = self._clock()

    async def is_certain(self) -> bool:
        """Return whether the answer can be believed; to be called after each such answer.

        If not, it returns after a short pause, and the question is to be asked again.

        Raises:
            Unavailable: no leader was sure for a long time.
            LogError: the broker cannot be asked.
        """
        info = await self._connection.api(f"STREAM.INFO.{self._stream}")
        if "cluster" not in info:
            return True
        now = self._clock()
        if not _hears_most(info["cluster"]):
            self._since = now
            if now - self._started_at > _GIVE_UP_AFTER_S:
                raise Unavailable(
                    f"the server that answers for stream {self._stream} has no contact with most of its copies: look "
                    "at the cluster with `neuraxis doctor`"
                )
        elif now - self._since >= ABSENT_FOR_S or not info["cluster"].get("replicas"):
            return True
        await asyncio.sleep(_POLL_INTERVAL_S)
        return False


async def confirmed_end(connection: Connection, stream: str, wanted: int) -> int:
    """Return a stream's last sequence: at once if it reached ``wanted``, else once that is certain; raises LogError."""
    check = AbsenceCheck(connection, stream)
    while True:
        info = await connection.api(f"STREAM.INFO.{stream}")
        end = int(info["state"]["last_seq"])
        if end >= wanted or await check.is_certain():
            return end


def _hears_most(cluster: Mapping[str, Any]) -> bool:
    """Whether a leader's answer shows that it heard from most copies, its own included, a moment ago."""
    others = cluster.get("replicas") or ()
    heard = sum(not other.get("offline") and int(other["active"]) < _HEARD_WITHIN_NS for other in others)
    return 2 * (1 + heard) > 1 + len(others)
