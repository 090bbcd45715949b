"""The body of an upstream's response while it arrives: read, recorded at its end, and then delivered."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from actors.contract.answers.prompt import Prompt
from actors.gateway.forwarded_inputs import PassedInput
from actors.gateway.http.openai.answers import REFUSALS
from actors.gateway.http.openai.chat_inputs import ChatInput
from actors.gateway.http.openai.chat_service import ExchangeFailed
from actors.gateway.http.openai.passthrough.guarding import GuardedStream, faults_in
from actors.gateway.http.openai.passthrough.masking import MaskedRequest
from actors.gateway.http.openai.relayed_answer import read_streamed_answer, read_whole_answer
from actors.gateway.http.openai.streaming_response import SourceBroken
from actors.gateway.wait_deadlines import WaitDeadline
from events.errors import LogError
from events.libraries.http_client import httpx
from events.loggers import get_logger
from schemas.vocabulary.reflex import AnswerFault

if TYPE_CHECKING:
    from actors.gateway.http.openai.forwarding import UpstreamForwarder

MOST_BYTES = 16 * 1024 * 1024
"""Most bytes of an answer that are recorded. A longer whole answer is not delivered; a longer stream is."""

_LONG = 64 * 1024
"""Bytes of an answer, or of one event, above which reading them takes more than a few milliseconds."""

Abandoned = Literal["upstream_unreachable", "upstream_overdue", "upstream_refused", "upstream_cut", "client_left"]
"""Why an upstream's response was not relayed to its end, as ``input.abandoned`` records it."""

T = TypeVar("T")

_logger = get_logger("neuraxis.gateway")


class RelayedBody:
    """The body of a response as it arrives, recorded at its end; it behaves like an asynchronous generator.

    Attributes:
        received: The bytes so far, up to :data:`MOST_BYTES`.
        cut_off: Whether there were more bytes.
        withheld_for: Why the body of a refusal must not be delivered.
    """

    def __init__(
        self,
        service: "UpstreamForwarder",
        response: httpx.Response,
        passed: PassedInput,
        chat_input: ChatInput,
        deadline: WaitDeadline,
        guarded: GuardedStream | None = None,
        masked: MaskedRequest | None = None,
    ) -> None:
        self.response = response
        self.passed = passed
        self.received = bytearray()
        self.cut_off = False
        self.withheld_for: tuple[AnswerFault, ...] = ()
        self._service = service
        self._chat_input = chat_input
        self._deadline = deadline
        self._pieces = response.aiter_raw()
        self._has_outcome = False
        self._guarded = guarded
        self.masked = masked or None
        self._over = False  # the last part was returned

    def __aiter__(self) -> "RelayedBody":
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece once it has arrived.

        Raises:
            StopAsyncIteration: everything was returned and is recorded.
            SourceBroken: it broke off, or the remaining part was not judged.
            LogError: the log did not store it in time.
        """
        if self._guarded is None:
            return await self._next()
        if not self.received and self._guarded.is_prompt_long:
            await asyncio.to_thread(self._guarded.read_prompt)  # so that others are served meanwhile
        while not self._over:
            if self._guarded.found:
                return await self._last(self._guarded)
            try:
                piece = await self._next()
                piece = await _run(partial(self._guarded.take, piece), self._guarded.cutter.held + len(piece))
            except StopAsyncIteration:
                return await self._last(self._guarded)
            except ValueError as wrong:
                self._abandon("upstream_cut")
                raise SourceBroken(str(wrong)) from wrong
            if piece:
                return piece
        raise StopAsyncIteration

    async def _last(self, guarded: GuardedStream) -> bytes:
        """Return the rest of a stream once its end is recorded, or what replaces the rest."""
        self._over = True
        await _run(guarded.end, guarded.cutter.held)
        if guarded.found:
            await self.response.aclose()
        if not await self._record(guarded):
            return guarded.rest()
        try:
            ended = await self._service.end(self.passed)
        except (ExchangeFailed, LogError) as wrong:
            _logger.warning("answer_unjudged", exchange=self.passed.exchange, error=type(wrong).__name__)
            raise SourceBroken(str(wrong)) from wrong
        refused = ended.event.action in REFUSALS
        return guarded.refusal(ended.event.response, ended.decision) if refused else guarded.rest()

    async def _record(self, guarded: GuardedStream) -> bool:
        """Record a stream; return whether it contains an answer, so that its exchange will end."""
        answer = await _run(partial(read_streamed_answer, bytes(self.received)), len(self.received))
        if answer.failed and not guarded.found:
            self._abandon("upstream_cut")
            if not guarded.is_read:
                raise SourceBroken("the upstream's answer failed before it could be judged: try again")
            return False
        if guarded.found:
            stopped = msgspec.structs.replace(answer.answer, stopped_for=guarded.found, delivered=guarded.sent)
            answer = msgspec.structs.replace(answer, answer=stopped)
        self._has_outcome = True
        try:
            await self._service.record(self.passed, answer, self._chat_input)
        except LogError as error:
            _logger.warning("answer_unrecorded", exchange=self.passed.exchange, error=error.code)
            self._service.client.stop_waiting(self.passed.exchange)
            raise SourceBroken(str(error)) from error
        return True

    async def _next(self) -> bytes:
        try:
            async with self._service.client.deadline(self._deadline):
                piece = await anext(self._pieces)
        except StopAsyncIteration:
            if self._guarded is None:
                if self.masked is not None:
                    received = bytes(self.received)
                    self.received[:] = await _run(partial(self.masked.restored, received), len(received))
                await self._end()
                raise
            piece = await _run(self.masked.end, self.masked.cutter.held) if self.masked is not None else b""
            if not piece:
                raise
        except TimeoutError:
            self._abandon("upstream_overdue" if not self._deadline.left else "upstream_cut")
            raise SourceBroken("the upstream's answer was not there in time: try again") from None
        except httpx.HTTPError as wrong:
            self._abandon("upstream_cut")
            raise SourceBroken(f"the upstream's answer broke off ({type(wrong).__name__}): try again") from wrong
        else:
            if self.masked is not None and self._guarded is not None:
                piece = await _run(partial(self.masked.take, piece), self.masked.cutter.held + len(piece))
        self.cut_off = self.cut_off or len(self.received) + len(piece) > MOST_BYTES
        self.received += piece[: MOST_BYTES - len(self.received)]
        return piece

    async def aclose(self, reason: Abandoned = "client_left") -> None:
        """Stop reading: a response that is not complete is recorded as abandoned."""
        self._abandon("upstream_cut" if self.cut_off else reason)
        await self.response.aclose()

    async def _end(self) -> None:
        body = bytes(self.received)
        if not self.response.is_success:
            self.withheld_for = await self._faults_of(body)
            # Only reflex finds attacks (``orders``) in a text, and it reads the answers of exchanges alone. So where
            # answers with attacks are withheld, no body of a refusal is delivered.
            if "orders" in self._service.watch.faults:
                self.withheld_for = ("orders",)
            self._abandon("upstream_refused", self.response.status_code)
            return
        self._has_outcome = True
        answer = await _run(partial(read_whole_answer, body), len(body))
        # Reflex reads only what is recorded, so the rest is read here.
        if answer.left_unread and (found := await self._faults_of(body)):
            stopped = msgspec.structs.replace(answer.answer, stopped_for=found, delivered=0)
            answer = msgspec.structs.replace(answer, answer=stopped)
        await self._service.record(self.passed, answer, self._chat_input)

    async def _faults_of(self, body: bytes) -> tuple[AnswerFault, ...]:
        prompt = Prompt(self._chat_input.text, self._chat_input.layers)
        return await asyncio.to_thread(faults_in, body, prompt, self._service.watch)

    def _abandon(self, reason: Abandoned, status: int | None = None) -> None:
        if not self._has_outcome:
            self._has_outcome = True
            self._service.abandon(self.passed, reason, status, self.withheld_for)


async def _run(work: Callable[[], T], size: int) -> T:
    """Return the result of reading ``size`` bytes; many are read in a thread, so that others are served meanwhile."""
    return work() if size <= _LONG else await asyncio.to_thread(work)
