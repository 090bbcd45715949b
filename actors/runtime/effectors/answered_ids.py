"""Which requests an effector has answered according to the log, and how further answers are stored exactly once.

Each event of the effector is read once, however many requests ask about it. Answers that are ready at the same time are
appended together, in the order in which they became ready. If they were appended one by one, each would wait until the
broker has flushed all before it to disk.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from events.errors import LogError, Refused, Unavailable
from events.log import MAX_BATCH, Append, Fence, Log, Record

T = TypeVar("T")

MOST_IDS = 50_000
"""Ids of answers kept in memory by a process, over all filters."""


class Answer:
    """An answer to be stored.

    Args:
        id: The id of its first event.
        since: Sequence of its request: an answer that is in the log is after it.
        records: Its events.

    Attributes:
        stored: Whether this process stored it (False: the log already held an answer); None until that is known.
        refused: Why the broker refuses these events, if it does.
    """

    def __init__(self, id: str, since: int, records: Sequence[Record]) -> None:
        self.id = id
        self.since = since
        self.records = records
        self.stored: bool | None = None
        self.refused: Refused | None = None

    @property
    def pending(self) -> bool:
        """Whether its outcome is not yet known."""
        return self.stored is None and self.refused is None


class Answers:
    """What an effector has answered, for each filter of subjects under which it answers (one for each agent).

    Args:
        log: Where answers are appended.
        sealed_log: The same log, read without decrypting sealed bodies: ids are in headers.
        most: See :data:`MOST_IDS`.
    """

    def __init__(self, log: Log, sealed_log: Log, most: int = MOST_IDS) -> None:
        self._log = log
        self._sealed_log = sealed_log
        self._most = most
        self._known: OrderedDict[str, AnsweredIds] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(known) for known in self._known.values())

    async def holds(self, filter: str, id: str, since: int) -> bool:
        """Return whether the log holds an event with this id under ``filter``, which can only be after ``since``.

        Raises:
            Unavailable: the log cannot be asked now.
        """
        async with self._of(filter) as known, known.lock:
            await known.catch_up(since)
            return await known.holds(id, since)

    async def store(self, filter: str, answer: Answer) -> bool:
        """Store an answer whose events are under ``filter``, unless the log holds it; return whether it was stored.

        After any error other than Refused the answer keeps its place in the queue and can be stored again.

        Raises:
            Refused: the broker does not accept these events.
            Conflict: another worker has appended meanwhile; try again.
            Unavailable, UnknownOutcome: try again later. If the append arrives at the broker after all, the next call
                finds the answer, or the fence of that append no longer holds: it is not stored twice.
        """
        async with self._of(filter) as known:
            if answer not in known.queue:
                known.queue.append(answer)
            try:
                async with known.lock:
                    while answer.pending:
                        await known.store(self._log)
            except asyncio.CancelledError:
                if answer in known.queue:
                    known.queue.remove(answer)
                raise
        if answer.refused is not None:
            raise answer.refused
        return bool(answer.stored)

    @asynccontextmanager
    async def _of(self, filter: str) -> AsyncIterator["AnsweredIds"]:
        known = self._known.get(filter)
        if known is None:
            known = self._known[filter] = AnsweredIds(self._sealed_log, filter, self._most)
        self._known.move_to_end(filter)
        known.users += 1
        try:
            yield known
        finally:
            known.users -= 1
            self._forget()

    @property
    def read_at(self) -> float:
        """When the log was last read for earlier answers (the event loop's time)."""
        return max((known.read_at for known in self._known.values()), default=0.0)

    def distrust(self) -> None:
        """Have everything known read again: the log was unreachable and may have been restored to an earlier state."""
        for known in self._known.values():
            known.distrusted = True

    def _forget(self) -> None:
        """Forget the filters used least recently; such a filter is read again when it is asked for."""
        kept = len(self)
        for filter, known in list(self._known.items())[:-1]:
            if kept <= self._most:
                return
            if not known.users and not known.queue:
                kept -= len(known)
                del self._known[filter]


class AnsweredIds:
    """The ids of an effector's events under one filter, complete from some sequence on.

    Attributes:
        lock: Held by the task that reads or stores.
        queue: Answers to be stored, in order.
        users: How many tasks use this object now.
        distrusted: Whether everything known must be read again.
        read_at: When earlier answers were last read (the event loop's time).
    """

    def __init__(self, log: Log, filter: str, most: int) -> None:
        self.lock = asyncio.Lock()
        self.queue: deque[Answer] = deque()
        self.users = 0
        self.distrusted = False
        self.read_at = 0.0
        self._log = log
        self._filter = filter
        self._most = most
        self._since: int | None = None  # the sequence after which all ids are known; None: no id is
        self._last = 0  # the sequence up to which events were read
        self._fence = 0  # the sequence of the last event under the filter, which an append must name
        self._ids: set[str] = set()
        self._order: deque[tuple[int, str]] = deque()  # the same ids with their sequences, in order

    def __len__(self) -> int:
        return len(self._order)

    async def catch_up(self, since: int) -> None:
        """Read what was stored after the last read, or after ``since`` at the first. The caller holds the lock."""
        distrusted, self.distrusted = self.distrusted, False
        last = self._fence = await self._read_log(self._log.last(self._filter))
        anew = self._since is None or distrusted or last < self._last
        if anew:  # nothing is known, or the log was restored to an earlier state
            self._since = self._last = since
            self._ids.clear()
            self._order.clear()
        if not last:
            # No message, or one that can no longer be read: then those before it are still to be read.
            last = (await self._read_log(self._log.info())).last_seq
        if last > self._last:
            await self._read_log(self._read(self._last, last))
        if anew:
            self.read_at = asyncio.get_running_loop().time()
        self._last = self._fence or self._last

    async def holds(self, id: str, since: int) -> bool:
        """Return whether an id is known here or is in the log before the known part; see :meth:`Answers.holds`."""
        if self._since is None or since >= self._since or id in self._ids:
            return id in self._ids
        return await self._read_log(self._held_before(id, since, self._since))

    async def store(self, log: Log) -> None:
        """Store the first answers of the queue, as many as one append takes; the caller holds the lock."""
        chosen = list(self._next())
        await self.catch_up(min(answer.since for answer in chosen))
        new = []
        for answer in chosen:
            if await self.holds(answer.id, answer.since):
                answer.stored = False
            else:
                new.append(answer)
        try:
            await self._append_all(log, new)
        finally:
            while self.queue and not self.queue[0].pending:
                self.queue.popleft()

    async def _append_all(self, log: Log, answers: Sequence[Answer]) -> None:
        """Append answers together, or one by one where the broker refuses one of them."""
        try:
            await self._append(log, answers)
        except Refused as refused:
            if len(answers) == 1:
                answers[0].refused = refused
                return
            for answer in answers:
                await self._append_all(log, [answer])

    async def _append(self, log: Log, answers: Sequence[Answer]) -> None:
        records = [record for answer in answers for record in answer.records]
        if not records:
            return
        last = await log.append([Append(records, Fence(self._filter, self._fence))])
        self._keep((last, record.headers["ce-id"]) for record in records)
        self._last = self._fence = last
        for answer in answers:
            answer.stored = True

    def _next(self) -> Iterable[Answer]:
        room = MAX_BATCH
        for index, answer in enumerate(self.queue):
            room -= len(answer.records)
            if index and room < 0:
                return
            yield answer

    async def _read_log(self, reading: Awaitable[T]) -> T:
        """Await a read of the log; raise Unavailable if it fails."""
        try:
            return await reading
        except LogError as error:
            raise Unavailable(f"no answer can be looked for ({error.code}): {error}") from error

    async def _read(self, after: int, upto: int) -> None:
        async for batch in self._log.history([self._filter], after, upto):
            self._keep((stored.seq, stored.headers.get("ce-id", "")) for stored in batch)
            self._last = batch[-1].seq

    def _keep(self, found: Iterable[tuple[int, str]]) -> None:
        for seq, id in found:
            self._order.append((seq, id))
            self._ids.add(id)
        while len(self._order) > self._most:
            self._since, dropped = self._order.popleft()
            self._ids.discard(dropped)

    async def _held_before(self, id: str, since: int, upto: int) -> bool:
        """Return whether the id is among the events before the known part; their ids are kept if there is room."""
        before: list[tuple[int, str]] = []
        found, room = False, self._most - len(self._order)
        async for batch in self._log.history([self._filter], since, upto):
            ids = [(stored.seq, stored.headers.get("ce-id", "")) for stored in batch]
            found = found or any(each == id for _, each in ids)
            if len(before) <= room:
                before.extend(ids)
        if len(before) <= room:
            self._order.extendleft(reversed(before))
            self._ids.update(each for _, each in before)
            self._since = since
        self.read_at = asyncio.get_running_loop().time()
        return found
