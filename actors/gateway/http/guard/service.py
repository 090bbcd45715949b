"""Has several inputs checked at once, and reads what the guards recorded about them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from actors.gateway.answer_wait import NoEnd, UnreadableEnd
from actors.gateway.exchanges import ExchangeEnd
from actors.gateway.external_events import WrappedEvent
from actors.gateway.http.request_errors import NotAccepted, NoWorker, Unanswered
from actors.gateway.input_client import Client
from actors.gateway.wait_deadlines import WaitDeadline
from events.decoding import Recorded, decode
from events.errors import Unavailable, UnknownOutcome
from schemas.envelope import exchange_in
from schemas.event import ROOT, Event, topic_of
from schemas.identity import new_exchange_id
from schemas.subjects import Partitions, stored_subject
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterPassed
from schemas.vocabulary.breaker import BreakerCleared, BreakerTerminated, BreakerTripped, BreakerWithheld
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.gateway import Layer
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.wording.personal import change_personal, personal_location

VERDICTS: tuple[type[Event], ...] = (
    ReflexBlocked,
    ReflexPassed,
    IntuitionRejected,
    IntuitionPassed,
    AppraisalCompleted,
    CoherenceRejected,
    CoherencePassed,
    BreakerTripped,
    BreakerTerminated,
    BreakerWithheld,
    BreakerCleared,
    ArbiterDenied,
    ArbiterPassed,
)
"""The events in which guards state their findings on an input."""

AT_ONCE = 16
"""Most inputs of one request that are checked at a time: inputs of other requests wait for these, not for all."""

MOST_PAIRS = 4
"""Most pairs of partitions (an agent's, a session's) that filters name: each takes a filter for each guard's event."""

_MARGIN_S = 0.5
"""Seconds before the deadline of a request at which its exchanges must have ended."""

_OMITTED = {"topic", "embedding", "models"}
"""Fields that are left out of the numbers, in addition to people's text."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """An input to be checked."""

    text: str
    agent: str
    session: str
    layers: tuple[Layer, ...] = ()
    situation: str = "general"


class NoVerdict(Exception):
    """The guards reached no verdict on an input; the message says why, and what to do."""


class Checked(msgspec.Struct, frozen=True):
    """The result of a check: the end of the input's exchange, and the guards' events before it."""

    exchange: str
    end: ResponseEmitted
    events: tuple[Event, ...]

    @property
    def allowed(self) -> bool:
        """Whether every guard let it pass."""
        return self.end.action == "PASSED"


class GuardService:
    """Checks inputs.

    Args:
        client: Sends inputs and receives their ends.
        wait_s: Seconds that a request waits for its verdicts.
        sentence: (end, the guards' events before it) -> a sentence that describes the verdict.
    """

    def __init__(
        self,
        client: Client,
        *,
        wait_s: float,
        sentence: Callable[[ResponseEmitted, Sequence[Event]], str] = lambda end, events: end.reason,
    ) -> None:
        self.sentence = sentence
        self._client = client
        self._wait_s = wait_s

    def begin(self) -> WaitDeadline:
        """Return the deadline of a request that begins now."""
        return self._client.begin(self._wait_s)

    def new_session(self) -> str:
        """Return the name of a session for an input whose caller names none."""
        return f"check {new_exchange_id(self._client.now_ns())}"

    def wrap(self, check: Check, deadline: WaitDeadline) -> WrappedEvent:
        """Check the form of an input and wrap it; raises InvalidInput."""
        return self._client.input(
            check.text,
            agent=check.agent,
            session=check.session,
            layers=check.layers,
            situation=check.situation,
            # The exchange ends before the request does, so that the end, which names the stage that has not answered,
            # still reaches the caller.
            deadline_after_ms=max(1, round(1000 * (deadline.left - _MARGIN_S))),
            purpose="check",
        )

    async def check(self, inputs: Sequence[tuple[Check, WrappedEvent]], deadline: WaitDeadline) -> tuple[Checked, ...]:
        """Have inputs checked; return the results in their order.

        Raises:
            NotAccepted, Unanswered, NoWorker: see these classes; some of several inputs may be in the log.
            LogError: the broker refuses one permanently, or cannot be read.
        """
        slots = asyncio.Semaphore(AT_ONCE)
        waiting = [asyncio.create_task(self._ended(wrapped, deadline, slots)) for _, wrapped in inputs]
        try:
            found = await asyncio.gather(*waiting)
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.wait(waiting)
        events = await self._verdicts_between([check for check, _ in inputs], found, deadline)
        return tuple(Checked(answer.exchange, answer.event, tuple(events.get(answer.exchange, ()))) for answer in found)

    async def _ended(self, wrapped: WrappedEvent, deadline: WaitDeadline, slots: asyncio.Semaphore) -> ExchangeEnd:
        try:
            async with slots:
                return await self._client.exchange(wrapped, deadline)
        except UnreadableEnd as wrong:
            raise Unanswered(str(wrong)) from None
        except NoEnd as late:
            where = f"exchange {wrapped.exchange} is in the log, and"
            if late.unserved_stage:
                raise NoWorker(f"{where} nobody serves {late.unserved_stage}: it ends when a worker does") from None
            raise Unanswered(
                f"{where} has no end after {deadline.waited:.1f} s: are the workers running? /readyz tells"
            ) from None
        except Unavailable as wrong:  # nothing was stored
            raise NotAccepted(f"{wrong}: send it again") from None
        except UnknownOutcome:
            raise NotAccepted(
                f"the broker has not confirmed this within {deadline.waited:.1f} s: send it again"
            ) from None

    async def _verdicts_between(
        self, checks: Sequence[Check], answers: Sequence[ExchangeEnd], deadline: WaitDeadline
    ) -> Mapping[str, list[Event]]:
        """Return the guards' events of exchanges between their inputs and their ends."""
        ends = {answer.exchange: answer.seq for answer in answers}
        filters = verdict_filters(checks, self._client.log.partitions)
        events: dict[str, list[Event]] = {}
        after, upto = min(answer.input_seq for answer in answers), max(ends.values())
        try:
            async with self._client.deadline(deadline):
                async for batch in self._client.log.history(filters, after, upto):
                    # Chosen before they are decoded: most may belong to inputs of other requests.
                    for stored in (each for each in batch if each.seq < ends.get(exchange_in(each.headers), 0)):
                        if isinstance(recorded := decode(stored), Recorded):
                            events.setdefault(recorded.message.exchange, []).append(recorded.message.event)
        except TimeoutError:
            raise Unanswered("the guards have decided, but the log could not be read in time: send it again") from None
        return events


def verdict_filters(checks: Iterable[Check], partitions: Partitions) -> list[str]:
    """Return the filters over the guards' events about some inputs.

    Others' events match them, too, so they are kept to the partitions of these inputs: while hundreds of inputs wait,
    each of their requests would otherwise read what the guards say of all.
    """
    pairs = {pair for each in checks for pair in partitions.token_pairs(each.agent, each.session)}
    if len(pairs) > MOST_PAIRS:
        pairs = {(agent_token, "*") for agent_token, _ in pairs}
    return [stored_subject(topic_of(kind), *pair) for pair in sorted(pairs) for kind in VERDICTS]


def numbers_of(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """Return the numbers that guards recorded, by the public subject of the event (below its root), without texts."""
    return {topic_of(event).removeprefix(f"{ROOT}."): _without_text(event) for event in events}


def _without_text(event: Event) -> dict[str, Any]:
    location = personal_location(type(event))
    plain = event if location is None else change_personal(location, event, lambda path, text: "")
    body: dict[str, Any] = msgspec.to_builtins(plain)
    return {name: value for name, value in body.items() if name not in _OMITTED}
