"""A client of the log: sends inputs and waits for their ends, gives orders, and reports events of external engines.

All events from outside are sent through this class: by the command line, the HTTP gateway and users' own programs. An
event that is acknowledged is in the log. While the broker is away, the event is sent again with the same message id, so
that it is stored once.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, Unpack

import msgspec

from actors.gateway.answer_pieces import AnswerPiece, piece_in
from actors.gateway.answer_wait import UnreadableEnd, assume_served, await_answer, retry_until_reachable
from actors.gateway.event_sender import Sender
from actors.gateway.exchanges import FILTERS, ExchangeEnd, Exchanges
from actors.gateway.external_events import WrappedEvent, agent_event
from actors.gateway.forwarded_inputs import PassedInput, new_outcome
from actors.gateway.inputs import DEFAULT_LIMITS, InputOptions, new_input
from actors.gateway.operator_orders import Order, events_of_orders
from actors.gateway.wait_deadlines import WaitDeadline, WaitDeadlines, Within, deadline_within
from events.decoding import Recorded, decode
from events.log import MAX_BATCH, Log
from schemas.envelope import CAUSE_SEQ
from schemas.event import Event
from schemas.intake.limits import InputLimits
from schemas.vocabulary.gateway import InputAbandoned, InputAnswered

ACCEPT_S = 60.0
"""Seconds within which an event must be stored, unless the caller allows less.

They are well below the deduplication window of the stream, after which a repeat would be stored twice.
"""

ANSWER_S = 65.0
"""Seconds from the sending of an input to the end of its exchange, if not given: a little more than its deadline."""

T = TypeVar("T")

OpenInbox = Callable[[Callable[[bytes], None]], AbstractAsyncContextManager[str]]
"""Opens a new inbox: calls a function with each body that arrives there while the block runs; yields its subject."""


class Receipt(msgspec.Struct, frozen=True):
    """What was stored: the event's id, which answers state as their cause, and its sequence."""

    id: str
    seq: int


class Client:
    """Sends events from outside and waits for their answers; made by :meth:`open`.

    Every wait has a deadline, given in seconds or as a :class:`WaitDeadline` that several steps share. When it is over,
    no future, task or subscription of it is left.
    """

    def __init__(
        self,
        log: Log,
        deadlines: WaitDeadlines,
        sender: Sender,
        exchanges: Exchanges,
        *,
        open_inbox: OpenInbox | None,
        limits: InputLimits,
        now_ns: Callable[[], int],
    ) -> None:
        self.log = log
        self.now_ns = now_ns
        self._deadlines = deadlines
        self._sender = sender
        self._exchanges = exchanges
        self._open_inbox = open_inbox
        self.limits = limits

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        log: Log,
        *,
        why_no_end: Callable[[str, str], str] = lambda agent, session: "",
        open_inbox: OpenInbox | None = None,
        limits: InputLimits = DEFAULT_LIMITS,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> AsyncIterator["Client"]:
        """Open a client for an ``async with`` block; what is still in flight at its end is cancelled.

        Args:
            log: The log.
            why_no_end: (agent, session) -> why no worker ends their exchanges; empty while one may.
            open_inbox: Opens inboxes for the pieces of answers that models generate; None if none are received.
            limits: How large an input may be.
            now_ns: This process's clock, Unix nanoseconds, for envelopes.

        Raises what the block raises, unchanged, or the error that ended the client's own tasks. Raises Unavailable
        before the block when the log cannot be read.
        """
        # Started before the block: a subscription that has begun survives outages, but to begin one needs a broker.
        last = (await log.info()).last_seq
        tail = await log.tail(FILTERS, last)
        deadlines = WaitDeadlines()
        exchanges = Exchanges(log, deadlines, why_no_end, last)
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                sender = Sender(log, deadlines, tasks)
                running = (tasks.create_task(sender.run()), tasks.create_task(exchanges.listen(tail)))
                try:
                    yield cls(log, deadlines, sender, exchanges, open_inbox=open_inbox, limits=limits, now_ns=now_ns)
                except Exception as wrong:
                    failure = wrong
                    raise
                finally:
                    sender.close()
                    exchanges.close()
                    deadlines.close()
                    for each in running:
                        each.cancel()
        except ExceptionGroup as group:
            # A task group wraps even a single error; callers of a client catch the errors of the log unwrapped.
            raise failure or group.exceptions[0] from None
        finally:
            await tail.close()

    @property
    def append_trouble(self) -> str:
        """Why the latest append from here was not confirmed; empty if it was, and before the first."""
        return self._sender.trouble

    @property
    def under_way(self) -> int:
        """The number of appends and exchanges that callers wait for."""
        return self._sender.under_way + len(self._exchanges)

    def begin(self, seconds: float) -> WaitDeadline:
        """Return a deadline ``seconds`` from now, for steps that share it."""
        return deadline_within(seconds)

    def shorten_waits(self, seconds: float) -> None:
        """Let every wait last at most ``seconds`` longer: this process is stopping."""
        self._deadlines.shorten(seconds)

    def deadline(self, deadline: WaitDeadline) -> AbstractAsyncContextManager[None]:
        """Raise TimeoutError in the caller's block if it is not done in time; :meth:`shorten_waits` applies, too."""
        return self._deadlines.deadline(deadline)

    # Inputs, and the ends of their exchanges.

    def input(self, text: str, *, inbox: str = "", **given: Unpack[InputOptions]) -> WrappedEvent:
        """Check an input and wrap it; ``inbox`` receives the pieces of its answer (see :meth:`receiving_pieces`).

        An input with a given ``exchange`` may be sent again by any client: within the deduplication window of the
        stream it is stored once.

        Raises:
            InvalidInput: see :func:`actors.gateway.inputs.new_input`.
        """
        return new_input(
            text,
            partitions=self.log.partitions,
            now_ns=self.now_ns(),
            reply_to=inbox,
            stream=bool(inbox),
            limits=self.limits,
            **given,
        )

    async def ask(
        self,
        text: str,
        *,
        within: Within = ANSWER_S,
        take: Callable[[AnswerPiece], None] | None = None,
        **given: Unpack[InputOptions],
    ) -> ExchangeEnd:
        """Send an input and wait for the end of its exchange; ``take`` receives the pieces of the answer meanwhile.

        Raises:
            InvalidInput: it cannot be an input.
            Refused, Unavailable, UnknownOutcome: as :meth:`submit` does.
            NoEnd: as :meth:`await_end` does.
        """
        deadline = deadline_within(within)
        async with self.receiving_pieces(take) if take is not None else contextlib.nullcontext("") as inbox:
            return await self.exchange(self.input(text, inbox=inbox, **given), deadline)

    async def exchange(self, wrapped: WrappedEvent, within: Within = ANSWER_S) -> ExchangeEnd:
        """Send an input and wait for the end of its exchange; raises as :meth:`submit` and :meth:`await_end` do."""
        deadline = deadline_within(within)
        await self.submit(wrapped, deadline)
        return await self.await_end(wrapped.exchange, deadline)

    async def submit(self, wrapped: WrappedEvent, within: Within = ACCEPT_S) -> int:
        """Have an event from outside stored; return its stream sequence.

        For an input, the end of its exchange is kept from now on. The caller must either ask for it (:meth:`await_end`,
        :meth:`await_passed`) or leave the exchange (:meth:`stop_waiting`); otherwise the end stays in memory. If
        storing fails, nothing is kept.

        Raises:
            Refused: the broker will not take it (too large with its headers).
            Unavailable: the broker could not be reached in time, or the client is closed; nothing was stored.
            UnknownOutcome: no clear answer came in time; the event may be stored, now or later.
        """
        if wrapped.exchange:
            self._exchanges.join(wrapped)
        try:
            seq = await self._sender.store([wrapped.record], deadline_within(within))
        except BaseException:
            self.stop_waiting(wrapped.exchange)
            raise
        if wrapped.exchange:
            self._exchanges.sent(wrapped.exchange, seq)
        return seq

    async def await_end(self, exchange: str, within: Within) -> ExchangeEnd:
        """Wait for the end of an exchange submitted here.

        Raises:
            NoEnd: no end came in time, or no worker runs that ends exchanges (the end will be in the log later).
        """
        return await self._exchanges.answer(exchange, within)

    async def await_passed(self, exchange: str, within: Within) -> PassedInput | ExchangeEnd:
        """Wait until the guards let an exchange pass whose input was submitted here to be forwarded, or until it ends.

        If it passed, its end is kept: the caller must ask for it (:meth:`await_end`) or leave the exchange
        (:meth:`stop_waiting`). If it ended first, nothing is kept.

        Raises:
            NoEnd: neither came in time, or no worker runs that lets exchanges pass or ends them.
        """
        return await self._exchanges.passed(exchange, within)

    def stop_waiting(self, exchange: str) -> None:
        """Note that one caller no longer waits for an exchange."""
        self._exchanges.leave(exchange)

    @contextlib.asynccontextmanager
    async def receiving_pieces(self, take: Callable[[AnswerPiece], None]) -> AsyncIterator[str]:
        """Call ``take`` with the pieces of answers that models generate, while the block runs; yields the inbox.

        The inbox is empty where this client cannot receive pieces: then the whole text comes with the end.
        """
        if self._open_inbox is None:
            yield ""
            return

        def on_message(data: bytes) -> None:
            if (piece := piece_in(data)) is not None:
                take(piece)

        async with self._open_inbox(on_message) as inbox:
            yield inbox

    # Other events from outside.

    async def settle(
        self, passed: PassedInput, outcome: InputAnswered | InputAbandoned, within: Within = ACCEPT_S
    ) -> int:
        """Record the outcome of an input that the guards let pass: its answer, or that there is none.

        An exchange has one outcome: a second one is not stored. Raises as :meth:`submit` does.
        """
        wrapped = new_outcome(passed, outcome, partitions=self.log.partitions, now_ns=self.now_ns())
        return await self._sender.store([wrapped.record], deadline_within(within))

    async def report(self, event: Event, *, agent: str = "", key: str = "", within: Within = ACCEPT_S) -> Receipt:
        """Record an event of an agent, such as a tick; repeats with the same ``key`` are stored once.

        Raises:
            InvalidInput: the event does not fit its type, or the agent's name cannot be accepted.
            Refused, Unavailable, UnknownOutcome: as :meth:`submit` does.
        """
        wrapped = agent_event(event, agent, key=key, partitions=self.log.partitions, now_ns=self.now_ns())
        return Receipt(wrapped.id, await self._sender.store([wrapped.record], deadline_within(within)))

    async def order(self, orders: Sequence[Order], within: Within = ACCEPT_S) -> Receipt:
        """Record the orders of a person as one operation, in order; return the receipt of the last.

        More than :data:`events.log.MAX_BATCH` events are stored batch by batch, each all or none.

        Raises:
            InvalidInput: one is not valid, or does not fit into a message of the log; nothing was stored.
            Refused, Unavailable, UnknownOutcome: as :meth:`submit` does; earlier batches may be stored.
        """
        deadline, events = deadline_within(within), events_of_orders(orders, self.log.partitions, self.now_ns())
        receipt = Receipt("", 0)
        for begin in range(0, len(events), MAX_BATCH):
            batch = events[begin : begin + MAX_BATCH]
            seq = await self._sender.store([each.record for each in batch], deadline)
            receipt = Receipt(batch[-1].id, seq)
        return receipt

    async def first(
        self,
        filters: Sequence[str],
        after: int,
        is_wanted: Callable[[Recorded], bool],
        *,
        what: str,
        within: Within,
        unserved: Callable[[], str] = assume_served,
    ) -> Recorded:
        """Wait for the first wanted event after a sequence: the answer to an order or to a report.

        Args:
            filters: Filters over stored subjects; they may not overlap.
            after: The sequence of the order, or one before it, so that an answer that is already stored is not missed.
            is_wanted: Whether an event is the wanted one; an exception from it ends the wait.
            what: What is being answered, for the error message.
            within: How long to wait.
            unserved: Returns the stage that would answer if nobody serves it; empty while somebody may.

        Raises:
            NoEnd: it did not come in time, or no worker runs that would give it.
            UnreadableEnd: the event at ``after`` led to one that this release cannot read.
        """
        deadline = deadline_within(within)
        reading = self._read(filters, after, is_wanted, what)
        return await await_answer(reading, what, self._deadlines, deadline, unserved)

    async def wait(
        self, answer: Awaitable[T], *, what: str, within: Within, unserved: Callable[[], str] = assume_served
    ) -> T:
        """Wait for an answer that the caller itself receives; see :func:`actors.gateway.answer_wait.await_answer`."""
        return await await_answer(answer, what, self._deadlines, deadline_within(within), unserved)

    async def _read(
        self, filters: Sequence[str], after: int, is_wanted: Callable[[Recorded], bool], what: str
    ) -> Recorded:
        tail = await retry_until_reachable(lambda: self.log.tail(filters, after))
        try:
            while True:
                for found in map(decode, await tail.next()):
                    if isinstance(found, Recorded):
                        if is_wanted(found):
                            return found
                    elif found.stored.headers.get(CAUSE_SEQ) == str(after):
                        raise UnreadableEnd.of(f"{what} was answered", found)
        finally:
            await tail.close()
