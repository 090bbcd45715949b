"""Sending lines through a client, many at a time, and reporting how each ended."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection

from actors.gateway import Answered, Client, InvalidInput
from actors.gateway.agents import SHARED_AGENT, AgentPer, agent_for, why_user_is_ignored
from deploy.feeding.line_reader import MAX_LINE_BYTES, Line
from deploy.feeding.lines import BadLine, LineFormat, Talk, format_of, parse
from deploy.feeding.outcomes import Failure, Outcome
from events.errors import LogError, UnknownOutcome
from schemas.identity import new_exchange_id
from schemas.vocabulary.gateway import Purpose


class Feeder:
    """Sends talks into the log and waits for their ends.

    Args:
        client: Sends inputs and receives their ends.
        report: Called with each outcome and failure as it comes.
        run: Part of the names of sessions that lines do not name.
        agent: Agent of lines that name none; empty: as ``agent_per`` says.
        user: User of lines that name none.
        agent_per: Whom each agent belongs to, see :func:`~actors.gateway.agents.agent_for`.
        session: Session of lines that name none; empty: one for the whole feed, named after ``run``.
        session_per_line: Give each line that names no session one of its own; a conversation always has one.
        concurrency: Talks under way at once.
        rate: Inputs begun a second at most; 0 is no limit.
        answer_s: Seconds that an exchange may take, from the moment it is sent to its end.
        unread: Fields of lines and turns that are not part of an input, and are ignored.
        purpose: Who answers inputs, if anybody.

    Attributes:
        shares_memory: Whether several sessions went to the agent that all users share.
        unheard: Why a named user did not get an agent of their own; empty if that did not happen.
    """

    def __init__(
        self,
        client: Client,
        report: Callable[[Outcome | Failure], None],
        *,
        run: str = "",
        agent: str = "",
        user: str = "",
        agent_per: AgentPer = "shared",
        session: str = "",
        session_per_line: bool = False,
        concurrency: int = 64,
        rate: float = 0.0,
        answer_s: float = 65.0,
        unread: Collection[str] = (),
        purpose: Purpose = "answer",
    ) -> None:
        self._client = client
        self._report = report
        self._run = run or f"feed-{new_exchange_id(time.time_ns())[:16]}"
        self.shares_memory, self.user_without_agent = False, ""
        self._agent, self._user, self._agent_per = agent, user, agent_per
        self._sharing = ""
        self._session = session
        self._session_per_line = session_per_line
        self._room = asyncio.Semaphore(concurrency)
        self._answer_s = answer_s
        self._purpose = purpose
        self._pace = _Pace(rate)
        self._unread = frozenset(unread)

    async def feed(
        self,
        lines: AsyncIterator[Line],
        form: LineFormat,
        name: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Send every line, in order, at most ``concurrency`` at a time; ``progress`` is called with the bytes read.

        The format is guessed from ``name``, the file's name. A line that fails does not stop the others. Raises what
        ``report`` and the reading of lines raise.
        """
        try:
            await self._feed(lines, form, name, progress or (lambda _: None))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group

    async def _feed(
        self, lines: AsyncIterator[Line], form: LineFormat, name: str, progress: Callable[[int], None]
    ) -> None:
        guessed = form is LineFormat.AUTO
        async with asyncio.TaskGroup() as tasks:
            async for line in lines:
                if form is LineFormat.AUTO and line.raw and line.raw.strip():
                    form = format_of(name, line.raw)
                talk = _read(line, form, self._unread, guessed)
                if isinstance(talk, Talk):
                    await self._room.acquire()
                    tasks.create_task(self._converse(talk))
                elif talk is not None:
                    self._report(Failure(line=talk.line, id=talk.id, code=talk.code, detail=talk.detail))
                progress(line.offset)

    async def _converse(self, talk: Talk) -> None:
        try:
            for turn in range(1, len(talk.turns) + 1):
                result = await self._exchange(talk, turn)
                self._report(result)
                if isinstance(result, Failure):
                    return
        finally:
            self._room.release()

    async def _exchange(self, talk: Talk, turn: int) -> Outcome | Failure:
        given = talk.line if talk.id is None else talk.id
        exchange = ""
        said = talk.turns[turn - 1]
        await self._pace.wait()
        begun = time.perf_counter()
        try:
            session = talk.session or self._session_of(talk)
            agent = self._agent_of(talk, session)
            addressed = self._client.input(
                said.text,
                agent=agent,
                session=session,
                layers=said.layers,
                situation=talk.situation,
                label=f"{given}#{turn}" if talk.many else str(given),
                purpose=self._purpose,
            )
            exchange = addressed.exchange
            answered = await self._client.exchange(addressed, self._answer_s)
        except UnknownOutcome as wrong:
            detail = f"{wrong}; `neuraxis why {exchange}` tells, once the broker answers"
            return Failure(line=talk.line, id=talk.id, exchange=exchange, code=wrong.code, detail=detail)
        except (InvalidInput, LogError) as wrong:
            return Failure(line=talk.line, id=talk.id, exchange=exchange, code=wrong.code, detail=str(wrong))
        return outcome_of(answered, time.perf_counter() - begun, id=given, turn=turn if talk.many else 0)

    def _agent_of(self, talk: Talk, session: str) -> str:
        given, user = talk.agent or self._agent, talk.user or self._user
        agent = agent_for(given, per=self._agent_per, user=user, session=session)
        self.user_without_agent = self.user_without_agent or why_user_is_ignored(given, per=self._agent_per, user=user)
        if not given and agent == SHARED_AGENT:
            self.shares_memory |= self._sharing not in ("", session)
            self._sharing = session
        return agent

    def _session_of(self, talk: Talk) -> str:
        if talk.many or self._session_per_line:
            return f"{self._session or self._run}-{talk.line}"
        return self._session or self._run


def outcome_of(answered: Answered, seconds: float, *, id: str | int | float | None, turn: int = 0) -> Outcome:
    """Return the row of an exchange that ended ``seconds`` after it was sent."""
    end = answered.event
    return Outcome(
        id=id,
        turn=turn,
        exchange=answered.exchange,
        stage=end.stage,
        action=end.action,
        reason=end.reason,
        mode=end.mode,
        response=end.response,
        latency_ms=round(seconds * 1000, 3),
        finish_reason="" if end.finish_reason == "stop" else end.finish_reason,
        cuts=end.cuts,
    )


def _read(line: Line, form: LineFormat, unread: Collection[str], guessed: bool) -> Talk | BadLine | None:
    if line.raw is None:
        detail = f"the line is longer than {MAX_LINE_BYTES // 1024**2} MiB: send less"
        return BadLine(line.number, "too_long", detail)
    return parse(line.number, line.raw, form, unread, guessed=guessed)


class _Pace:
    """Lets inputs begin at a steady rate; a late one does not make the next come early."""

    def __init__(self, rate: float) -> None:
        self._interval = 1.0 / rate if rate else 0.0
        self._next = 0.0

    async def wait(self) -> None:
        """Wait for the next input's turn."""
        now = time.monotonic()
        begin = max(self._next, now)
        self._next = begin + self._interval
        if begin > now:
            await asyncio.sleep(begin - now)
