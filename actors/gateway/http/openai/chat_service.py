"""Puts a chat input into the log and waits for its end; the text can be sent while a model generates it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import msgspec

from actors.gateway.answer_pieces import AnswerPiece
from actors.gateway.exchanges import ExchangeEnd
from actors.gateway.external_events import WrappedEvent
from actors.gateway.forwarded_inputs import PassedInput
from actors.gateway.http.openai.answers import Decision, Usage, decision_of, sum_of
from actors.gateway.http.openai.chat_inputs import ChatInput
from actors.gateway.http.openai.conversation_histories import Histories
from actors.gateway.http.openai.messages import ReadMessage, merge_layers
from actors.gateway.http.openai.streamed_text import StreamedText
from actors.gateway.input_client import Client
from actors.gateway.wait_deadlines import WaitDeadline
from events.decoding import Recorded, decode
from events.errors import LogError
from schemas.event import topic_of
from schemas.subjects import stored_subject
from schemas.vocabulary.gateway import Purpose
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.responder import ResponseEmitted

END_S = 2.0
"""Seconds after an exchange's own deadline within which its end, with the reason, arrives."""

USAGE_S = 1.0
"""Seconds within which the token usage of an answer must be read from the log; else zero is reported."""

_NS_PER_S = 1_000_000_000


class ExchangeFailed(Exception):
    """An exchange failed; the message says why, ``decision`` what was decided."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__(
            f"exchange {decision.exchange} failed at {decision.stage}: {decision.reason}; `neuraxis why "
            f"{decision.exchange}` tells, try again"
        )


class AnswerEnd(msgspec.Struct, frozen=True):
    """The end of an exchange. ``rest`` is the part of its text not yet sent; None if another text was sent."""

    event: ResponseEmitted
    decision: Decision
    usage: Usage
    created: int
    rest: str | None


class AnswerText(msgspec.Struct, frozen=True):
    """A piece of an exchange's answer, and when the exchange began (Unix seconds)."""

    exchange: str
    created: int
    text: str


class ChatService:
    """Has chat inputs answered.

    Args:
        client: Sends inputs and receives their ends.
        wait_s: Seconds that an answer may take.
        accept_s: Seconds within which the log must store an input: until then nothing is done about it, and the caller
            may send it elsewhere.
        early: Whether text is sent while a model generates it; False if a later stage may still withdraw the answer.
    """

    def __init__(self, client: Client, *, wait_s: float, accept_s: float, early: bool = False) -> None:
        self.histories = Histories()
        self._client = client
        self._wait_s = wait_s
        self._accept_s = accept_s
        self._early = early

    async def ask(self, chat_input: ChatInput) -> AnswerEnd:
        """Have a chat input answered.

        Raises:
            InvalidInput: it is too large, or a name in it cannot be accepted.
            ExchangeFailed: the exchange failed.
            LogError: it could not be stored, or did not end in time.
        """
        return await self._ended(chat_input, self._input(chat_input), self._begin())

    async def ask_streaming(self, chat_input: ChatInput) -> AsyncGenerator[AnswerText | AnswerEnd, None]:
        """Have a chat input answered; yield, as it comes, the text that will not be withdrawn; then the end.

        Raises:
            InvalidInput, ExchangeFailed, LogError: as :meth:`ask` does.
        """
        if not self._early:
            yield await self.ask(chat_input)
            return
        streamed, pieces = StreamedText(), asyncio.Queue[AnswerPiece | None]()
        async with self._client.receiving_pieces(pieces.put_nowait) as inbox:
            wrapped, created = self._input(chat_input, inbox), self._client.now_ns() // _NS_PER_S
            asking = asyncio.create_task(self._ended(chat_input, wrapped, self._begin()), name="asking")
            asking.add_done_callback(lambda _: pieces.put_nowait(None))
            try:
                while (piece := await pieces.get()) is not None:
                    if text := streamed.take(piece):
                        yield AnswerText(wrapped.exchange, created, text)
                ended = asking.result()
                yield msgspec.structs.replace(ended, rest=streamed.rest(ended.event.response))
            finally:
                asking.cancel()
                await asyncio.wait((asking,))

    async def ask_guards(self, chat_input: ChatInput, further_s: float) -> PassedInput | AnswerEnd:
        """Have the guards read a chat input that an upstream's model is to answer; return that it passed, or its end.

        ``further_s`` is how long the answer may take after that, in seconds. The caller must report the answer, or that
        there is none, and then wait for the end (``Client.await_end``) or stop waiting (``Client.stop_waiting``).

        Raises:
            InvalidInput, ExchangeFailed, LogError: as :meth:`ask` does.
        """
        wrapped = self._input(chat_input, purpose="forward", further_s=further_s)
        deadline = self._begin()
        await self._submit(wrapped, deadline)
        outcome = await self._client.await_passed(wrapped.exchange, deadline)
        if isinstance(outcome, PassedInput):
            return outcome
        return end_of(outcome, agent=chat_input.agent, session=chat_input.session)

    async def _submit(self, wrapped: WrappedEvent, deadline: WaitDeadline) -> None:
        await self._client.submit(wrapped, min(self._accept_s, deadline.left))

    def _begin(self) -> WaitDeadline:
        return self._client.begin(self._wait_s + END_S)

    def _input(
        self, chat_input: ChatInput, inbox: str = "", purpose: Purpose = "answer", further_s: float = 0.0
    ) -> WrappedEvent:
        return self._client.input(
            chat_input.text,
            agent=chat_input.agent,
            session=chat_input.session,
            layers=merge_layers(chat_input.layers, self._client.limits.layers),
            wordless=chat_input.wordless,
            inbox=inbox,
            deadline_after_ms=max(1, round((self._wait_s + further_s) * 1000)),
            purpose=purpose,
        )

    async def _ended(self, chat_input: ChatInput, wrapped: WrappedEvent, deadline: WaitDeadline) -> AnswerEnd:
        await self._submit(wrapped, deadline)
        answered = await self._client.await_end(wrapped.exchange, deadline)
        ended = end_of(answered, agent=chat_input.agent, session=chat_input.session)
        messages = (*chat_input.messages, ReadMessage("assistant", ended.event.response))
        self.histories.keep(chat_input.conversation, messages, chat_input.definitions)
        if ended.event.backend != "llm":
            return ended
        return msgspec.structs.replace(ended, usage=await self._usage(ended.decision, answered.input_seq, answered.seq))

    async def _usage(self, decision: Decision, after: int, upto: int) -> Usage:
        """Return the tokens that the models of an exchange used, read from the log."""
        pairs = self._client.log.partitions.token_pairs(decision.agent, decision.session)
        filters, usages = [stored_subject(topic_of(LlmCompleted), *tokens) for tokens in pairs], []
        with contextlib.suppress(TimeoutError, LogError):
            async with asyncio.timeout(USAGE_S):
                async for batch in self._client.log.history(filters, after, upto):
                    for recorded in map(decode, batch):
                        if isinstance(recorded, Recorded) and recorded.message.exchange == decision.exchange:
                            usages.append(_usage_of(recorded.message.event))
        return sum_of(usages)


def end_of(answered: ExchangeEnd, *, agent: str, session: str) -> AnswerEnd:
    """Return the end of an exchange of which no text was sent before; raises ExchangeFailed for one that failed."""
    decision = decision_of(answered.event, exchange=answered.exchange, agent=agent, session=session)
    if answered.event.action == "FAILED":
        raise ExchangeFailed(decision)
    return AnswerEnd(answered.event, decision, Usage(), answered.time_ns // _NS_PER_S, answered.event.response)


def _usage_of(event: object) -> Usage:
    assert isinstance(event, LlmCompleted)
    return Usage(prompt_tokens=event.prompt_tokens, completion_tokens=event.completion_tokens)
