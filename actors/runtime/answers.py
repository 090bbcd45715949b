"""Which requests an effector has answered, as the log tells; each of its events is read once, however many ask."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from events.errors import LogError, Unavailable
from events.log import Log

MOST_IDS = 50_000
"""Ids of answers kept in a process, over all filters."""


class Answers:
    """What an effector has answered, filter by filter; see :meth:`of`.

    Args:
        log: Where answers are; ids are in headers, so that it need open nothing.
        most: See :data:`MOST_IDS`.
    """

    def __init__(self, log: Log, most: int = MOST_IDS) -> None:
        self._log = log
        self._most = most
        self._known: OrderedDict[str, Known] = OrderedDict()

    @asynccontextmanager
    async def of(self, filter: str) -> AsyncIterator["Known"]:
        """Have what is known under a filter for the block, alone: whoever else asks for it waits."""
        known = self._known.get(filter)
        if known is None:
            known = self._known[filter] = Known(self._log, filter, self._most)
        self._known.move_to_end(filter)
        known.users += 1
        try:
            async with known.lock:
                yield known
        finally:
            known.users -= 1
            self._forget()

    def _forget(self) -> None:
        """Drop the filters that were asked for least lately; what is dropped is read again when it is asked for."""
        kept = sum(len(known) for known in self._known.values())
        for filter, known in list(self._known.items())[:-1]:
            if kept <= self._most:
                return
            if not known.users:
                kept -= len(known)
                del self._known[filter]


class Known:
    """The ids of an effector's events under one filter, without a gap from some sequence on.

    Attributes:
        lock: Held by whoever asks.
        users: How many hold the lock or wait for it.
        last: Sequence of the last event under the filter when it was asked for last: a fence.
    """

    def __init__(self, log: Log, filter: str, most: int) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.last = 0
        self._log = log
        self._filter = filter
        self._most = most
        self._since: int | None = None
        self._ids: set[str] = set()
        self._order: deque[tuple[int, str]] = deque()

    def __len__(self) -> int:
        return len(self._order)

    async def holds(self, answer: str, since: int) -> bool:
        """Whether the log holds an event with an id, which can only come after a sequence.

        Raises:
            Unavailable: the log cannot be asked now.
        """
        try:
            return await self._holds(answer, since)
        except LogError as error:
            raise Unavailable(f"no answer can be looked for ({error.code}): {error}") from error

    def note(self, answer: Iterable[str], last: int) -> None:
        """Note events that were appended behind the fence :attr:`last`, of which the last has a sequence."""
        self._keep((last, one) for one in answer)
        self.last = last

    async def _holds(self, answer: str, since: int) -> bool:
        last = await self._log.last(self._filter)
        if self._since is None or last < self.last:  # nothing is known, or the log has been put back
            self._clear(since)
        if last > self.last:
            await self._read(self.last, last)
        self.last = last
        assert self._since is not None
        return answer in self._ids or (since < self._since and await self._held_before(answer, since))

    def _clear(self, since: int) -> None:
        self._since = self.last = since
        self._ids.clear()
        self._order.clear()

    async def _read(self, after: int, upto: int) -> None:
        async for batch in self._log.history([self._filter], after, upto):
            self._keep((stored.seq, stored.headers.get("ce-id", "")) for stored in batch)
            self.last = batch[-1].seq

    def _keep(self, found: Iterable[tuple[int, str]]) -> None:
        for seq, one in found:
            self._order.append((seq, one))
            self._ids.add(one)
        while len(self._order) > self._most:
            self._since, dropped = self._order.popleft()
            self._ids.discard(dropped)

    async def _held_before(self, answer: str, since: int) -> bool:
        """Whether an event is among those before what is known, which are kept as well where there is room."""
        assert self._since is not None
        before: list[tuple[int, str]] = []
        async for batch in self._log.history([self._filter], since, self._since):
            before.extend((stored.seq, stored.headers.get("ce-id", "")) for stored in batch)
        if len(before) + len(self._order) <= self._most:
            self._order.extendleft(reversed(before))
            self._ids.update(one for _, one in before)
            self._since = since
        return any(one == answer for _, one in before)
