"""Stores events from outside, also while the broker restarts: each is stored once, or the caller gets an error."""

import asyncio
from collections.abc import Sequence
from typing import Any

from actors.gateway.wait_deadlines import WaitDeadline, WaitDeadlines
from events.errors import Conflict, LogError, NotPermitted, Refused, Unavailable, UnknownOutcome
from events.log import MAX_BATCH, Append, Log, Record
from events.loggers import get_logger

BATCH_FROM = 24
"""With this many waiting events or more, one atomic batch is cheaper than single publishes."""

SINGLES = 16
"""Most single publishes in flight; what is queued then waits until one of them ends."""

_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
"""First and longest pause before an event is sent again, in seconds."""

_logger = get_logger("neuraxis.client")


class _Sending:
    """Records being sent, all or none; ``in_doubt`` once the broker may have stored them without an acknowledgement.

    ``accepted`` gets the sequence of the last record. ``under_way`` says whether an attempt is in progress. ``reason``
    is the latest error of the log.
    """

    def __init__(self, records: Sequence[Record], accepted: asyncio.Future[int]) -> None:
        self.records = records
        self.accepted = accepted
        self.in_doubt = False
        self.under_way = False
        self.reason = ""

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for it any more: its deadline has passed, or its outcome is known."""
        return self.accepted.done()

    def resolve(self, outcome: int | LogError) -> None:
        """Give the caller the sequence of the last record, or the error, if it still waits."""
        if self.is_over:
            return
        if isinstance(outcome, int):
            self.accepted.set_result(outcome)
        else:
            self.accepted.set_exception(outcome)

    def failed(self, error: LogError) -> None:
        """Note that an attempt to store it ended without an acknowledgement."""
        self.under_way = False
        self.in_doubt = self.in_doubt or isinstance(error, UnknownOutcome)
        self.reason = str(error)

    def overdue(self, waited: float) -> LogError:
        """Return the error for a caller whose deadline has passed."""
        if self.in_doubt or self.under_way:
            return UnknownOutcome(
                f"the broker has not confirmed it within {waited:.1f} s: it may be stored, or be stored later"
            )
        return Unavailable(f"not stored within {waited:.1f} s: {self.reason or 'the broker has not been reached'}")


class Sender:
    """Stores the records it is given; a task must be running :meth:`run`.

    Attributes:
        trouble: Why the latest append was not confirmed; empty if it was, and before the first.
    """

    def __init__(self, log: Log, deadlines: WaitDeadlines, tasks: asyncio.TaskGroup) -> None:
        self._log = log
        self._deadlines = deadlines
        self._tasks = tasks
        self._queue: list[_Sending] = []
        self._queued = asyncio.Event()
        self._waiting_callers: set[asyncio.Future[int]] = set()
        self._singles_in_flight: set[asyncio.Task[None]] = set()
        self._closed = False
        self.trouble = ""

    @property
    def under_way(self) -> int:
        """The number of callers that wait for an acknowledgement."""
        return len(self._waiting_callers)

    def close(self) -> None:
        """Cancel what is in flight and the futures of its callers, since nothing would resolve them any more."""
        self._closed = True
        unresolved: list[asyncio.Future[Any]] = [*self._singles_in_flight, *self._waiting_callers]
        for each in unresolved:
            each.cancel()

    async def store(self, records: Sequence[Record], deadline: WaitDeadline) -> int:
        """Have records stored in time, all or none, each once; return the sequence of the last.

        A single record is sent again while its outcome is unknown: the stream drops the repeat by its message id.
        Several records are not sent again: the broker refuses a whole atomic batch that contains a known id.

        Raises:
            Refused: the broker does not accept them (too large with their headers).
            Unavailable: the broker could not be reached in time, or this is closed; nothing was stored.
            UnknownOutcome: no clear answer came in time; they may be stored, now or later.
        """
        if self._closed:
            raise Unavailable("the client is closed: open another one")
        loop = asyncio.get_running_loop()
        begun = loop.time()
        accepted: asyncio.Future[int] = loop.create_future()
        self._waiting_callers.add(accepted)
        sending = _Sending(records, accepted)
        self._queue.append(sending)
        self._queued.set()
        try:
            async with self._deadlines.deadline(deadline):
                return await asyncio.shield(accepted)
        except TimeoutError:
            if grace_s := deadline.stall_grace_s:  # this process stood still: the acknowledgement may have come
                await asyncio.wait((accepted,), timeout=grace_s)
            if accepted.done() and not accepted.cancelled():
                return accepted.result()
            raise sending.overdue(loop.time() - begun) from None
        finally:
            accepted.cancel()  # which ends all further attempts: none outlives its caller
            self._waiting_callers.discard(accepted)

    async def run(self) -> None:
        """Send what is queued, until cancelled."""
        while True:
            await self._queued.wait()
            waiting, self._queue = self._queue[:MAX_BATCH], self._queue[MAX_BATCH:]
            if not self._queue:
                self._queued.clear()
            waiting = [sending for sending in waiting if not sending.is_over]
            singles = [sending for sending in waiting if len(sending.records) == 1]
            if len(singles) >= BATCH_FROM:
                done = await self._send_batch(singles)
                waiting = [sending for sending in waiting if sending not in done and not sending.is_over]
            for sending in waiting:
                single = self._tasks.create_task(self._send_one(sending))
                self._singles_in_flight.add(single)
                single.add_done_callback(self._singles_in_flight.discard)
            while len(self._singles_in_flight) >= SINGLES:
                # Meanwhile a backlog collects into a batch. But not for long: a broker that is away acknowledges
                # nothing.
                ended, _ = await asyncio.wait(
                    self._singles_in_flight, timeout=_RETRY_MOST, return_when=asyncio.FIRST_COMPLETED
                )
                if not ended:
                    break

    async def _send_batch(self, waiting: Sequence[_Sending]) -> set[_Sending]:
        """Send all as one batch; return those with a known outcome: none if the batch was refused or is in doubt."""
        try:
            last = await self._append(waiting)
        except (Conflict, Refused, Unavailable, UnknownOutcome) as error:
            _logger.info("batch_in_doubt", error=error.code, inputs=len(waiting))
            return set()
        for distance, sending in enumerate(reversed(waiting)):
            sending.resolve(last - distance)
        return set(waiting)

    async def _send_one(self, sending: _Sending) -> None:
        wait = _RETRY_FIRST
        while not sending.is_over:
            try:
                # The same message ids each time: the stream stores them once.
                sending.resolve(await self._append([sending]))
            except NotPermitted as error:
                sending.resolve(error)
            except (Unavailable, UnknownOutcome) as error:
                if sending.in_doubt and len(sending.records) > 1:
                    # If it is stored, a repeat would be refused as a whole. So it is not sent again.
                    sending.resolve(error)
                    return
                await asyncio.sleep(wait)
                wait = min(2 * wait, _RETRY_MOST)
            except LogError as error:
                sending.resolve(error)

    async def _append(self, waiting: Sequence[_Sending]) -> int:
        for sending in waiting:
            sending.under_way = True
        try:
            last = await self._log.append([Append(sending.records) for sending in waiting])
        except LogError as error:
            for sending in waiting:
                sending.failed(error)
            if isinstance(error, Unavailable | UnknownOutcome):
                self.trouble = str(error)
            raise
        self.trouble = ""
        return last
