"""Where a question becomes an input in the log, and waits for its end; its text may be told while a model speaks."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import msgspec

from actors.gateway.client import Answered, Client
from actors.gateway.forwarded import Passed
from actors.gateway.http.openai.answers import Decision, Usage, decision_of, sum_of
from actors.gateway.http.openai.histories import Histories
from actors.gateway.http.openai.messages import Read, folded
from actors.gateway.http.openai.questions import Question
from actors.gateway.http.openai.speech import Speech
from actors.gateway.http.terms import Term, Terms
from actors.gateway.inputs import DEFAULT_LIMITS, Addressed, new_input
from actors.gateway.pieces import Piece, piece_in
from events.codec import Recorded, decode
from events.errors import LogError, Unavailable
from events.log import Log
from schemas.event import topic_of
from schemas.intake.limits import InputLimits
from schemas.subjects import stored_subject
from schemas.vocabulary.gateway import Purpose
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.responder import ResponseEmitted

END_S = 2.0
"""Seconds beyond an exchange's own deadline in which its end, with the reason, comes."""

USAGE_S = 1.0
"""Seconds in which the log says what an answer took; else it is told as nothing."""

_NS_PER_S = 1_000_000_000

Hearing = Callable[[Callable[[bytes], None]], AbstractAsyncContextManager[str]]
"""Gives a function the bodies that come to a fresh inbox, for the length of the block; yields the inbox."""


class Unended(Exception):
    """An exchange failed; the message says why, ``decision`` what was decided."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__(
            f"exchange {decision.exchange} failed at {decision.stage}: {decision.reason}; `neuraxis why "
            f"{decision.exchange}` tells, try again"
        )


class Ended(msgspec.Struct, frozen=True):
    """The end of an exchange; ``rest`` is what of its text was not told before, None where it is another text."""

    event: ResponseEmitted
    decision: Decision
    usage: Usage
    created: int
    rest: str | None


class Spoken(msgspec.Struct, frozen=True):
    """A piece of an exchange's answer, and when it was begun (Unix seconds)."""

    exchange: str
    created: int
    text: str


class Conversations:
    """Has questions answered.

    Args:
        log: The log.
        edge: What appends to it, through restarts of the broker.
        wait_s: Seconds that a question may take.
        hearing: See there; None where nothing is told before its end, because a later stage may withdraw it.
        unserved: (agent, session) -> why nobody ends its exchanges, empty while somebody may.
        limits: How large an input may be.
        now_ns: This process's clock, Unix nanoseconds, for envelopes.
    """

    def __init__(
        self,
        log: Log,
        edge: Client,
        *,
        wait_s: float,
        hearing: Hearing | None = None,
        unserved: Callable[[str, str], str] = lambda agent, session: "",
        limits: InputLimits = DEFAULT_LIMITS,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.histories = Histories()
        self._log = log
        self._edge = edge
        self._wait_s = wait_s
        self._terms = Terms(wait_s + END_S)
        self._hearing = hearing
        self._unserved = unserved
        self._limits = limits
        self.now_ns = now_ns
        self.partitions = log.partitions

    def hurry(self, seconds: float) -> None:
        """Let those who wait do so for ``seconds`` more at most: this process is to stop."""
        self._terms.hurry(seconds)

    async def ask(self, question: Question) -> Ended:
        """Have a question answered.

        Raises:
            InvalidInput: it is too large, or a name in it cannot be accepted.
            Unended: it failed.
            LogError: it could not be stored, or has no end in time.
        """
        return await self._ended(question, self._input(question), self._terms.begin())

    async def tell(self, question: Question) -> AsyncGenerator[Spoken | Ended, None]:
        """Have a question answered, and yield its text as it comes, as far as it stands; then its end.

        Raises:
            InvalidInput, Unended, LogError: as :meth:`ask` does.
        """
        if self._hearing is None:
            yield await self.ask(question)
            return
        speech, pieces = Speech(), asyncio.Queue[Piece | None]()
        async with self._hearing(partial(_put, pieces)) as inbox:
            addressed, created = self._input(question, inbox), self.now_ns() // _NS_PER_S
            asking = asyncio.create_task(self._ended(question, addressed, self._terms.begin()), name="asking")
            asking.add_done_callback(lambda _: pieces.put_nowait(None))
            try:
                while (piece := await pieces.get()) is not None:
                    if text := speech.take(piece):
                        yield Spoken(addressed.exchange, created, text)
                ended = asking.result()
                yield msgspec.structs.replace(ended, rest=speech.rest(ended.event.response))
            finally:
                asking.cancel()
                await asyncio.wait((asking,))

    async def passed(self, question: Question, further_s: float) -> Passed | Ended:
        """Have the guards read a question that another's model is to answer; return that they let it pass, or its end.

        ``further_s`` is how long its answer may take from then on; whoever asks has to say what came of it, and takes
        its end (``Client.answer``) or leaves it.

        Raises:
            InvalidInput, Unended, LogError: as :meth:`ask` does.
        """
        addressed = self._input(question, purpose="forward", further_s=further_s)
        async with self._in_time(addressed, term := self._terms.begin()):
            await self._edge.submit(addressed, term.left)
            lacking = partial(self._unserved, question.agent, question.session)
            word = await self._edge.passed(addressed.exchange, term.left, lacking)
        return word if isinstance(word, Passed) else end_of(word, agent=question.agent, session=question.session)

    def _input(
        self, question: Question, inbox: str = "", purpose: Purpose = "answer", further_s: float = 0.0
    ) -> Addressed:
        return new_input(
            question.text,
            agent=question.agent,
            session=question.session,
            layers=folded(question.layers, self._limits.layers),
            wordless=question.wordless,
            partitions=self._log.partitions,
            now_ns=self.now_ns(),
            reply_to=inbox,
            stream=bool(inbox),
            deadline_after_ms=max(1, round((self._wait_s + further_s) * 1000)),
            purpose=purpose,
            limits=self._limits,
        )

    async def _ended(self, question: Question, addressed: Addressed, term: Term) -> Ended:
        async with self._in_time(addressed, term):
            stored = await self._edge.submit(addressed, term.left)
            lacking = partial(self._unserved, question.agent, question.session)
            answered = await self._edge.answer(addressed.exchange, term.left, lacking)
        ended = end_of(answered, agent=question.agent, session=question.session)
        said = (*question.messages, Read("assistant", ended.event.response))
        self.histories.keep(question.conversation, said, question.definitions)
        if ended.event.backend != "llm":
            return ended
        return msgspec.structs.replace(ended, usage=await self._used(ended.decision, stored, answered.seq))

    @contextlib.asynccontextmanager
    async def _in_time(self, addressed: Addressed, term: Term) -> AsyncIterator[None]:
        # Each step ends in time by itself, and then says what is known: only a process that stops cuts it off.
        try:
            async with self._terms.deadline(term):
                yield
        except TimeoutError:
            stops = f"exchange {addressed.exchange} has no end yet, and this gateway stops: try again"
            raise Unavailable(stops) from None

    async def _used(self, decision: Decision, after: int, upto: int) -> Usage:
        """Return what the models used that an exchange asked, by the log."""
        partitions = self._log.partitions
        tokens = partitions.agent_token(decision.agent), partitions.session_token(decision.session)
        usages = []
        with contextlib.suppress(TimeoutError, LogError):
            async with asyncio.timeout(USAGE_S):
                async for batch in self._log.history([stored_subject(topic_of(LlmCompleted), *tokens)], after, upto):
                    for recorded in map(decode, batch):
                        if isinstance(recorded, Recorded) and recorded.message.exchange == decision.exchange:
                            usages.append(_usage_of(recorded.message.event))
        return sum_of(usages)


def end_of(answered: Answered, *, agent: str, session: str) -> Ended:
    """Return the end of an exchange, of which nothing was told before; raises Unended for one that failed."""
    decision = decision_of(answered.event, exchange=answered.exchange, agent=agent, session=session)
    if answered.event.action == "FAILED":
        raise Unended(decision)
    return Ended(answered.event, decision, Usage(), answered.time_ns // _NS_PER_S, answered.event.response)


def _usage_of(event: object) -> Usage:
    assert isinstance(event, LlmCompleted)
    return Usage(prompt_tokens=event.prompt_tokens, completion_tokens=event.completion_tokens)


def _put(pieces: asyncio.Queue[Piece | None], data: bytes) -> None:
    if (piece := piece_in(data)) is not None:
        pieces.put_nowait(piece)
