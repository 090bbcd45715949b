"""One reading for all the partitions in a process: each message is read and decoded once, then handed round."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors.runtime.committer import Committer
from actors.runtime.shard import Shard
from events.codec import decode
from events.log import Log, Stored
from events.routes import consumed_filters, own_filters, partitions_of, without_overlap
from schemas.actor import Actor
from schemas.catalogue import prefixes_of
from schemas.event import topic_of
from schemas.subjects import split_stored

_SLICE = 64
"""Messages handed out before other tasks get their turn."""

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
                    await committer.room()
                    await asyncio.sleep(0)
        finally:
            await tail.close()

    def _hand_out(self, stored: Stored) -> None:
        # Set first: a shard that starts to recover because of this message reads it from history again.
        self.position = stored.seq
        routes = self._routes.get(stored.subject)
        if routes is None:
            routes = self._routes[stored.subject] = self._route(stored.subject)
        takers = [(shard, own) for key, own in routes if (shard := self._shards.get(key)) is not None]
        if not takers:
            return
        offered = decode(stored)
        for shard, own in takers:
            shard.take(offered, own)

    def _route(self, subject: str) -> tuple[tuple[Key, bool], ...]:
        topic, _, _ = split_stored(subject)
        prefix = topic.split(".")[1]
        routes = []
        for actor in self._actors:
            own = prefix in prefixes_of(actor.name)
            if own or any(topic_of(event) == topic for event in actor.consumes):
                routes += [((actor.name, name), own) for name in partitions_of(actor, subject, self._log.partitions)]
        return tuple(routes)
