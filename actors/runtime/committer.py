"""Group commit: appends to the log what the partitions of a process have decided.

Each append has a *fence* for each partition in it: the broker stores it only if the last event of that partition is the
one that this process knows. So a worker that no longer leads a partition cannot write for it.

A single event is cheapest as a plain fenced publish. A hundred events are cheapest as one atomic batch, because a
single-node broker stores batches one after another. So decisions are published singly at first. Once enough events
wait, all of them go out as one batch, which carries the fence of each partition in it.

An exchange is a chain of decisions, so it waits for every step between a decision and its append. A single event is
therefore sent without a task of its own, in the iteration of the event loop in which its message was dispatched. A task
takes over where waiting may be needed: for batches, and when a single append fails.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import msgspec

from actors.runtime.measurements import Histogram
from events.errors import Conflict, LogError, Misconfigured, Refused, Unavailable, UnknownOutcome
from events.log import MAX_BATCH, Append, Fence, Log, Record
from events.loggers import get_logger
from events.make_decision import NewEvent
from events.warning_backoff import WarningBackoff
from schemas.event import Configured, Failed

BATCH_FROM = 48
"""From this many waiting events on, one batch is faster than single publishes, at a broker that flushes every append.

The number is fixed. An estimate from measured append times was tried and did worse: the measurements depend on which of
the two ways was chosen before.
"""

BATCH_FROM_UNFLUSHED = 160
"""``BATCH_FROM`` at a broker that flushes at once only batches: there, a publish takes a tenth of the time."""

SINGLES = 16
"""Most single publishes in flight."""

MOST_WAITING = 4_000
"""Reading pauses while more events than this wait for an append."""

_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
"""First and longest pause before an append is tried again, in seconds."""

_logger = get_logger("neuraxis.committer")


class Group(msgspec.Struct, frozen=True):
    """The events of one decision, with their records; stored all or none."""

    decided: tuple[NewEvent, ...]
    records: tuple[Record, ...]


class Writer(Protocol):
    """A partition whose decisions are to be appended; implemented by ``Shard``.

    ``outbox`` holds decisions that the broker has not acknowledged yet, oldest first. ``epoch`` is a count that changes
    each time they are discarded.
    """

    outbox: deque[Group]
    epoch: int

    def fence(self) -> Fence:
        """Return the fence that the next append must hold."""

    def committed(self, groups: Sequence[Group], last_seq: int) -> None:
        """Take note that these groups are stored, the last record at ``last_seq``."""

    def reset(self, reason: str, last: int | None = None) -> None:
        """Discard the state and recover, because another writer appended or the outcome of an append is unknown.

        ``last`` is the sequence of the partition's last event as the log stated it, None where the log did not.
        """

    def refused(self, group: Group) -> None:
        """Handle a group that the broker will never store."""


class Committer:
    """Appends the outboxes of a process's partitions; each partition has at most one append in flight.

    Args:
        log: Where they are appended.
        tasks: The group that its tasks belong to.
        batch_from: Waiting events from which they are appended as one batch; see :data:`BATCH_FROM`.

    Attributes:
        appended: Events stored so far.
        batches: Atomic batches started so far.
        singles: How long appends of one event took until they were acknowledged.
        batched: How long appends of several events took.
    """

    def __init__(self, log: Log, tasks: asyncio.TaskGroup, batch_from: int = BATCH_FROM) -> None:
        self._log = log
        self._batch_from = batch_from
        self._tasks = tasks
        self._ready: dict[Writer, None] = {}  # those with decisions to append
        self._busy: set[Writer] = set()  # those with an append in flight
        self._closed = False
        self._failed: BaseException | None = None
        self._appends: set[asyncio.Task[None]] = set()
        self._singles_in_flight = 0
        self._batch_in_flight = False
        self._work_waits = asyncio.Event()
        self._progress = asyncio.Event()
        self._wait_warnings = WarningBackoff()
        self.appended = 0
        self.batches = 0
        self.singles, self.batched = Histogram(), Histogram()

    def submit(self, writer: Writer) -> None:
        """Note that ``writer`` has decisions in its outbox.

        They are appended from the next iteration of the event loop on, or by an earlier call of :meth:`start`.
        """
        if writer not in self._busy:
            self._ready[writer] = None
            self._work_waits.set()

    @property
    def waiting(self) -> int:
        """Events that wait for an append."""
        return sum(len(group.records) for writer in self._ready for group in writer.outbox)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and no append is in flight."""
        return not self._ready and not self._busy

    async def wait_capacity(self) -> None:
        """Wait until there is room for more decisions."""
        while self.waiting > MOST_WAITING:
            self._progress.clear()
            await self._progress.wait()

    async def drained(self) -> None:
        """Wait until nothing waits and no append is in flight."""
        while not self.idle:
            self._progress.clear()
            await self._progress.wait()

    def close(self) -> None:
        """Stop waiting for the appends in flight: a broker that never comes back must not delay the process's end."""
        self._closed = True
        for task in tuple(self._appends):
            task.cancel()

    async def run(self) -> None:
        """Start appends until cancelled, once per loop iteration: messages read together are then appended together."""
        try:
            while True:
                await self._work_waits.wait()
                self._work_waits.clear()
                if self._failed is not None:
                    raise self._failed
                self.start()
        finally:
            self._closed = True

    def start(self) -> None:
        """Start the appends that may start now, without waiting for the next iteration of the event loop."""
        for writer in [writer for writer in self._ready if not writer.outbox]:
            del self._ready[writer]
        if not self._ready or self._closed:
            return
        backlog = self.waiting >= self._batch_from
        if not self._batch_in_flight and (backlog or any(len(writer.outbox[0].records) > 1 for writer in self._ready)):
            self._start_batch()
        if backlog:
            return
        for writer in tuple(self._ready):
            if self._singles_in_flight >= SINGLES:
                return
            if len(writer.outbox[0].records) == 1 and not self._send(writer, writer.outbox[0]):
                self._start((writer,), ((writer.outbox[0],),), single=True)

    def _send(self, writer: Writer, group: Group) -> bool:
        """Send the one event of a decision now; return False if it cannot be sent without waiting."""
        on_done = partial(self._on_done, writer, group, writer.epoch, time.perf_counter_ns())
        if not self._log.append_now(Append(group.records, writer.fence()), on_done):
            return False
        del self._ready[writer]
        self._busy.add(writer)
        self._singles_in_flight += 1
        return True

    def _on_done(self, writer: Writer, group: Group, epoch: int, begun: int, outcome: int | BaseException) -> None:
        if self._closed:
            return
        try:
            self._end_single(writer, group, epoch, begun, outcome)
        except BaseException as failed:
            # It is raised by ``run``: a callback that raises would not end the process.
            self._failed = failed
        self._progress.set()
        self._work_waits.set()

    def _end_single(self, writer: Writer, group: Group, epoch: int, begun: int, outcome: int | BaseException) -> None:
        self._singles_in_flight -= 1
        self._busy.discard(writer)
        if isinstance(outcome, int):
            self.appended += 1
            self.singles.observe(time.perf_counter_ns() - begun)
            if writer.epoch == epoch:
                writer.committed((group,), outcome)
        elif not isinstance(outcome, LogError):
            raise outcome
        elif writer.epoch == epoch:
            if isinstance(outcome, Unavailable):  # nothing is stored, so try again
                self._start((writer,), ((group,),), single=True)
                return
            _recover(writer, group, outcome)
        if writer.outbox:
            self._ready[writer] = None

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
        """Start one append; ``portions`` are the groups of each writer that it stores."""
        for writer in writers:
            self._ready.pop(writer, None)
            self._busy.add(writer)
        if single:
            self._singles_in_flight += 1
        else:
            self._batch_in_flight = True
            self.batches += 1
        epochs = tuple(writer.epoch for writer in writers)
        task = self._tasks.create_task(self._run(writers, portions, epochs, single))
        self._appends.add(task)
        task.add_done_callback(self._appends.discard)

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
                self._singles_in_flight -= 1
            else:
                self._batch_in_flight = False
            for writer in writers:
                self._busy.discard(writer)
                if writer.outbox:
                    self._ready[writer] = None
            self._progress.set()
            self._work_waits.set()

    async def _commit(
        self, writers: tuple[Writer, ...], portions: tuple[tuple[Group, ...], ...], epochs: tuple[int, ...]
    ) -> None:
        """Append the groups of several partitions together; if the broker refuses, append each partition's alone."""
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
            await self._commit_separately(current, error)
            return
        except UnknownOutcome as error:
            for writer, portion, epoch in current:
                if writer.epoch == epoch:
                    _recover(writer, portion[0], error)
            return
        for writer, portion, epoch in reversed(current):
            if writer.epoch == epoch:
                writer.committed(portion, last)
            last -= sum(len(group.records) for group in portion)

    async def _commit_separately(
        self, current: list[tuple[Writer, tuple[Group, ...], int]], error: Conflict | Refused
    ) -> None:
        if len(current) > 1:
            for writer, portion, epoch in current:
                await self._commit((writer,), (portion,), (epoch,))
            return
        (writer, portion, epoch) = current[0]
        if writer.epoch != epoch:
            return
        if isinstance(error, Refused) and len(portion) > 1:
            await self._commit((writer,), (portion[:1],), (epoch,))
        else:
            _recover(writer, portion[0], error)

    async def _append(self, portions: list[tuple[Writer, tuple[Group, ...]]]) -> int:
        """Append until the broker accepts or refuses; while it cannot be reached nothing is stored, so try again."""
        wait = _RETRY_FIRST
        appends = [
            Append(group.records, writer.fence() if index == 0 else None)
            for writer, portion in portions
            for index, group in enumerate(portion)
        ]
        while True:
            begun = time.perf_counter_ns()
            try:
                last = await self._log.append(appends)
            except Unavailable as error:
                if self._wait_warnings.is_due():  # other appends wait for the broker, too
                    for_s = round(self._wait_warnings.lasted_s, 1)
                    _logger.warning("append_waits", error=error.code, detail=str(error), for_s=for_s)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _RETRY_MOST)
            else:
                self._wait_warnings.ended()
                stored = sum(len(append.records) for append in appends)
                self.appended += stored
                (self.singles if stored == 1 else self.batched).observe(time.perf_counter_ns() - begun)
                return last


def _recover(writer: Writer, group: Group, error: LogError) -> None:
    """Have a partition recover, because ``group`` was not stored, or nobody knows whether it was.

    Raises:
        Misconfigured: the event that was refused records a failure, or settings.
    """
    if isinstance(error, Conflict):
        writer.reset(error.code, error.last)
    elif not isinstance(error, Refused):
        writer.reset(error.code)
    elif isinstance(group.decided[0].message.event, Failed | Configured):
        raise Misconfigured(f"the broker does not store even a failure record: {error}") from error
    else:
        refused = group.decided[0]
        _logger.error("append_refused", topic=refused.topic, exchange=refused.message.exchange, detail=str(error))
        writer.refused(group)
