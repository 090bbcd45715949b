"""The exchanges that a client waits for, and what the log says about them.

No end is missed: the subscription begins before any input is sent. But if an input is sent again, its exchange may have
ended before anybody here waited for it. Then the log is searched from the input up to where the subscription was.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from actors.gateway.answer_wait import UnreadableEnd, await_answer, retry_until_reachable
from actors.gateway.external_events import WrappedEvent
from actors.gateway.forwarded_inputs import PassedInput
from actors.gateway.wait_deadlines import WaitDeadlines, Within, deadline_within
from events.decoding import Unreadable, decode
from events.log import Log, Stored, Tail
from schemas.envelope import exchange_in
from schemas.event import topic_of
from schemas.subjects import split_stored, stored_subject, topic_filter
from schemas.vocabulary.arbiter import ArbiterPassed
from schemas.vocabulary.responder import ResponseEmitted

_KINDS = (ArbiterPassed, ResponseEmitted)
FILTERS = tuple(topic_filter(topic_of(kind)) for kind in _KINDS)
"""The events that are read: the guards' decision to let an input pass to another model, and the ends."""

T = TypeVar("T")


class ExchangeEnd(msgspec.Struct, frozen=True):
    """The end of an exchange: the event, its sequence and the server's time of it (Unix nanoseconds).

    ``input_seq`` is the sequence of the exchange's input.
    """

    exchange: str
    event: ResponseEmitted
    seq: int
    time_ns: int
    input_seq: int = 0


class _Exchange:
    """An exchange that callers wait for; ``read_upto``: the sequence read last before the first caller came."""

    def __init__(self, wrapped: WrappedEvent, read_upto: int) -> None:
        loop = asyncio.get_running_loop()
        self.wrapped = wrapped
        self.end: asyncio.Future[ExchangeEnd] = loop.create_future()
        self.passed: asyncio.Future[PassedInput] = loop.create_future()
        self.waiters = 0
        self.input_seq = 0
        self.read_upto = read_upto

    @property
    def may_have_ended(self) -> bool:
        """Whether its input was stored before anybody here waited, so that its end may have been read unnoticed."""
        return self.input_seq <= self.read_upto and not self.end.done()


class Exchanges:
    """The exchanges that callers wait for.

    Args:
        log: The log.
        deadlines: Those of all waits of this process: they end early when it stops.
        why_no_end: (agent, session) -> why no worker ends their exchanges; empty while one may.
        after: The sequence after which the subscription begins.
    """

    def __init__(self, log: Log, deadlines: WaitDeadlines, why_no_end: Callable[[str, str], str], after: int) -> None:
        self._log = log
        self._deadlines = deadlines
        self._why_no_end = why_no_end
        self._read_upto = after
        self._known: dict[str, _Exchange] = {}

    def __len__(self) -> int:
        return len(self._known)

    def close(self) -> None:
        """Cancel all waits: a caller outside the client's block would otherwise wait for ever."""
        for exchange in self._known.values():
            futures: tuple[asyncio.Future[Any], ...] = (exchange.end, exchange.passed)
            for each in futures:
                each.cancel()

    def join(self, wrapped: WrappedEvent) -> None:
        """Start to keep what the log says about an exchange, before its input is sent."""
        self._known.setdefault(wrapped.exchange, _Exchange(wrapped, self._read_upto)).waiters += 1

    def sent(self, exchange: str, seq: int) -> None:
        """Note that the input of an exchange is stored at a sequence."""
        if (known := self._known.get(exchange)) is not None:
            known.input_seq = seq

    def leave(self, exchange: str) -> None:
        """Note that one caller no longer waits for an exchange."""
        if (known := self._known.get(exchange)) is None:
            return
        known.waiters -= 1
        if known.waiters <= 0:
            del self._known[exchange]

    async def answer(self, exchange: str, within: Within) -> ExchangeEnd:
        """Wait for the end of an exchange, and leave it; raises NoEnd, or UnreadableEnd at once."""
        try:
            return await self._await(exchange, _end_of, within)
        finally:
            self.leave(exchange)

    async def passed(self, exchange: str, within: Within) -> PassedInput | ExchangeEnd:
        """Wait until an exchange passes the guards or ends; leave it, unless it passed; raises NoEnd."""
        outcome: PassedInput | ExchangeEnd | None = None
        try:
            outcome = await self._await(exchange, _first_of, within)
            return outcome
        finally:
            if not isinstance(outcome, PassedInput):
                self.leave(exchange)

    async def listen(self, tail: Tail) -> None:
        """Read what the log says from now on, until cancelled."""
        while True:
            for stored in await tail.next():
                self._read_upto = stored.seq
                self._note(stored)

    async def _await(self, exchange: str, answer: Callable[[_Exchange], Awaitable[T]], within: Within) -> T:
        known = self._known.get(exchange)
        if known is None:
            raise LookupError(f"exchange {exchange} was not submitted by this client, or nobody waits for it any more")

        deadline = deadline_within(within)

        async def found() -> T:
            if known.may_have_ended:
                await retry_until_reachable(lambda: self._search_log(known))
            return await answer(known)

        return await await_answer(
            found(),
            f"exchange {exchange}",
            self._deadlines,
            deadline,
            lambda: self._why_no_end(known.wrapped.agent, known.wrapped.session),
            hint=f", `neuraxis why {exchange}` tells then",
        )

    async def _search_log(self, known: _Exchange) -> None:
        pairs = self._log.partitions.token_pairs(known.wrapped.agent, known.wrapped.session)
        filters = [stored_subject(topic_of(kind), *tokens) for kind in _KINDS for tokens in pairs]
        async for batch in self._log.history(filters, known.input_seq, known.read_upto):
            for stored in batch:
                self._note(stored)

    def _note(self, stored: Stored) -> None:
        if (known := self._known.get(exchange_in(stored.headers))) is None:
            return
        recorded = decode(stored)
        if isinstance(recorded, Unreadable):
            _note_unreadable(known, recorded)
            return
        message = recorded.message
        # The first event of each kind counts, as it does for the actors that decide by it.
        match message.event:
            case ResponseEmitted() as end if not known.end.done():
                known.end.set_result(ExchangeEnd(message.exchange, end, stored.seq, stored.time_ns))
            case ArbiterPassed() as event if not known.passed.done():
                passed = PassedInput(
                    exchange=message.exchange,
                    agent=message.agent,
                    session=message.session,
                    event=event,
                    id=message.id,
                    seq=stored.seq,
                    time_ns=stored.time_ns,
                )
                known.passed.set_result(passed)


def _note_unreadable(known: _Exchange, found: Unreadable) -> None:
    """Give the callers an error at once: no readable event of this kind follows, so they would wait in vain."""
    is_end = split_stored(found.stored.subject)[0] == topic_of(ResponseEmitted)
    awaited: asyncio.Future[Any] = known.end if is_end else known.passed
    if not awaited.done():
        what = f"exchange {known.wrapped.exchange} {'has ended' if is_end else 'was let pass'}"
        awaited.set_exception(UnreadableEnd.of(what, found))
        awaited.exception()  # nobody may wait for it, which is no error


async def _end_of(known: _Exchange) -> ExchangeEnd:
    # Shielded: other callers may wait for the same exchange, and one that gives up must not cancel the future for them.
    return msgspec.structs.replace(await asyncio.shield(known.end), input_seq=known.input_seq)


async def _first_of(known: _Exchange) -> PassedInput | ExchangeEnd:
    await asyncio.wait((known.passed, known.end), return_when=asyncio.FIRST_COMPLETED)
    # Both may have come by now. The pass is first in the log, but the end is final, so the end is returned.
    return await _end_of(known) if known.end.done() else known.passed.result()
