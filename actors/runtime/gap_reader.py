"""Reads a range of the log that has gaps once for all partitions of a process that fold it.

Normally each partition reads its past through filters of its own, which skip messages of others. With gaps in the log
that is expensive: a consumer with several filters must be created again after each gap (see
``events.jetstream.reading.stream_reader``), so every partition would create as many consumers as there are gaps. A read
of all subjects has a single filter and does not have this problem. So the part of the log from the first gap on is read
once and its messages are dispatched to all.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from events.decoding import decode
from events.errors import LogError
from events.log import Log, Stored
from events.partition_fold import Delivery
from events.routes import routes
from schemas.actor import Actor
from schemas.subjects import EVERYTHING, Partitions

MOST_SEQUENCES = 100_000
"""Most sequences from one gap to the next that are read this way; beyond that a partition's own filters are cheaper."""

_AT_ONCE = 64
"""Messages dispatched before other tasks get to run."""

Key = tuple[str, str]
"""An actor's name and a partition of it."""

Receive = Callable[[Delivery, bool], None]
"""Receives a partition's next message; the flag says whether its actor wrote it."""


class _Request:
    """A partition that waits for its messages from a range of the log."""

    def __init__(self, after: int, upto: int, receive: Receive, partitions: Partitions) -> None:
        self.after = after
        self.upto = upto
        self.receive = receive
        self.partitions = partitions
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, wrong: Exception | None = None) -> None:
        """Let the partition continue, unless it no longer waits."""
        if self.done.done():
            return
        if wrong is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(wrong)

    def deliver(self, stored: Stored, delivery: Delivery, own: bool) -> None:
        """Hand a message over, unless the partition does not wait for it (or no longer waits)."""
        if self.done.done() or not self.after < stored.seq <= self.upto:
            return
        try:
            self.receive(delivery, own)
        except Exception as wrong:
            self.end(wrong)


class SharedReader:
    """Reads for all partitions that ask at the same time; those that ask during a read get the next one.

    Args:
        tasks: The group in which it reads: the partition that asked may be cancelled while others still wait.
        filters: What it reads: everything, unless the login may not.
    """

    def __init__(
        self,
        log: Log,
        actors: Sequence[Actor[Any]],
        tasks: asyncio.TaskGroup,
        filters: Sequence[str] = (EVERYTHING,),
    ) -> None:
        self._log = log
        self._actors = tuple(actors)
        self._tasks = tasks
        self._filters = tuple(filters)
        self._waiting: list[tuple[Key, _Request]] = []
        self._reading: asyncio.Task[None] | None = None

    async def read(
        self,
        actor: Actor[Any],
        partition: str,
        after: int,
        upto: int,
        receive: Receive,
        partitions: Partitions | None = None,
    ) -> None:
        """Hand a partition its messages of a range, in order; ``partitions`` are the partition counts of that range.

        Raises:
            LogError: the log cannot be read.
        """
        request = _Request(after, upto, receive, partitions or self._log.partitions)
        self._waiting.append(((actor.name, partition), request))
        if self._reading is None or self._reading.done():
            self._reading = self._tasks.create_task(self._read())
        await request.done

    async def _read(self) -> None:
        while self._waiting:
            requests, self._waiting = self._waiting, []
            for together in _overlapping(requests):
                try:
                    await self._serve(together)
                except LogError as error:
                    for _, request in together:
                        request.end(error)

    async def _serve(self, requests: Sequence[tuple[Key, _Request]]) -> None:
        routed: dict[str, list[tuple[_Request, bool]]] = {}
        after, upto = min(one.after for _, one in requests), max(one.upto for _, one in requests)
        async for batch in self._log.history(self._filters, after, upto):
            for start in range(0, len(batch), _AT_ONCE):
                for stored in batch[start : start + _AT_ONCE]:
                    receivers = routed.get(stored.subject)
                    if receivers is None:
                        receivers = routed[stored.subject] = self._receivers(stored.subject, requests)
                    if receivers:
                        delivery = decode(stored)
                        for request, own in receivers:
                            request.deliver(stored, delivery, own)
                await asyncio.sleep(0)
        for _, request in requests:
            request.end()

    def _receivers(self, subject: str, requests: Sequence[tuple[Key, _Request]]) -> list[tuple[_Request, bool]]:
        owned = {
            (partitions, actor.name, name): own
            for partitions in dict.fromkeys(request.partitions for _, request in requests)
            for actor, name, own in routes(self._actors, subject, partitions)
        }
        return [(request, owned[found]) for key, request in requests if (found := (request.partitions, *key)) in owned]


def _overlapping(requests: Sequence[tuple[Key, _Request]]) -> Sequence[Sequence[tuple[Key, _Request]]]:
    """Return requests in groups whose ranges overlap, since nobody asked for what is between two groups."""
    groups: list[list[tuple[Key, _Request]]] = []
    reached = -1
    for one in sorted(requests, key=lambda each: each[1].after):
        if groups and one[1].after < reached:
            groups[-1].append(one)
        else:
            groups.append([one])
        reached = max(reached, one[1].upto)
    return groups
