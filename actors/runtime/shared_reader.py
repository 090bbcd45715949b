"""One reading of a stretch of the log for all partitions of a process that fold it.

Each partition reads its past through filters of its own, which passes over what is of others. Where the log has gaps,
that is dear: a reading of several filters begins anew behind each gap (see ``events.jetstream.stream_reader``), so that
every partition makes as many consumers as there are gaps. A reading of everything is one filter, and needs none of
this. So what lies behind a gap's begin is read once, and handed round.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from events.codec import decode
from events.errors import LogError
from events.log import Log, Stored
from events.routes import routes
from events.view import Delivery
from schemas.actor import Actor
from schemas.subjects import EVERYTHING

MOST = 100_000
"""Sequences from gap to gap that are read for one partition; for more its own filters are the cheaper way."""

_SLICE = 64
"""Messages handed round before other tasks get their turn."""

Key = tuple[str, str]
"""An actor's name and a partition of it."""

Take = Callable[[Delivery, bool], None]
"""Takes a partition's next message; the flag says whether its actor wrote it."""


class _Request:
    """A partition that waits for its messages of a stretch."""

    def __init__(self, after: int, upto: int, take: Take) -> None:
        self.after = after
        self.upto = upto
        self.take = take
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, wrong: Exception | None = None) -> None:
        """Let the partition go on, unless it waits no more."""
        if self.done.done():
            return
        if wrong is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(wrong)

    def give(self, stored: Stored, delivery: Delivery, own: bool) -> None:
        """Hand a message over, unless the partition does not wait for it (any more)."""
        if self.done.done() or not self.after < stored.seq <= self.upto:
            return
        try:
            self.take(delivery, own)
        except Exception as wrong:
            self.end(wrong)


class SharedReader:
    """Reads for all who ask at the same time; who comes while it reads is served by the next reading.

    Args:
        tasks: Where it reads: whoever asked may be cancelled while others still wait.
    """

    def __init__(self, log: Log, actors: Sequence[Actor[Any]], tasks: asyncio.TaskGroup) -> None:
        self._log = log
        self._actors = tuple(actors)
        self._tasks = tasks
        self._waiting: list[tuple[Key, _Request]] = []
        self._reading: asyncio.Task[None] | None = None

    async def read(self, actor: Actor[Any], partition: str, after: int, upto: int, take: Take) -> None:
        """Hand a partition its messages of a stretch, in order.

        Raises:
            LogError: the log cannot be read.
        """
        request = _Request(after, upto, take)
        self._waiting.append(((actor.name, partition), request))
        if self._reading is None or self._reading.done():
            self._reading = self._tasks.create_task(self._read())
        await request.done

    async def _read(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, []
            for together in _overlapping(asked):
                try:
                    await self._serve(together)
                except LogError as error:
                    for _, request in together:
                        request.end(error)

    async def _serve(self, asked: Sequence[tuple[Key, _Request]]) -> None:
        routed: dict[str, list[tuple[_Request, bool]]] = {}
        after, upto = min(one.after for _, one in asked), max(one.upto for _, one in asked)
        async for batch in self._log.history([EVERYTHING], after, upto):
            for start in range(0, len(batch), _SLICE):
                for stored in batch[start : start + _SLICE]:
                    takers = routed.get(stored.subject)
                    if takers is None:
                        takers = routed[stored.subject] = self._takers(stored.subject, asked)
                    if takers:
                        delivery = decode(stored)
                        for request, own in takers:
                            request.give(stored, delivery, own)
                await asyncio.sleep(0)
        for _, request in asked:
            request.end()

    def _takers(self, subject: str, asked: Sequence[tuple[Key, _Request]]) -> list[tuple[_Request, bool]]:
        owned = {(actor.name, name): own for actor, name, own in routes(self._actors, subject, self._log.partitions)}
        return [(request, owned[key]) for key, request in asked if key in owned]


def _overlapping(asked: Sequence[tuple[Key, _Request]]) -> Sequence[Sequence[tuple[Key, _Request]]]:
    """Return requests in groups whose stretches overlap: what lies between two of them nobody asked for."""
    groups: list[list[tuple[Key, _Request]]] = []
    reached = -1
    for one in sorted(asked, key=lambda each: each[1].after):
        if groups and one[1].after < reached:
            groups[-1].append(one)
        else:
            groups.append([one])
        reached = max(reached, one[1].upto)
    return groups
