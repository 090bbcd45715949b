"""Turns a request about a loop into an event in the log, and waits for the answer of the actor guardrails."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from actors.gateway.answer_wait import NoEnd, UnreadableEnd
from actors.gateway.external_events import WrappedEvent, agent_event
from actors.gateway.http.loops.bodies import Accepted
from actors.gateway.http.loops.judgements import Answer, FamilyStatus, Judged, Judgement, Judgements
from actors.gateway.http.request_errors import NotReady, NoWorker, Unanswered, Undecided, refused_unless_stored
from actors.gateway.input_client import Client
from actors.gateway.wait_deadlines import WaitDeadline
from events.decoding import Recorded, decode
from events.log import Log
from schemas.event import Event, topic_of
from schemas.vocabulary.guardrails import (
    GuardrailsFailed,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsOverridden,
    GuardrailsRefused,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
)
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden, TickObserved


class UnknownLoop(LookupError):
    """No loop of this name is known for this agent."""


class LoopService:
    """Appends the events of requests and waits for the answers.

    Args:
        client: Sends events, and waits for answers.
        judgements: The projection of guardrails' events; a task must follow the log with it.
        wait_s: Seconds that a request waits for its answer.
        unserved: (agent) -> why no worker judges its loops; empty while one may: see ``Client.wait``.
        whole: Returns the log with the events that were removed from its stream, for judgements of long ago.
    """

    def __init__(
        self,
        client: Client,
        judgements: Judgements,
        *,
        wait_s: float,
        unserved: Callable[[str], str] = lambda agent: "",
        whole: Callable[[], Awaitable[Log]] | None = None,
    ) -> None:
        self.judgements = judgements
        self._client = client
        self._log = client.log
        self._whole = whole
        self._wait_s = wait_s
        self._unserved = unserved
        # One at a time: each may read all judgements of the log, while this process serves everybody else.
        self._reading_back = asyncio.Lock()

    async def complete(self, agent: str, completed: LoopCompleted, key: str) -> Judged:
        """Have a loop judged; a loop that was judged keeps its judgement. Repeats with the same ``key`` are one event.

        Raises:
            NotReady, NotAccepted, Unanswered, NoWorker, Undecided: see these classes.
            InvalidInput: it cannot be recorded.
            LogError: the broker refuses it permanently.
        """
        deadline = self._begin()
        answer = await self._ask(
            agent, self._new_event(agent, completed, key and f"{completed.loop_id}\n{key}"), deadline
        )
        match answer.event:
            case GuardrailsFinalized() | GuardrailsForceFinalized() | GuardrailsRerunOrdered():
                return Judged(answer.event, answer.id, answer.time_ns)
            case GuardrailsRepeated(loop_id=loop_id, decided=decided):
                known = self.judgements.of(agent, loop_id)
                return (
                    known
                    if known is not None and known.id == decided
                    else await self._judgement(answer, decided, deadline)
                )
        raise _undecided(answer)

    async def override(self, agent: str, ordered: LoopOverridden, key: str) -> GuardrailsOverridden:
        """Have limits of a loop's family lifted for a time: on all reruns, or on reruns that improve nothing.

        Raises:
            UnknownLoop: guardrails do not know this loop.
            NotReady, NotAccepted, Unanswered, NoWorker, Undecided, InvalidInput, LogError: as :meth:`complete` does.
        """
        answer = await self._ask(
            agent, self._new_event(agent, ordered, key and f"{ordered.loop_id}\n{key}"), self._begin()
        )
        match answer.event:
            case GuardrailsOverridden() as overridden:
                return overridden
            case GuardrailsRefused(reason="unknown_loop"):
                raise UnknownLoop(_unknown(agent, ordered.loop_id))
        raise _undecided(answer)

    async def status(self, agent: str, loop_id: str) -> tuple[Judged, FamilyStatus, int]:
        """Return the latest judgement of a loop, the status of its family, and the time now (Unix nanoseconds).

        Raises:
            UnknownLoop: it is not kept.
            NotReady: the log is still being read.
        """
        await self._ready(self._begin())
        judged = self.judgements.of(agent, loop_id)
        if judged is None:
            raise UnknownLoop(_unknown(agent, loop_id))
        trace = judged.event.trace
        family = self.judgements.family_of(agent, trace.family)
        if family is None:  # dropped before the loop: judgements and families are kept up to limits of their own
            family = FamilyStatus(trace, trace.fatigue_lifted_ns, trace.reruns_lifted_ns)
        return judged, family, self._client.now_ns()

    async def observe(self, agent: str, tick: TickObserved, key: str) -> Accepted:
        """Record a tick; no event answers it.

        Raises:
            NotAccepted, InvalidInput, LogError: as :meth:`complete` does.
        """
        wrapped, deadline = self._new_event(agent, tick, key), self._begin()
        return Accepted(id=wrapped.id, seq=await self._stored(wrapped, deadline))

    def _new_event(self, agent: str, event: Event, key: str) -> WrappedEvent:
        return agent_event(event, agent, key=key, partitions=self._log.partitions, now_ns=self._client.now_ns())

    def _begin(self) -> WaitDeadline:
        return self._client.begin(self._wait_s)

    async def _stored(self, wrapped: WrappedEvent, deadline: WaitDeadline) -> int:
        with refused_unless_stored(deadline, "send it again, with the same Idempotency-Key"):
            return await self._client.submit(wrapped, deadline)

    async def _ready(self, deadline: WaitDeadline) -> None:
        try:
            async with self._client.deadline(deadline):
                await self.judgements.caught_up.wait()
        except TimeoutError:
            raise NotReady("this gateway is still reading the log: try again, /readyz tells") from None

    async def _ask(self, agent: str, wrapped: WrappedEvent, deadline: WaitDeadline) -> Answer:
        await self._ready(deadline)
        cause = wrapped.id
        known = self.judgements.answer_to(cause)
        if known is not None:  # a repeat, perhaps after the deduplication window of the stream
            return known
        # Received through the judgements, so that the caller's next question about the loop already sees this one.
        with self.judgements.awaited(cause) as answer:
            seq = await self._stored(wrapped, deadline)
            where = f"this is in the log (event {cause}, sequence {seq})"
            try:
                return await self._client.wait(
                    answer, what=f"event {cause}", within=deadline, unserved=partial(self._unserved, agent)
                )
            except UnreadableEnd as wrong:
                raise Unanswered(f"{where}; {wrong}") from None
            except NoEnd as late:
                if late.unserved_stage:
                    raise NoWorker(
                        f"{where}, and nobody serves {late.unserved_stage}: it is judged when a worker does, ask for "
                        "the loop's status then"
                    ) from None
                raise Unanswered(
                    f"{where}, and guardrails have not answered it within {deadline.waited:.1f} s: they will when "
                    "their worker runs, ask for the loop's status then"
                ) from None

    async def _judgement(self, repeated: Answer, decided: str, deadline: WaitDeadline) -> Judged:
        """Read the judgement whose event has the id ``decided`` from the log: it is so old that it is not kept here."""
        # The judgement of an exchange's own answer is stored under its session, which is not known here: hence `*`.
        subjects = [f"log.{token}.*.guardrails" for token in self._log.partitions.agent_tokens(repeated.agent)]
        kinds = (GuardrailsFinalized, GuardrailsForceFinalized, GuardrailsRerunOrdered)
        filters = [f"{subject}.{topic_of(kind).rpartition('.')[2]}" for subject in subjects for kind in kinds]
        try:
            async with self._client.deadline(deadline), self._reading_back:
                log = self._log if self._whole is None else await self._whole()
                async for batch in log.history(filters, 0, repeated.seq):
                    for recorded in map(decode, (stored for stored in batch if stored.headers.get("ce-id") == decided)):
                        if isinstance(recorded, Recorded) and isinstance(recorded.message.event, Judgement):
                            return Judged(recorded.message.event, recorded.message.id, recorded.message.time_ns)
        except TimeoutError:
            raise Unanswered(f"the judgement that stands (event {decided}) is far back in the log: ask again") from None
        await self._log.info()  # more may have been removed since this gateway began
        removed = f", whose events up to sequence {self._log.trimmed_through:,} were removed from the stream"
        raise Undecided(
            f"the judgement that stands (event {decided}) cannot be found in the log"
            f"{removed if self._log.trimmed_through else ''}"
        )


def _unknown(agent: str, loop_id: str) -> str:
    return f"no loop {loop_id!r} of agent {agent!r} is known: check its name, or name its agent"


def _undecided(answer: Answer) -> Undecided:
    if isinstance(answer.event, GuardrailsFailed):
        return Undecided(f"guardrails could not decide this: see sequence {answer.seq} of the log")
    return Undecided(f"guardrails answered with {topic_of(answer.event)}: see sequence {answer.seq} of the log")
