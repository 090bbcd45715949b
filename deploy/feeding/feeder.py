"""Sending lines through a client, many at a time, and reporting how each ended."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection

from actors.gateway import Client, ExchangeEnd, InvalidInput
from actors.gateway.agents import SHARED_AGENT, AgentPer, agent_for, why_user_is_ignored
from deploy.feeding.line_reader import MAX_LINE_BYTES, Line
from deploy.feeding.lines import BadLine, LineFormat, LineInputs, format_of, parse
from deploy.feeding.tally import Failure, Outcome
from events.errors import LogError, UnknownOutcome
from schemas.identity import new_exchange_id
from schemas.vocabulary.gateway import Purpose


class Feeder:
    """Sends the inputs of lines into the log and waits for the ends of their exchanges.

    Args:
        client: Sends inputs and receives their ends.
        report: Called with each outcome and failure as it comes.
        run: Part of the names of sessions that lines do not name.
        agent: Agent of lines that name none; empty: as ``agent_per`` says.
        user: User of lines that name none.
        agent_per: Whom each agent serves, see :func:`~actors.gateway.agents.agent_for`.
        session: Session of lines that name none; empty: one for the whole feed, named after ``run``.
        session_per_line: Give each line that names no session one of its own; a conversation always has one.
        concurrency: Lines whose inputs are sent at the same time.
        rate: Inputs begun a second at most; 0 is no limit.
        answer_s: Seconds that an exchange may take, from the moment it is sent to its end.
        ignored_fields: Fields of lines and turns that are not part of an input.
        purpose: Whether inputs are answered, or only checked.

    Attributes:
        shares_memory: Whether several sessions went to the agent that all users share.
        user_without_agent: Why a named user did not get an agent of their own; empty if none was refused one.
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
        ignored_fields: Collection[str] = (),
        purpose: Purpose = "answer",
    ) -> None:
        self._client = client
        self._report = report
        self._run = run or f"feed-{new_exchange_id(time.time_ns())[:16]}"
        self.shares_memory, self.user_without_agent = False, ""
        self._agent, self._user, self._agent_per = agent, user, agent_per
        self._session_of_shared_agent = ""
        self._session = session
        self._session_per_line = session_per_line
        self._slots = asyncio.Semaphore(concurrency)
        self._answer_s = answer_s
        self._purpose = purpose
        self._pace = _Pace(rate)
        self._ignored_fields = frozenset(ignored_fields)

    async def feed(
        self,
        lines: AsyncIterator[Line],
        line_format: LineFormat,
        name: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Send every line, in order, at most ``concurrency`` at a time; ``progress`` is called with the bytes read.

        The format is guessed from ``name``, the file's name. A line that fails does not stop the others. Raises what
        ``report`` and the reading of lines raise.
        """
        try:
            await self._feed(lines, line_format, name, progress or (lambda _: None))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group

    async def _feed(
        self, lines: AsyncIterator[Line], line_format: LineFormat, name: str, progress: Callable[[int], None]
    ) -> None:
        guessed = line_format is LineFormat.AUTO
        async with asyncio.TaskGroup() as tasks:
            async for line in lines:
                if line_format is LineFormat.AUTO and line.raw and line.raw.strip():
                    line_format = format_of(name, line.raw)
                inputs = _read(line, line_format, self._ignored_fields, guessed)
                if isinstance(inputs, LineInputs):
                    await self._slots.acquire()
                    tasks.create_task(self._send_turns(inputs))
                elif inputs is not None:
                    self._report(Failure(line=inputs.line, id=inputs.id, code=inputs.code, detail=inputs.detail))
                progress(line.offset)

    async def _send_turns(self, inputs: LineInputs) -> None:
        try:
            for turn in range(1, len(inputs.turns) + 1):
                result = await self._exchange(inputs, turn)
                self._report(result)
                if isinstance(result, Failure):
                    return
        finally:
            self._slots.release()

    async def _exchange(self, inputs: LineInputs, turn: int) -> Outcome | Failure:
        label = inputs.line if inputs.id is None else inputs.id
        exchange = ""
        turn_input = inputs.turns[turn - 1]
        await self._pace.wait()
        sent_at = time.perf_counter()
        try:
            session = inputs.session or self._session_of(inputs)
            agent = self._agent_of(inputs, session)
            wrapped = self._client.input(
                turn_input.text,
                agent=agent,
                session=session,
                layers=turn_input.layers,
                situation=inputs.situation,
                label=f"{label}#{turn}" if inputs.is_conversation else str(label),
                purpose=self._purpose,
            )
            exchange = wrapped.exchange
            answered = await self._client.exchange(wrapped, self._answer_s)
        except UnknownOutcome as wrong:
            detail = f"{wrong}; `neuraxis why {exchange}` tells, once the broker answers"
            return Failure(line=inputs.line, id=inputs.id, exchange=exchange, code=wrong.code, detail=detail)
        except (InvalidInput, LogError) as wrong:
            return Failure(line=inputs.line, id=inputs.id, exchange=exchange, code=wrong.code, detail=str(wrong))
        return outcome_of(answered, time.perf_counter() - sent_at, id=label, turn=turn if inputs.is_conversation else 0)

    def _agent_of(self, inputs: LineInputs, session: str) -> str:
        named, user = inputs.agent or self._agent, inputs.user or self._user
        agent = agent_for(named, per=self._agent_per, user=user, session=session)
        self.user_without_agent = self.user_without_agent or why_user_is_ignored(named, per=self._agent_per, user=user)
        if not named and agent == SHARED_AGENT:
            self.shares_memory |= self._session_of_shared_agent not in ("", session)
            self._session_of_shared_agent = session
        return agent

    def _session_of(self, inputs: LineInputs) -> str:
        if inputs.is_conversation or self._session_per_line:
            return f"{self._session or self._run}-{inputs.line}"
        return self._session or self._run


def outcome_of(answered: ExchangeEnd, seconds: float, *, id: str | int | float | None, turn: int = 0) -> Outcome:
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


def _read(
    line: Line, line_format: LineFormat, ignored_fields: Collection[str], guessed: bool
) -> LineInputs | BadLine | None:
    if line.raw is None:
        detail = f"the line is longer than {MAX_LINE_BYTES // 1024**2} MiB: send less"
        return BadLine(line.number, "too_long", detail)
    return parse(line.number, line.raw, line_format, ignored_fields, guessed=guessed)


class _Pace:
    """Lets inputs begin at a steady rate; a late one does not make the next come early."""

    def __init__(self, rate: float) -> None:
        self._interval = 1.0 / rate if rate else 0.0
        self._next = 0.0

    async def wait(self) -> None:
        """Wait for the next input's turn."""
        now = time.monotonic()
        start = max(self._next, now)
        self._next = start + self._interval
        if start > now:
            await asyncio.sleep(start - now)
