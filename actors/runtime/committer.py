"""Group commit: what a process's partitions have decided becomes appends to the log.

One event is cheap as a plain fenced publish and dear as an atomic batch; a hundred are the other way round, and
on a single-node broker batches are serialised. So decisions go out singly until a real backlog has built, then
all that waits goes out as one batch with the fences of its partitions in it.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import msgspec

from events.decision import NewEvent
from events.errors import Conflict, Misconfigured, Refused, Unavailable, UnknownOutcome
from events.log import MAX_BATCH, Append, Fence, Log, Record
from events.loggers import get_logger
from schemas.event import Configured, Failed

BATCH_FROM = 48
"""Waiting events from which a batch beats single publishes, at a broker that flushes every append.

An estimate kept from the appends' own times did worse than fixed numbers: what it measures depends on what it chose.
"""

BATCH_FROM_UNFLUSHED = 160
"""The same at a broker that flushes now and then: singles cost a tenth there, and a batch flushes all there is."""

SINGLES = 16
"""Single publishes in flight at most."""

ROOM = 4_000
"""Waiting events above which no more messages are read."""

_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
_logger = get_logger("neuraxis.committer")


class Group(msgspec.Struct, frozen=True):
    """The events of one decision, with their records; stored all or none."""

    decided: tuple[NewEvent, ...]
    records: tuple[Record, ...]


class Writer(Protocol):
    """A partition whose decisions are to be appended; implemented by ``Shard``.

    ``outbox`` holds decisions not yet acknowledged, oldest first; ``epoch`` changes whenever they are thrown away.
    """

    outbox: deque[Group]
    epoch: int

    def fence(self) -> Fence:
        """Return the fence that the next append must hold."""
        ...

    def committed(self, groups: Sequence[Group], last_seq: int) -> None:
        """Take note that these groups are stored, the last record at ``last_seq``."""
        ...

    def reset(self, reason: str, last: int | None = None) -> None:
        """Drop the state and recover: another writer was here, or the outcome is unknown.

        ``last`` is the sequence that the log said is the fence's last, if it said so.
        """
        ...

    def refused(self, group: Group, why: str) -> None:
        """Take note that the broker will never store this group."""
        ...


class Committer:
    """Appends the outboxes of a process's partitions; at most one append under way for each.

    Attributes:
        appended: Events stored so far.
        batches: Atomic batches begun so far.
    """

    def __init__(self, log: Log, tasks: asyncio.TaskGroup, batch_from: int = BATCH_FROM) -> None:
        self._log = log
        self._batch_from = batch_from
        self._tasks = tasks
        self._ready: dict[Writer, None] = {}
        self._busy: set[Writer] = set()
        self._under_way: set[asyncio.Task[None]] = set()
        self._singles = 0
        self._batch = False
        self._wanted = asyncio.Event()
        self._progress = asyncio.Event()
        self.appended = 0
        self.batches = 0

    def submit(self, writer: Writer) -> None:
        """Note that ``writer``'s outbox holds something; appends start when the loop comes round."""
        if writer not in self._busy:
            self._ready[writer] = None
            self._wanted.set()

    @property
    def waiting(self) -> int:
        """Events that wait for an append."""
        return sum(len(group.records) for writer in self._ready for group in writer.outbox)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        return not self._ready and not self._busy

    async def wait_capacity(self) -> None:
        """Wait until there is room for more decisions."""
        while self.waiting > ROOM:
            self._progress.clear()
            await self._progress.wait()

    async def drained(self) -> None:
        """Wait until nothing waits and nothing is under way."""
        while not self.idle:
            self._progress.clear()
            await self._progress.wait()

    def close(self) -> None:
        """Give up what is under way: a broker that never comes back must not hold up the end of a process."""
        for task in tuple(self._under_way):
            task.cancel()

    async def run(self) -> None:
        """Start appends until cancelled; once a turn of the loop, so that a read batch is seen as one."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._pump()

    def _pump(self) -> None:
        for writer in [writer for writer in self._ready if not writer.outbox]:
            del self._ready[writer]
        if not self._ready:
            return
        backlog = self.waiting >= self._batch_from
        if not self._batch and (backlog or any(len(writer.outbox[0].records) > 1 for writer in self._ready)):
            self._start_batch()
        if backlog:
            return
        for writer in tuple(self._ready):
            if self._singles >= SINGLES:
                return
            if len(writer.outbox[0].records) == 1:
                self._start((writer,), ((writer.outbox[0],),), single=True)

    def _start_batch(self) -> None:
        writers, portions, room = [], [], MAX_BATCH
        for writer in self._ready:
            portion = []
            for group in writer.outbox:
                if len(group.records) > room:
                    break
                portion.append(group)
                room -= len(group.records)
            if portion:
                writers.append(writer)
                portions.append(tuple(portion))
        self._start(tuple(writers), tuple(portions), single=False)

    def _start(self, writers: tuple[Writer, ...], portions: tuple[tuple[Group, ...], ...], *, single: bool) -> None:
        for writer in writers:
            del self._ready[writer]
            self._busy.add(writer)
        if single:
            self._singles += 1
        else:
            self._batch = True
            self.batches += 1
        epochs = tuple(writer.epoch for writer in writers)
        task = self._tasks.create_task(self._run(writers, portions, epochs, single))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _run(
        self,
        writers: tuple[Writer, ...],
        portions: tuple[tuple[Group, ...], ...],
        epochs: tuple[int, ...],
        single: bool,
    ) -> None:
        try:
            await self._commit(writers, portions, epochs)
        finally:
            if single:
                self._singles -= 1
            else:
                self._batch = False
            for writer in writers:
                self._busy.discard(writer)
                if writer.outbox:
                    self._ready[writer] = None
            self._progress.set()
            self._wanted.set()

    async def _commit(
        self, writers: tuple[Writer, ...], portions: tuple[tuple[Group, ...], ...], epochs: tuple[int, ...]
    ) -> None:
        """Append the portions together; where that is refused, apart, to find whose portion it was."""
        current = [
            (writer, portion, epoch)
            for writer, portion, epoch in zip(writers, portions, epochs, strict=True)
            if writer.epoch == epoch
        ]
        if not current:
            return
        try:
            last = await self._append([(writer, portion) for writer, portion, _ in current])
        except (Conflict, Refused) as error:
            await self._commit_apart(current, error)
            return
        except UnknownOutcome as error:
            for writer, _, epoch in current:
                if writer.epoch == epoch:
                    writer.reset(error.code)
            return
        for writer, portion, epoch in reversed(current):
            if writer.epoch == epoch:
                writer.committed(portion, last)
            last -= sum(len(group.records) for group in portion)

    async def _commit_apart(
        self, current: list[tuple[Writer, tuple[Group, ...], int]], error: Conflict | Refused
    ) -> None:
        if len(current) > 1:
            for writer, portion, epoch in current:
                await self._commit((writer,), (portion,), (epoch,))
            return
        (writer, portion, epoch) = current[0]
        if writer.epoch != epoch:
            return
        if isinstance(error, Conflict):
            writer.reset(error.code, error.last)
        elif len(portion) > 1:
            await self._commit((writer,), (portion[:1],), (epoch,))
        elif isinstance(portion[0].decided[0].message.event, Failed | Configured):
            raise Misconfigured(f"the broker takes not even a failure record: {error}") from error
        else:
            _logger.error("append_refused", topic=portion[0].decided[0].topic, detail=str(error))
            writer.refused(portion[0], str(error))

    async def _append(self, pieces: list[tuple[Writer, tuple[Group, ...]]]) -> int:
        """Append until the broker takes or refuses it; while it cannot be reached nothing was stored, so again."""
        wait = _RETRY_FIRST
        appends = [
            Append(group.records, writer.fence() if place == 0 else None)
            for writer, portion in pieces
            for place, group in enumerate(portion)
        ]
        while True:
            try:
                last = await self._log.append(appends)
            except Unavailable as error:
                _logger.warning("append_waits", error=error.code, detail=str(error), seconds=wait)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _RETRY_MOST)
            else:
                self.appended += sum(len(append.records) for append in appends)
                return last
