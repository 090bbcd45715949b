"""A projection of the actor guardrails' events: the latest judgement of each loop, and answers that requests wait for.

It is bounded, and is rebuilt from the log after a restart.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar, get_args
from urllib.parse import unquote

import msgspec

from actors.gateway.answer_wait import UnreadableEnd, retry_until_reachable
from events.decoding import Recorded, Unreadable, decode
from events.log import Log, Stored, Tail
from schemas.event import ROOT, Event, topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.guardrails import (
    GuardrailsFailed,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsOverridden,
    GuardrailsRefused,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
    LoopTrace,
)

_NS_PER_MS = 1_000_000

Judgement = GuardrailsFinalized | GuardrailsForceFinalized | GuardrailsRerunOrdered
ANSWERS: tuple[type[Event], ...] = (
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRerunOrdered,
    GuardrailsRepeated,
    GuardrailsRefused,
    GuardrailsOverridden,
    GuardrailsFailed,
)
"""Guardrails' events that answer a request."""

_FILTERS = tuple(topic_filter(topic_of(event)) for event in ANSWERS)
_JUDGEMENTS = tuple(topic_of(kind).removeprefix(ROOT) for kind in get_args(Judgement))

_FIRST_WINDOW, _GROWTH = 65_536, 4
"""Messages of the log in the first window that is searched, and the factor by which each further window is larger."""

_EVENTS_PER_JUDGEMENT = 4
"""Most events that are read at the start for each judgement that is kept."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Answer(msgspec.Struct, frozen=True):
    """An event of guardrails: its id, sequence and server's time (Unix nanoseconds), and the agent it is about."""

    event: Event
    id: str
    seq: int
    time_ns: int
    agent: str


class Judged(msgspec.Struct, frozen=True):
    """The judgement of a loop, with the id of its event and the server's time (Unix nanoseconds).

    The event's ``trace`` holds what was known of the loop when it was judged.
    """

    event: Judgement
    id: str
    time_ns: int


class FamilyStatus(msgspec.Struct, frozen=True):
    """The status of a loop family (a loop with its reruns): the trace of its latest judgement, and lifted limits.

    The limit on reruns that improve nothing is lifted until ``fatigue_lifted_ns``, the limit on all reruns until
    ``reruns_lifted_ns``: Unix nanoseconds, 0 if nobody has lifted it.
    """

    latest: LoopTrace
    fatigue_lifted_ns: int
    reruns_lifted_ns: int


class Judgements:
    """The latest judgements of ``most`` loops and their families, and the latest ``most`` answers.

    Attributes:
        caught_up: Set once the judgements that the log held at the start have been read.
    """

    def __init__(self, most: int) -> None:
        self.caught_up = asyncio.Event()
        self._tail: Tail | None = None
        self._most = most
        self._loops: dict[tuple[str, str], Judged] = {}
        self._families: dict[tuple[str, str], FamilyStatus] = {}
        self._answers: dict[str, Answer] = {}
        self._waiting: dict[str, list[asyncio.Future[Answer]]] = {}

    def of(self, agent: str, loop_id: str) -> Judged | None:
        """Return the latest judgement of an agent's loop; None when it is not kept."""
        return self._loops.get((agent, loop_id))

    def family_of(self, agent: str, family: str) -> FamilyStatus | None:
        """Return the status of an agent's loop family; None when it is not kept."""
        return self._families.get((agent, family))

    def answer_to(self, cause: str) -> Answer | None:
        """Return the answer to an event with this id; None when there is none yet, or it is not kept."""
        return self._answers.get(cause)

    @contextlib.contextmanager
    def awaited(self, cause: str) -> Iterator[asyncio.Future[Answer]]:
        """Yield the answer to an event with this id as a future, which is cancelled at the end of the block."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(cause, [])
        waiting.append(answer)
        known = self._answers.get(cause)
        if known is not None:
            answer.set_result(known)
        try:
            yield answer
        finally:
            answer.cancel()
            waiting.remove(answer)
            if not waiting:
                self._waiting.pop(cause, None)

    @property
    def cut_off_s(self) -> float:
        """For how many seconds the log could not be read, although the broker can be reached; 0: it can."""
        return 0.0 if self._tail is None else self._tail.cut_off_s

    async def follow(self, log: Log) -> None:
        """Read guardrails' latest events in the log, then those that are added, until cancelled.

        Outages of the broker are waited for, at the start, too: requests that need no judgement are served meanwhile.

        Raises:
            NotPermitted: the login may not read the log.
        """
        tail = self._tail = await retry_until_reachable(lambda: self._begin(log))
        self.caught_up.set()
        try:
            while True:
                self._fold_all(await tail.next())
        finally:
            await tail.close()

    async def _begin(self, log: Log) -> Tail:
        upto = (await log.info()).last_seq
        self._fold_all(await _latest(log, upto, self._most))
        return await log.tail(_FILTERS, upto)

    def _fold_all(self, batch: Iterable[Stored]) -> None:
        for recorded in map(decode, batch):
            if isinstance(recorded, Recorded):
                self.fold(recorded)
            else:
                self._note_unreadable(recorded)

    def _note_unreadable(self, found: Unreadable) -> None:
        """Give an error to the caller whose request this answers; otherwise it would wait until its deadline."""
        cause = unquote(found.stored.headers.get("ce-cause", ""))
        for waiting in self._waiting.get(cause, ()):
            if not waiting.done():
                waiting.set_exception(UnreadableEnd.of(f"event {cause} was answered", found))
                waiting.exception()  # the caller may have left, which is no error

    def fold(self, recorded: Recorded) -> None:
        """Add one event of the log; an event that was added before changes nothing."""
        message = recorded.message
        if isinstance(message.event, Judgement):
            judged = Judged(message.event, message.id, message.time_ns)
            trace = message.event.trace
            _keep(self._loops, (message.agent, trace.loop_id), judged, self._most)
            family = FamilyStatus(trace, trace.fatigue_lifted_ns, trace.reruns_lifted_ns)
            _keep(self._families, (message.agent, trace.family), family, self._most)
        if isinstance(message.event, GuardrailsOverridden):
            self._lift(message.agent, message.event, message.time_ns)
        cause = _completion(message.event) or recorded.envelope.cause
        # Judgements on an exchange's own loop answer no request here, and would displace those that do.
        if not cause or message.exchange or not isinstance(message.event, ANSWERS):
            return
        answer = Answer(message.event, message.id, message.seq, message.time_ns, message.agent)
        _keep(self._answers, cause, answer, self._most)
        for waiting in self._waiting.get(cause, ()):
            if not waiting.done():
                waiting.set_result(answer)

    def _lift(self, agent: str, overridden: GuardrailsOverridden, now_ns: int) -> None:
        known = self._families.get((agent, overridden.family))
        if known is None:
            return
        until_ns = now_ns + overridden.lasts_ms * _NS_PER_MS
        self._families[agent, overridden.family] = FamilyStatus(
            known.latest,
            until_ns if overridden.override_fatigue else 0,
            until_ns if overridden.override_max_reruns else 0,
        )


def _completion(event: Event) -> str:
    """Return the id of the request that guardrails answer only after a critic's verdict; empty if none was asked."""
    if isinstance(event, GuardrailsRepeated):
        return event.completion
    return event.trace.completion if isinstance(event, Judgement) else ""


async def _latest(log: Log, upto: int, most: int) -> Iterable[Stored]:
    """Return the events of about the latest ``most`` judgements, in order.

    A log can only be read forwards. So it is read in windows from its end backwards, each larger than the one before:
    starting on a long log must not take longer than on a short one.
    """
    found: deque[Stored] = deque(maxlen=_EVENTS_PER_JUDGEMENT * most)
    window, judged = _FIRST_WINDOW, 0
    while upto > 0 and judged < most:
        after = max(0, upto - window)
        earlier: deque[Stored] = deque(maxlen=found.maxlen)
        async for batch in log.history(_FILTERS, after, upto):
            earlier.extend(batch)
        judged += sum(stored.subject.endswith(_JUDGEMENTS) for stored in earlier)
        earlier.extend(found)
        found, upto, window = earlier, after, _GROWTH * window
    return found


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    """Add an entry at the end, and drop the oldest beyond ``most``."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]
