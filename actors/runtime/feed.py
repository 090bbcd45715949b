"""One reading for all the partitions in a process: each message is read and decoded once, then handed round."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors.runtime.committer import Committer
from actors.runtime.shard import Shard
from events.codec import decode
from events.log import Log, Stored
from events.routes import consumed_filters, own_filters, routes, without_overlap
from events.view import Offered
from schemas.actor import Actor

_SLICE = 64
"""Messages handed out before other tasks get their turn."""

_TURNS_TO_APPEND = 4
"""Turns of the loop from a decision to the bytes of its append on their way."""

Key = tuple[str, str]
"""An actor's name and a partition of it."""


class Feed:
    """Hands the log's messages to shards, in order.

    Attributes:
        position: Sequence up to which every message has been handed out.
    """

    def __init__(self, log: Log, actors: Sequence[Actor[Any]], shards: Mapping[Key, Shard], position: int) -> None:
        self.position = position
        self._log = log
        self._actors = tuple(actors)
        self._shards = shards
        self._routes: dict[str, tuple[tuple[Key, bool], ...]] = {}
        self._late: list[tuple[Shard, Offered, bool]] = []
        self.filters = without_overlap(
            filter for actor in actors for filter in (*consumed_filters(actor), *own_filters(actor))
        )

    async def run(self, committer: Committer, started: Callable[[], None]) -> None:
        """Read until cancelled."""
        tail = await self._log.tail(self.filters, self.position)
        started()
        try:
            while True:
                batch = await tail.next()
                for start in range(0, len(batch), _SLICE):
                    for stored in batch[start : start + _SLICE]:
                        self._hand_out(stored)
                    await self._hand_out_late()
                    await committer.room()
                    await asyncio.sleep(0)
        finally:
            await tail.close()

    def _hand_out(self, stored: Stored) -> None:
        # Set first: a shard that starts to recover because of this message reads it from history again.
        self.position = stored.seq
        known = self._routes.get(stored.subject)
        if known is None:
            found = routes(self._actors, stored.subject, self._log.partitions)
            known = self._routes[stored.subject] = tuple(((actor.name, name), own) for actor, name, own in found)
        takers = [(shard, own) for key, own in known if (shard := self._shards.get(key)) is not None]
        if not takers:
            return
        offered = decode(stored)
        for shard, own in takers:
            if shard.actor.missing_model is None:
                shard.take(offered, own)
            else:
                self._late.append((shard, offered, own))

    async def _hand_out_late(self) -> None:
        """Hand the slice to actors that ask models, which takes milliseconds, once the decisions of others are sent."""
        if not self._late:
            return
        late, self._late = self._late, []
        for _ in range(_TURNS_TO_APPEND):
            await asyncio.sleep(0)
        for shard, offered, own in late:
            shard.take(offered, own)
            await asyncio.sleep(0)
