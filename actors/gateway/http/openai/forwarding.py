"""Forwards requests for other models: the guards read them, they are sent unchanged, and the response is returned.

A whole answer is recorded, and its exchange ends, before it is delivered. A streamed answer is delivered piece by
piece, each piece after the texts in it were read (``guarding``); its last pieces wait for the end of the exchange, as a
whole answer does. Every request that the guards let pass gets exactly one outcome in the log: an answer, or that there
was none.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from hashlib import sha256

import msgspec

from actors.contract.answers.prompt import Prompt
from actors.contract.privacy.settings import PrivacySettings
from actors.gateway.forwarded_inputs import PassedInput
from actors.gateway.http.openai.answers import REFUSALS
from actors.gateway.http.openai.chat_inputs import ChatInput
from actors.gateway.http.openai.chat_service import AnswerEnd, ChatService, end_of
from actors.gateway.http.openai.failures import failure_of
from actors.gateway.http.openai.passthrough.guarding import GuardedStream, Watch, faults_in
from actors.gateway.http.openai.passthrough.masking import MaskedRequest
from actors.gateway.http.openai.passthrough.relayed_body import MOST_BYTES, Abandoned, RelayedBody
from actors.gateway.http.openai.relayed_answer import RelayedAnswer
from actors.gateway.http.openai.streaming_response import SourceBroken
from actors.gateway.http.openai.upstream import Headers, Upstream, UpstreamFailed, headers_to_return, why_unfit
from actors.gateway.input_client import Client
from events.errors import LogError
from events.libraries.http_client import httpx
from events.loggers import get_logger
from schemas.vocabulary.gateway import InputAbandoned
from schemas.vocabulary.reflex import AnswerFault

RECORD_S = 5.0
"""Seconds within which the log must store the outcome of a request, once no client waits for it."""

FETCH_S = 5.0
"""Seconds within which an upstream must list its models."""

MOST_FETCHED = 4 * 1024 * 1024
"""Most bytes of an upstream's list of models."""

_MOST_KNOWN = 64
"""Most lists of models whose faults are remembered."""

_logger = get_logger("neuraxis.gateway")


class FetchedResponse(msgspec.Struct, frozen=True):
    """A response of the upstream to a request that begins no exchange, such as for its list of models."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class RelayedResponse(msgspec.Struct, frozen=True):
    """A response of the upstream as it is returned to the client: whole, or in pieces."""

    exchange: str
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes | RelayedBody
    ended: AnswerEnd | None = None


class IncomingRequest(msgspec.Struct, frozen=True):
    """A request as it arrived."""

    body: bytes
    headers: Headers
    query: bytes


class UpstreamForwarder:
    """Forwards requests to an upstream; made by :meth:`open`."""

    def __init__(
        self,
        chat: ChatService,
        client: Client,
        upstream: Upstream,
        wait_s: float,
        tasks: asyncio.TaskGroup,
        watch: Watch,
        privacy: PrivacySettings,
    ) -> None:
        self.watch = watch
        self._privacy = privacy
        self.client = client
        self._chat = chat
        self._upstream = upstream
        self._wait_s = wait_s
        self._tasks = tasks
        self._closed = False
        self._reading = asyncio.Lock()
        self._faults_by_digest = OrderedDict[bytes, tuple[AnswerFault, ...]]()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        chat: ChatService,
        client: Client,
        upstream: Upstream,
        *,
        wait_s: float,
        watch: Watch,
        privacy: PrivacySettings,
    ) -> AsyncIterator["UpstreamForwarder"]:
        """Forward requests while the block runs.

        ``wait_s`` is how many seconds the upstream may take for one request. ``watch`` says for which faults a stream
        is ended. ``privacy`` says which personal data is masked.
        """
        async with asyncio.TaskGroup() as tasks:
            service = cls(chat, client, upstream, wait_s, tasks, watch, privacy)
            try:
                yield service
            finally:
                service._closed = True

    async def forward(self, chat_input: ChatInput, incoming: IncomingRequest) -> AnswerEnd | RelayedResponse:
        """Have the guards read a request, then forward it; returns their refusal, or the response.

        Raises:
            InvalidInput: it is too large, or a name in it cannot be accepted.
            ExchangeFailed: the guards could not judge it.
            UpstreamFailed: the upstream gave no response.
            LogError: it could not be stored, or the guards did not judge it in time.
        """
        masked: MaskedRequest | None = None
        if self._privacy.masks(chat_input.agent):
            # Done first, and in another thread: a long text takes a while, and an input that waits has a deadline.
            masked = await asyncio.to_thread(MaskedRequest, incoming.body, self._privacy)
        outcome = await self._judged(chat_input)
        if isinstance(outcome, AnswerEnd):
            return outcome
        deadline = self.client.begin(self._wait_s)
        if masked:
            counts, recogniser = masked.record_fields
            outcome = msgspec.structs.replace(outcome, masked=counts, recogniser=recogniser)
        try:
            async with self.client.deadline(deadline):
                body = masked.body if masked else incoming.body
                response = await self._upstream.send(
                    "POST", "/chat/completions", query=incoming.query, headers=incoming.headers, body=body
                )
        except TimeoutError:
            self.abandon(outcome, "upstream_overdue")
            raise UpstreamFailed("upstream_overdue", "the upstream has not answered in time: try again") from None
        except UpstreamFailed:
            self.abandon(outcome, "upstream_unreachable")
            raise
        except asyncio.CancelledError:
            self.abandon(outcome, "client_left")
            raise
        streamed = (
            response.headers.get("content-type", "").casefold().startswith("text/event-stream") and response.is_success
        )
        guarded = GuardedStream(Prompt(chat_input.text, chat_input.layers), self.watch) if streamed else None
        pieces = RelayedBody(self, response, outcome, chat_input, deadline, guarded, masked)
        if wrong := why_unfit(response):
            await pieces.aclose("upstream_refused")
            raise UpstreamFailed("upstream_refused", wrong)
        if streamed:
            # The body may be shorter than the length that the upstream stated.
            headers = [(name, value) for name, value in headers_to_return(response) if name != b"content-length"]
            return RelayedResponse(outcome.exchange, response.status_code, headers, pieces)
        return await self._whole(pieces, chat_input)

    async def _whole(self, pieces: RelayedBody, chat_input: ChatInput) -> AnswerEnd | RelayedResponse:
        passed, response = pieces.passed, pieces.response
        try:
            async with contextlib.aclosing(pieces):
                async for _ in pieces:
                    if pieces.cut_off:
                        raise SourceBroken(f"the upstream's answer has more than {MOST_BYTES:,} bytes")
        except SourceBroken as broken:
            raise UpstreamFailed("upstream_cut", str(broken)) from broken
        body = bytes(pieces.received)
        kept = headers_to_return(response)
        headers = [each for each in kept if pieces.masked is None or each[0] != b"content-length"]
        relayed = RelayedResponse(passed.exchange, response.status_code, headers, body)
        if not response.is_success:
            found = pieces.withheld_for
            return _without_words(relayed, found) if found else relayed
        ended = await self.end(passed)
        return ended if ended.event.action in REFUSALS else msgspec.structs.replace(relayed, ended=ended)

    async def end(self, passed: PassedInput) -> AnswerEnd:
        """Return the end of an exchange whose answer is recorded: the decision of the stage that examines answers.

        Raises:
            ExchangeFailed, LogError: it was not examined in time, so it is not delivered.
        """
        answered = await self.client.await_end(passed.exchange, RECORD_S)
        return end_of(answered, agent=passed.agent, session=passed.session)

    async def fetch(self, path: str, headers: Headers) -> FetchedResponse:
        """Send the upstream a request that begins no exchange; raises UpstreamFailed."""
        try:
            async with asyncio.timeout(FETCH_S):
                response = await self._upstream.send("GET", path, headers=headers)
                async with contextlib.aclosing(response):
                    if wrong := why_unfit(response):
                        raise UpstreamFailed("upstream_refused", wrong)
                    body = await _short_body(response)
                    if found := await self._faults_of(body):
                        what = f"the upstream's answer is withheld ({', '.join(found)}): see its log"
                        raise UpstreamFailed("upstream_refused", what)
        except TimeoutError:
            raise UpstreamFailed("upstream_overdue", "the upstream has not answered in time: try again") from None
        except httpx.HTTPError as wrong:
            raise UpstreamFailed("upstream_cut", "the upstream's answer broke off: try again") from wrong
        return FetchedResponse(response.status_code, headers_to_return(response), body)

    async def _faults_of(self, body: bytes) -> tuple[AnswerFault, ...]:
        """Return why the answer to a request without an exchange is withheld.

        A list of models may be long, and clients ask for it again and again: each is read once, and one at a time.
        """
        digest = sha256(body).digest()
        async with self._reading:
            if (found := self._faults_by_digest.get(digest)) is None:
                found = await asyncio.to_thread(faults_in, body, Prompt("", ()), self.watch)
                self._faults_by_digest[digest] = found
                if len(self._faults_by_digest) > _MOST_KNOWN:
                    self._faults_by_digest.popitem(last=False)
        return found

    async def _judged(self, chat_input: ChatInput) -> PassedInput | AnswerEnd:
        """Return the guards' decision. If the client leaves first, an input that passes is recorded as abandoned."""
        judging = self._tasks.create_task(self._verdict(chat_input), name="judging")
        try:
            outcome = await asyncio.shield(judging)
        except asyncio.CancelledError:
            judging.add_done_callback(self._abandon_if_passed)
            raise
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _verdict(self, chat_input: ChatInput) -> PassedInput | AnswerEnd | Exception:
        try:
            return await self._chat.ask_guards(chat_input, self._wait_s + RECORD_S)
        except Exception as wrong:
            return wrong  # raised in the task group it would end all other tasks

    def _abandon_if_passed(self, judging: "asyncio.Task[PassedInput | AnswerEnd | Exception]") -> None:
        if not judging.cancelled() and isinstance(outcome := judging.result(), PassedInput):
            self.abandon(outcome, "client_left")

    async def record(self, passed: PassedInput, answer: RelayedAnswer, chat_input: ChatInput) -> None:
        """Record an answer; raises LogError where the log does not store it in time."""
        await self.client.settle(passed, answer.answer, RECORD_S)
        if answer.message is not None and not answer.answer.stopped_for:
            self._chat.histories.keep(
                chat_input.conversation, (*chat_input.messages, answer.message), chat_input.definitions
            )

    def abandon(
        self,
        passed: PassedInput,
        reason: Abandoned,
        status: int | None = None,
        withheld_for: tuple[AnswerFault, ...] = (),
    ) -> None:
        """Record that a request gets no answer, in a task of its own, since no caller waits for that."""
        if self._closed:  # its exchange ends at its deadline
            _logger.warning("abandon_not_recorded", exchange=passed.exchange, reason=reason, error="stopped")
            return
        outcome = InputAbandoned(reason=reason, status=status, withheld_for=withheld_for)
        self._tasks.create_task(self._abandon(passed, outcome), name="abandon")

    async def _abandon(self, passed: PassedInput, outcome: InputAbandoned) -> None:
        try:
            await self.client.settle(passed, outcome, RECORD_S)
        except LogError as error:
            # Without this record the exchange ends at its deadline.
            _logger.warning("abandon_not_recorded", exchange=passed.exchange, reason=outcome.reason, error=error.code)
        except Exception:
            # Raised in the task group it would end all other requests, too.
            _logger.exception("abandon_not_recorded", exchange=passed.exchange, reason=outcome.reason, error="bug")
        self.client.stop_waiting(passed.exchange)


def _without_words(refusal: RelayedResponse, found: tuple[AnswerFault, ...]) -> RelayedResponse:
    """Return the upstream's refusal of a request with an error of our own in place of its body."""
    # "orders" (an attack on whatever reads the text) stands for a text that was not judged: only reflex finds attacks,
    # and only in the answers of an exchange.
    why = "nobody judges what it says" if "orders" in found else f"what it says is withheld ({', '.join(found)})"
    message = f"the upstream answered with status {refusal.status}, and {why}: see the upstream's log"
    body = msgspec.json.encode(failure_of(refusal.status, message, "upstream_refused"))
    kept = [
        each for each in refusal.headers if each[0] not in (b"content-length", b"content-type", b"content-encoding")
    ]
    return msgspec.structs.replace(refusal, headers=[*kept, (b"content-type", b"application/json")], body=body)


async def _short_body(response: httpx.Response) -> bytes:
    """Return the body of a response; raises UpstreamFailed for one that is too long."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MOST_FETCHED:
            raise UpstreamFailed("upstream_cut", f"the upstream's answer has more than {MOST_FETCHED:,} bytes")
    return bytes(body)
