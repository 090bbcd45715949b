"""A client of the log: sends inputs and awaits their ends, gives orders, reports what engines outside tell.

Everything that is told from outside goes through here: what the command line, the gateway, feeds and users' own
programs send. What is sent is in the log once it is acknowledged, and is sent again, under the same message id, while
the broker is away.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, Unpack

import msgspec

from actors.gateway.answer_pieces import AnswerPiece, piece_in
from actors.gateway.exchanges import FILTERS, Answered, Exchanges
from actors.gateway.forwarded_inputs import PassedInput, new_outcome
from actors.gateway.inputs import DEFAULT_LIMITS, InputOptions, new_input
from actors.gateway.orders import Order, act_of
from actors.gateway.outside import Addressed, agent_event
from actors.gateway.sending import Sender
from actors.gateway.terms import Term, Terms, Within, term_of
from actors.gateway.waiting import persistently, served, waited_for
from events.codec import Recorded, decode
from events.log import MAX_BATCH, Log
from schemas.event import Event
from schemas.intake.limits import InputLimits
from schemas.vocabulary.gateway import InputAbandoned, InputAnswered

ACCEPT_S = 60.0
"""Seconds in which what is sent must be stored, unless its caller has less time; well inside the stream's dedupe
window."""

ANSWER_S = 65.0
"""Seconds that an exchange may take from its sending to its end, unless said otherwise: a moment more than its own
deadline."""

T = TypeVar("T")

Hearing = Callable[[Callable[[bytes], None]], AbstractAsyncContextManager[str]]
"""Gives a function the bodies that come to a fresh inbox, for the length of the block; yields the inbox."""


class Receipt(msgspec.Struct, frozen=True):
    """What was stored: the event's id, which answers name as their cause, and its sequence."""

    id: str
    seq: int


class Client:
    """Sends what is told from outside, and awaits what comes of it; made by :meth:`open`.

    Every wait has a deadline, given as seconds or as a :class:`Term` that several steps share, and leaves nothing
    behind: no future, task or subscription.
    """

    def __init__(
        self,
        log: Log,
        terms: Terms,
        sender: Sender,
        exchanges: Exchanges,
        *,
        hearing: Hearing | None,
        limits: InputLimits,
        now_ns: Callable[[], int],
    ) -> None:
        self.log = log
        self.now_ns = now_ns
        self._terms = terms
        self._sender = sender
        self._exchanges = exchanges
        self._hearing = hearing
        self.limits = limits

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        log: Log,
        *,
        unended: Callable[[str, str], str] = lambda agent, session: "",
        hearing: Hearing | None = None,
        limits: InputLimits = DEFAULT_LIMITS,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> AsyncIterator["Client"]:
        """Open a client for the length of an ``async with`` block; what is under way at its end is cancelled.

        Args:
            log: The log.
            unended: (agent, session) -> why nobody ends their exchanges, empty while somebody may.
            hearing: Gives fresh inboxes, for what models say while they speak; None where nothing is heard of that.
            limits: How large an input may be.
            now_ns: This process's clock, Unix nanoseconds, for envelopes.

        Raises what the block raises, as it is, or the error that ended the client's own work; Unavailable, before the
        block, when the log cannot be read.
        """
        # Begun before the block: from here on the reading outlives outages, while to begin one takes a broker.
        last = (await log.info()).last_seq
        tail = await log.tail(FILTERS, last)
        terms = Terms()
        exchanges = Exchanges(log, terms, unended, last)
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                sender = Sender(log, terms, tasks)
                running = (tasks.create_task(sender.run()), tasks.create_task(exchanges.listen(tail)))
                try:
                    yield cls(log, terms, sender, exchanges, hearing=hearing, limits=limits, now_ns=now_ns)
                except Exception as wrong:
                    failure = wrong
                    raise
                finally:
                    sender.close()
                    exchanges.close()
                    terms.close()
                    for each in running:
                        each.cancel()
        except ExceptionGroup as group:
            # A task group wraps even a lone error; callers of a client catch those of the log.
            raise failure or group.exceptions[0] from None
        finally:
            await tail.close()

    @property
    def append_trouble(self) -> str:
        """Why the log took nothing from here of late; empty when all is well, or nothing was sent for a while."""
        return self._sender.trouble

    @property
    def under_way(self) -> int:
        """How many appends and exchanges are waited for here."""
        return self._sender.under_way + len(self._exchanges)

    def begin(self, seconds: float) -> Term:
        """Return a term of so many seconds that begins now, for steps that share it."""
        return term_of(seconds)

    def hurry(self, seconds: float) -> None:
        """Let every wait last ``seconds`` more at most: this process is to stop."""
        self._terms.hurry(seconds)

    def deadline(self, term: Term) -> AbstractAsyncContextManager[None]:
        """Raise TimeoutError in a block of the caller's own that is not done in time, as every wait here."""
        return self._terms.deadline(term)

    # Inputs, and the ends of their exchanges.

    def input(self, text: str, *, inbox: str = "", **given: Unpack[InputOptions]) -> Addressed:
        """Check an input and wrap it; ``inbox`` hears what a model says while it speaks (:meth:`hearing`).

        One that names its ``exchange`` may be sent again, by any client: within the stream's window for duplicates it
        is stored once.

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
    ) -> Answered:
        """Send an input and wait for the end of its exchange; ``take`` is given what a model says meanwhile.

        Raises:
            InvalidInput: it cannot be an input.
            Refused, Unavailable, UnknownOutcome: as :meth:`submit` does.
            NoEnd: as :meth:`await_end` does.
        """
        term = term_of(within)
        async with self.hearing(take) if take is not None else contextlib.nullcontext("") as inbox:
            return await self.exchange(self.input(text, inbox=inbox, **given), term)

    async def exchange(self, addressed: Addressed, within: Within = ANSWER_S) -> Answered:
        """Send an input and wait for the end of its exchange; raises as :meth:`submit` and :meth:`await_end` do."""
        term = term_of(within)
        await self.submit(addressed, term)
        return await self.await_end(addressed.exchange, term)

    async def submit(self, addressed: Addressed, within: Within = ACCEPT_S) -> int:
        """Have an event from outside stored; return its stream sequence.

        Of an exchange the end is kept from here on until it is asked for (:meth:`await_end`, :meth:`await_passed`), or
        the exchange is left (:meth:`stop_waiting`): its caller has to do one of them. Where it is not stored, there is
        no need.

        Raises:
            Refused: the broker will not take it (too large with its headers).
            Unavailable: the broker could not be reached in time, or the client is closed; it was not stored.
            UnknownOutcome: as long without a clear answer; it may have been stored, or be so later.
        """
        if addressed.exchange:
            self._exchanges.join(addressed)
        try:
            seq = await self._sender.store([addressed.record], term_of(within))
        except BaseException:
            self.stop_waiting(addressed.exchange)
            raise
        if addressed.exchange:
            self._exchanges.sent(addressed.exchange, seq)
        return seq

    async def await_end(self, exchange: str, within: Within) -> Answered:
        """Wait for the end of an exchange submitted here.

        Raises:
            NoEnd: no end came in time, or nobody runs who ends exchanges (its end will be in the log).
        """
        return await self._exchanges.answer(exchange, within)

    async def await_passed(self, exchange: str, within: Within) -> PassedInput | Answered:
        """Wait until the guards have let an exchange pass that was submitted here to be forwarded, or for its end.

        Of one that passed the end is kept until it is asked for (:meth:`await_end`), or the exchange is left
        (:meth:`stop_waiting`): its caller has to do one of both. Of one that ended first nothing is kept.

        Raises:
            NoEnd: neither came in time, or nobody runs who lets pass or ends exchanges.
        """
        return await self._exchanges.passed(exchange, within)

    def stop_waiting(self, exchange: str) -> None:
        """Take it that a caller waits for an exchange no more."""
        self._exchanges.leave(exchange)

    @contextlib.asynccontextmanager
    async def hearing(self, take: Callable[[AnswerPiece], None]) -> AsyncIterator[str]:
        """Give ``take`` what models say while they speak, for the length of the block; yields the inbox for it.

        The inbox is empty where this client hears nothing of that: then all comes with the end.
        """
        if self._hearing is None:
            yield ""
            return

        def taken(data: bytes) -> None:
            if (piece := piece_in(data)) is not None:
                take(piece)

        async with self._hearing(taken) as inbox:
            yield inbox

    # What else is told from outside.

    async def settle(self, passed: PassedInput, word: InputAnswered | InputAbandoned, within: Within = ACCEPT_S) -> int:
        """Tell what became of an input that the guards let pass: its answer, or that there is none.

        An exchange has one such word: a second one is not stored. Raises as :meth:`submit` does.
        """
        told = new_outcome(passed, word, partitions=self.log.partitions, now_ns=self.now_ns())
        return await self._sender.store([told.record], term_of(within))

    async def report(self, event: Event, *, agent: str = "", key: str = "", within: Within = ACCEPT_S) -> Receipt:
        """Tell an event of an agent, such as a tick; ``key`` makes repeats one event.

        Raises:
            InvalidInput: it is not what its type says, or the agent's name cannot be accepted.
            Refused, Unavailable, UnknownOutcome: as :meth:`submit` does.
        """
        told = agent_event(event, agent, key=key, partitions=self.log.partitions, now_ns=self.now_ns())
        return Receipt(told.id, await self._sender.store([told.record], term_of(within)))

    async def order(self, orders: Sequence[Order], within: Within = ACCEPT_S) -> Receipt:
        """Put on record what a person orders, as one act, in order; return the last.

        More than :data:`events.log.MAX_BATCH` events are stored batch by batch, each all or none.

        Raises:
            InvalidInput: one is not valid, or does not fit into a message of the log; nothing was stored.
            Refused, Unavailable, UnknownOutcome: as :meth:`submit` does; earlier batches may be stored.
        """
        term, act = term_of(within), act_of(orders, self.log.partitions, self.now_ns())
        receipt = Receipt("", 0)
        for begin in range(0, len(act), MAX_BATCH):
            batch = act[begin : begin + MAX_BATCH]
            seq = await self._sender.store([each.record for each in batch], term)
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
    ) -> Recorded:
        """Wait for the first event behind a sequence that is wanted: the answer to an order, or to a report.

        Args:
            filters: Filters over stored subjects; they may not overlap.
            after: A sequence, of the order or before it: so no answer is missed that is there already.
            is_wanted: Whether an event is the one; what it raises ends the wait.
            what: What is answered, for the message.
            within: How long to wait.

        Raises:
            NoEnd: it did not come in time.
        """
        reading = self._read(filters, after, is_wanted)
        return await waited_for(reading, what, self._terms, term_of(within))

    async def wait(self, answer: Awaitable[T], *, what: str, within: Within, unserved: Callable[[], str] = served) -> T:
        """Wait for an answer that the caller hears itself; see :func:`actors.gateway.waiting.waited_for`."""
        return await waited_for(answer, what, self._terms, term_of(within), unserved)

    async def _read(self, filters: Sequence[str], after: int, is_wanted: Callable[[Recorded], bool]) -> Recorded:
        tail = await persistently(lambda: self.log.tail(filters, after))
        try:
            while True:
                for recorded in map(decode, await tail.next()):
                    if isinstance(recorded, Recorded) and is_wanted(recorded):
                        return recorded
        finally:
            await tail.close()
