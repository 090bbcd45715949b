"""An edge: sends inputs into the log and waits for their ends, through restarts of the broker."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from actors.gateway.forwarded import Passed
from actors.gateway.inputs import Addressed
from actors.gateway.patience import Unserved, answered, served
from events.codec import Recorded, decode
from events.errors import Conflict, LogError, Refused, Unavailable, UnknownOutcome
from events.log import MAX_BATCH, Append, Log, Tail
from events.loggers import get_logger
from schemas.event import topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.arbiter import ArbiterPassed
from schemas.vocabulary.responder import ResponseEmitted

BATCH_FROM = 24
"""Waiting inputs from which one atomic batch is cheaper than single publishes."""

ACCEPT_DEADLINE = 60.0
"""Seconds for which an input is sent again while its fate is unknown, unless its caller has less time; well inside the
stream's dedupe window."""

REMEMBERED_S = 30.0
"""Seconds for which an append that was not confirmed counts against the log, unless a later one was."""

T = TypeVar("T")
_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
_HEARD = [topic_filter(topic_of(ArbiterPassed)), topic_filter(topic_of(ResponseEmitted))]
_logger = get_logger("neuraxis.edge")


class Answered(msgspec.Struct, frozen=True):
    """The end of an exchange: the event, its sequence, and the server's time of it (Unix nanoseconds)."""

    exchange: str
    event: ResponseEmitted
    seq: int
    time_ns: int


class _Sending:
    """An input on its way: ``doubtful`` once the broker may have taken it unsaid; ``reason`` is its last word."""

    def __init__(self, addressed: Addressed, accepted: asyncio.Future[int]) -> None:
        self.addressed = addressed
        self.accepted = accepted
        self.doubtful = False
        self.under_way = False
        self.reason = ""

    @property
    def left(self) -> bool:
        """Whether nobody waits for it any more: its time is over, or it is settled."""
        return self.accepted.done()

    def failed(self, error: LogError) -> None:
        """Take in that an attempt to store it ended otherwise than by an acknowledgement."""
        self.under_way = False
        self.doubtful = self.doubtful or isinstance(error, UnknownOutcome)
        self.reason = str(error)

    def overdue(self, waited: float) -> LogError:
        """Return what its caller is told whose time is over."""
        if self.doubtful or self.under_way:
            return UnknownOutcome(
                f"the broker has not confirmed it within {waited:.1f} s: it may be stored, or be stored later"
            )
        return Unavailable(f"not stored within {waited:.1f} s: {self.reason or 'the broker has not been reached'}")


class Client:
    """Accepts inputs and hands back their ends; made by :meth:`open`."""

    def __init__(self, log: Log, tasks: asyncio.TaskGroup) -> None:
        self._log = log
        self._tasks = tasks
        self._queue: list[_Sending] = []
        self._queued = asyncio.Event()
        self._accepting: set[asyncio.Future[int]] = set()
        self._ends: dict[str, asyncio.Future[Answered]] = {}
        self._passes: dict[str, asyncio.Future[Passed]] = {}
        self._singles: set[asyncio.Task[None]] = set()
        self._closed = False
        self._unconfirmed: tuple[float, str] | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, log: Log) -> AsyncIterator["Client"]:
        """Open an edge for the length of a ``async with`` block; what is under way at its end is cancelled.

        Raises what the block raises, as it is, or the error that ended the edge's own work; Unavailable, before the
        block, when the log cannot be read.
        """
        # Begun before the block: from here on the reading outlives outages, while to begin one takes a broker.
        tail = await log.tail(_HEARD, (await log.info()).last_seq)
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                edge = cls(log, tasks)
                running = (tasks.create_task(edge._send()), tasks.create_task(edge._listen(tail)))
                try:
                    yield edge
                except Exception as wrong:
                    failure = wrong
                    raise
                finally:
                    edge._cancel(running)
        except ExceptionGroup as group:
            # A task group wraps even a lone error; callers of an edge catch those of the log.
            raise failure or group.exceptions[0] from None
        finally:
            await tail.close()

    def _cancel(self, running: tuple[asyncio.Task[None], ...]) -> None:
        # Its callers' futures too: nobody is left to resolve them, and a caller outside the block would wait for ever.
        self._closed = True
        under_way: list[asyncio.Future[Any]] = [
            *running,
            *self._singles,
            *self._accepting,
            *self._ends.values(),
            *self._passes.values(),
        ]
        for each in under_way:
            each.cancel()

    @property
    def trouble(self) -> str:
        """Why the log took nothing from here of late; empty when all is well, or nothing was sent for a while."""
        if self._unconfirmed is None:
            return ""
        at, reason = self._unconfirmed
        return reason if asyncio.get_running_loop().time() - at <= REMEMBERED_S else ""

    async def submit(self, addressed: Addressed, deadline: float = ACCEPT_DEADLINE) -> int:
        """Have an input, or what became of one, accepted within ``deadline`` seconds; return its stream sequence.

        Where it is not, nobody waits for its exchange any more.

        Raises:
            Refused: the broker will not take it (too large with its headers).
            Unavailable: the broker could not be reached in time, or the edge is closed; it was not accepted.
            UnknownOutcome: as long without a clear answer; it may have been accepted, or be so later.
        """
        if self._closed:
            raise Unavailable("the edge is closed: open another one")
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self._ends.setdefault(addressed.exchange, loop.create_future())
        if addressed.forwarded:
            self._passes.setdefault(addressed.exchange, loop.create_future())
        accepted: asyncio.Future[int] = loop.create_future()
        self._accepting.add(accepted)
        sending = _Sending(addressed, accepted)
        self._queue.append(sending)
        self._queued.set()
        try:
            # At its end the future is cancelled, and with it every further attempt: none outlives its caller.
            async with asyncio.timeout(deadline):
                return await accepted
        except TimeoutError:
            self.leave(addressed.exchange)
            raise sending.overdue(loop.time() - begun) from None
        except (LogError, asyncio.CancelledError):
            self.leave(addressed.exchange)
            raise
        finally:
            self._accepting.discard(accepted)

    async def passed(self, exchange: str, deadline: float, unserved: Callable[[], str] = served) -> Passed | Answered:
        """Wait until the guards have let an exchange pass that was submitted here to be forwarded, or for its end.

        Of one that passed the end is kept until it is asked for (:meth:`answer`), or the exchange is left
        (:meth:`leave`): its caller has to do one of both. Of one that ended first nothing is kept.

        Raises:
            Unavailable: neither came in time, or nobody runs who lets pass or ends exchanges.
        """
        end, word = self._ends[exchange], self._passes[exchange]
        passed = False
        try:
            first = asyncio.create_task(asyncio.wait((word, end), return_when=asyncio.FIRST_COMPLETED))
            await self._awaited(first, exchange, deadline, unserved)
            # Both may have come by now. A pass comes first in the log; an end has the last word.
            passed = not end.done()
            return word.result() if passed else end.result()
        finally:
            self._passes.pop(exchange, None)
            if not passed:
                self._ends.pop(exchange, None)

    async def answer(self, exchange: str, deadline: float, unserved: Callable[[], str] = served) -> Answered:
        """Wait for the end of an exchange submitted here, ``deadline`` seconds at most; ``unserved`` as ``answered``.

        Raises:
            Unavailable: no end came in time, or nobody runs who ends exchanges (its end will be in the log).
        """
        try:
            return await self._awaited(asyncio.shield(self._ends[exchange]), exchange, deadline, unserved)
        finally:
            self.leave(exchange)

    def leave(self, exchange: str) -> None:
        """Take it that nobody waits for an exchange any more."""
        self._ends.pop(exchange, None)
        self._passes.pop(exchange, None)

    async def _awaited(self, word: Awaitable[T], exchange: str, deadline: float, unserved: Callable[[], str]) -> T:
        try:
            async with asyncio.timeout(deadline):
                return await answered(word, unserved)
        except Unserved as lacking:
            raise Unavailable(
                f"exchange {exchange} is in the log and nobody ends it: nobody serves {lacking}; it ends when a worker "
                f"does, `neuraxis why {exchange}` tells then"
            ) from None
        except TimeoutError:
            raise Unavailable(
                f"exchange {exchange} has no end after {deadline:g} s: are the workers running? `neuraxis doctor` tells"
            ) from None

    async def _send(self) -> None:
        while True:
            await self._queued.wait()
            waiting, self._queue = self._queue[:MAX_BATCH], self._queue[MAX_BATCH:]
            if not self._queue:
                self._queued.clear()
            waiting = [sending for sending in waiting if not sending.left]
            if len(waiting) >= BATCH_FROM:
                waiting = await self._send_batch(waiting)
            for sending in waiting:
                single = self._tasks.create_task(self._send_one(sending))
                self._singles.add(single)
                single.add_done_callback(self._singles.discard)
            if waiting:
                # Let the singles have the wire before more are taken, so that a backlog becomes a batch.
                await asyncio.wait([sending.accepted for sending in waiting], timeout=_RETRY_MOST)

    async def _send_batch(self, waiting: list[_Sending]) -> list[_Sending]:
        """Send all as one batch; return those to be sent one by one instead, since it was refused or is in doubt."""
        try:
            last = await self._append(waiting)
        except (Conflict, Refused, Unavailable, UnknownOutcome) as error:
            _logger.info("batch_in_doubt", error=error.code, inputs=len(waiting))
            return [sending for sending in waiting if not sending.left]
        for place, sending in enumerate(reversed(waiting)):
            if not sending.accepted.done():
                sending.accepted.set_result(last - place)
        return []

    async def _send_one(self, sending: _Sending) -> None:
        wait = _RETRY_FIRST
        while not sending.left:
            try:
                # The same message id each time: the stream stores it once.
                seq = await self._append([sending])
            except (Unavailable, UnknownOutcome):
                await asyncio.sleep(wait)
                wait = min(2 * wait, _RETRY_MOST)
            except LogError as error:
                if not sending.left:
                    sending.accepted.set_exception(error)
            else:
                if not sending.left:
                    sending.accepted.set_result(seq)

    async def _append(self, waiting: list[_Sending]) -> int:
        for sending in waiting:
            sending.under_way = True
        try:
            last = await self._log.append([Append([sending.addressed.record]) for sending in waiting])
        except LogError as error:
            for sending in waiting:
                sending.failed(error)
            if isinstance(error, Unavailable | UnknownOutcome):
                self._unconfirmed = asyncio.get_running_loop().time(), str(error)
            raise
        self._unconfirmed = None
        return last

    async def _listen(self, tail: Tail) -> None:
        while True:
            for stored in await tail.next():
                exchange = unquote(stored.headers.get("ce-exchange", ""))
                if exchange not in self._ends:
                    continue
                recorded = decode(stored)
                if isinstance(recorded, Recorded):
                    self._hear(recorded)

    def _hear(self, recorded: Recorded) -> None:
        message, stored = recorded.message, recorded.stored
        match message.event:
            case ResponseEmitted() as end:
                _resolve(self._ends.get(message.exchange), Answered(message.exchange, end, stored.seq, stored.time_ns))
            case ArbiterPassed() as word:
                passed = Passed(
                    exchange=message.exchange,
                    agent=message.agent,
                    session=message.session,
                    event=word,
                    id=message.id,
                    seq=stored.seq,
                    time_ns=stored.time_ns,
                )
                _resolve(self._passes.get(message.exchange), passed)


def _resolve(waited_for: asyncio.Future[T] | None, word: T) -> None:
    # The first word counts, as it does for whoever decides by it.
    if waited_for is not None and not waited_for.done():
        waited_for.set_result(word)
