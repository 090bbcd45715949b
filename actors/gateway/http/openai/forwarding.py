"""Requests for others' models: read by the guards, passed on as they came, and what comes back delivered as it is.

A whole answer is recorded, and its exchange ended, before it is delivered; one in pieces is delivered as it comes, and
recorded at its end. Whatever becomes of a request that the guards have let pass, one word on it goes into the log: an
answer, or that there was none.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Literal

import msgspec

from actors.gateway.client import Client
from actors.gateway.forwarded import Passed
from actors.gateway.http.openai.answers import REFUSALS
from actors.gateway.http.openai.conversing import Conversations, Ended, end_of
from actors.gateway.http.openai.questions import Question
from actors.gateway.http.openai.recording import Heard, heard_in_pieces, heard_whole
from actors.gateway.http.openai.sending import Broken
from actors.gateway.http.openai.upstream import Headers, Upstream, UpstreamFailed, returned
from actors.gateway.terms import Term
from events.errors import LogError
from events.http_client import httpx
from events.loggers import get_logger
from schemas.intake.strict import shown
from schemas.vocabulary.gateway import InputAbandoned

MOST_BYTES = 16 * 1024 * 1024
"""What is read of an answer: a longer one is not delivered whole, and recorded up to here in pieces."""

RECORD_S = 5.0
"""Seconds in which the log takes what became of a request, once nobody waits for more of it."""

FETCH_S = 5.0
"""Seconds in which an upstream says which models it has."""

Abandoned = Literal["upstream_unreachable", "upstream_overdue", "upstream_refused", "upstream_cut", "client_left"]

_logger = get_logger("neuraxis.gateway")


class Fetched(msgspec.Struct, frozen=True):
    """A response of the upstream to a question that is no exchange."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Relayed(msgspec.Struct, frozen=True):
    """A response of the upstream as it is passed on: whole, or in pieces."""

    exchange: str
    status: int
    headers: list[tuple[bytes, bytes]]
    body: "bytes | Pieces"
    ended: Ended | None = None


class Incoming(msgspec.Struct, frozen=True):
    """A request as it came."""

    body: bytes
    headers: Headers
    query: bytes


class Forwarding:
    """Passes requests on to an upstream; made by :meth:`open`."""

    def __init__(
        self, conversations: Conversations, client: Client, upstream: Upstream, wait_s: float, tasks: asyncio.TaskGroup
    ) -> None:
        self.client = client
        self._conversations = conversations
        self._upstream = upstream
        self._wait_s = wait_s
        self._tasks = tasks
        self._closed = False

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, conversations: Conversations, client: Client, upstream: Upstream, *, wait_s: float
    ) -> AsyncIterator["Forwarding"]:
        """Pass requests on for the length of the block; ``wait_s`` is how long the upstream may take for one."""
        async with asyncio.TaskGroup() as tasks:
            service = cls(conversations, client, upstream, wait_s, tasks)
            try:
                yield service
            finally:
                service._closed = True

    async def forward(self, question: Question, incoming: Incoming) -> Ended | Relayed:
        """Have the guards read a request, and pass it on; returns their refusal, or what came back.

        Raises:
            InvalidInput: it is too large, or a name in it cannot be accepted.
            Unended: the guards could not judge it.
            UpstreamFailed: nothing came back.
            LogError: it could not be stored, or the guards have not judged it in time.
        """
        word = await self._judged(question)
        if isinstance(word, Ended):
            return word
        term = self.client.begin(self._wait_s)
        try:
            async with self.client.deadline(term):
                response = await self._upstream.send(
                    "POST", "/chat/completions", query=incoming.query, headers=incoming.headers, body=incoming.body
                )
        except TimeoutError:
            self.abandon(word, "upstream_overdue")
            raise UpstreamFailed("upstream_overdue", "the upstream has not answered in time: try again") from None
        except UpstreamFailed:
            self.abandon(word, "upstream_unreachable")
            raise
        except asyncio.CancelledError:
            self.abandon(word, "client_left")
            raise
        pieces = Pieces(self, response, word, question, term)
        if wrong := _unfit(response):
            await pieces.aclose("upstream_refused")
            raise UpstreamFailed("upstream_refused", wrong)
        if response.headers.get("content-type", "").startswith("text/event-stream") and response.is_success:
            return Relayed(word.exchange, response.status_code, returned(response), pieces)
        return await self._whole(pieces, question)

    async def _whole(self, pieces: "Pieces", question: Question) -> Ended | Relayed:
        passed, response = pieces.passed, pieces.response
        try:
            async with contextlib.aclosing(pieces):
                async for _ in pieces:
                    if pieces.cut_off:
                        raise Broken(f"the upstream's answer has more than {MOST_BYTES:,} bytes")
        except Broken as broken:
            raise UpstreamFailed("upstream_cut", str(broken)) from broken
        body = bytes(pieces.taken)
        relayed = Relayed(passed.exchange, response.status_code, returned(response), body)
        if not response.is_success:
            return relayed
        # Its end is the word of whoever looks at answers: what is set aside is not delivered.
        answered = await self.client.answer(passed.exchange, RECORD_S)
        ended = end_of(answered, agent=passed.agent, session=passed.session)
        return ended if ended.event.action in REFUSALS else msgspec.structs.replace(relayed, ended=ended)

    async def fetch(self, path: str, headers: Headers) -> Fetched:
        """Ask the upstream for something that is no exchange; raises UpstreamFailed."""
        try:
            async with asyncio.timeout(FETCH_S):
                response = await self._upstream.send("GET", path, headers=headers)
                async with contextlib.aclosing(response):
                    if wrong := _unfit(response):
                        raise UpstreamFailed("upstream_refused", wrong)
                    body = await response.aread()
        except TimeoutError:
            raise UpstreamFailed("upstream_overdue", "the upstream has not answered in time: try again") from None
        except httpx.HTTPError as wrong:
            raise UpstreamFailed("upstream_cut", "the upstream's answer broke off: try again") from wrong
        return Fetched(response.status_code, returned(response), body)

    async def _judged(self, question: Question) -> Passed | Ended:
        """Return the guards' word. Where nobody waits for it any more, what they let pass is abandoned all the same."""
        judging = self._tasks.create_task(self._word(question), name="judging")
        try:
            word = await asyncio.shield(judging)
        except asyncio.CancelledError:
            judging.add_done_callback(self._leave_judged)
            raise
        if isinstance(word, Exception):
            raise word
        return word

    async def _word(self, question: Question) -> Passed | Ended | Exception:
        try:
            return await self._conversations.passed(question, self._wait_s + RECORD_S)
        except Exception as wrong:
            return wrong  # raised in a group of tasks it would end all of them

    def _leave_judged(self, judging: "asyncio.Task[Passed | Ended | Exception]") -> None:
        if not judging.cancelled() and isinstance(word := judging.result(), Passed):
            self.abandon(word, "client_left")

    async def record(self, passed: Passed, heard: Heard, question: Question) -> None:
        """Put an answer on record; raises LogError where the log does not take it in time."""
        await self.client.settle(passed, heard.answer, RECORD_S)
        if heard.said is not None:
            self._conversations.histories.keep(
                question.conversation, (*question.messages, heard.said), question.definitions
            )

    def abandon(self, passed: Passed, reason: Abandoned, status: int | None = None) -> None:
        """Put on record that a request gets no answer, in time of its own: nobody waits for that."""
        if self._closed:  # its exchange ends at its deadline
            _logger.warning("abandoned_unsaid", exchange=passed.exchange, reason=reason, error="stopped")
            return
        self._tasks.create_task(self._abandon(passed, InputAbandoned(reason=reason, status=status)), name="abandon")

    async def _abandon(self, passed: Passed, word: InputAbandoned) -> None:
        try:
            await self.client.settle(passed, word, RECORD_S)
        except LogError as error:
            # Its exchange ends at its deadline, then.
            _logger.warning("abandoned_unsaid", exchange=passed.exchange, reason=word.reason, error=error.code)
        self.client.leave(passed.exchange)


def _unfit(response: httpx.Response) -> str:
    """Return why a response is not passed on, empty where it is."""
    if response.has_redirect_location:  # clients follow it: past the guards and the record
        return f"the upstream leads elsewhere (status {response.status_code}): name that place in gateway.upstream.url"
    coding = response.headers.get("content-encoding", "identity")
    if response.is_success and coding != "identity":
        # Nobody could read what it says: neither the record, nor a guard of answers.
        return f"the upstream's answer is compressed ({shown(coding)}), unasked"
    return ""


class Pieces:
    """The body of a response as it comes, recorded at its end; an asynchronous generator in all that matters.

    Attributes:
        taken: The bytes so far, up to :data:`MOST_BYTES`.
        cut_off: Whether there were more.
    """

    def __init__(
        self, service: Forwarding, response: httpx.Response, passed: Passed, question: Question, term: Term
    ) -> None:
        self.response = response
        self.passed = passed
        self.taken = bytearray()
        self.cut_off = False
        self._service = service
        self._question = question
        self._term = term
        self._pieces = response.aiter_raw()
        self._told = False

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece, once it is there.

        Raises:
            StopAsyncIteration: all is there, and on record.
            Broken: it broke off.
            LogError: the log did not take it in time.
        """
        try:
            async with self._service.client.deadline(self._term):
                piece = await anext(self._pieces)
        except StopAsyncIteration:
            await self._end()
            raise
        except TimeoutError:
            self._abandon("upstream_overdue" if not self._term.left else "upstream_cut")
            raise Broken("the upstream's answer was not there in time: try again") from None
        except httpx.HTTPError as wrong:
            self._abandon("upstream_cut")
            raise Broken(f"the upstream's answer broke off ({type(wrong).__name__}): try again") from wrong
        self.cut_off = self.cut_off or len(self.taken) + len(piece) > MOST_BYTES
        self.taken += piece[: MOST_BYTES - len(self.taken)]
        return piece

    async def aclose(self, reason: Abandoned = "client_left") -> None:
        """Ask for no more: what was not all there is put on record as abandoned."""
        self._abandon("upstream_cut" if self.cut_off else reason)
        await self.response.aclose()

    async def _end(self) -> None:
        if not self.response.is_success:
            self._abandon("upstream_refused", self.response.status_code)
            return
        self._told = True
        streamed = self.response.headers.get("content-type", "").startswith("text/event-stream")
        heard = (heard_in_pieces if streamed else heard_whole)(bytes(self.taken))
        if heard.failed:
            self._told = False
            self._abandon("upstream_cut")
            return
        try:
            await self._service.record(self.passed, heard, self._question)
        except LogError as error:
            if not streamed:
                raise
            # Its reader has it already: the exchange ends at its deadline.
            _logger.warning("answer_unrecorded", exchange=self.passed.exchange, error=error.code)
        if streamed:
            self._service.client.leave(self.passed.exchange)

    def _abandon(self, reason: Abandoned, status: int | None = None) -> None:
        if not self._told:
            self._told = True
            self._service.abandon(self.passed, reason, status)
