"""What guardrails have said: the latest judgement of each loop, and the answers that requests wait for.

A projection of their events in the log, bounded, and read from the log again after a restart.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from events.codec import Recorded, decode
from events.log import Log
from schemas.event import Event, topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.guardrails import (
    GuardrailsFailed,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsOverridden,
    GuardrailsRefused,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
)

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
"""Guardrails' events that end a request."""

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
    """The judgement of a loop, with the id of its event and the server's time of it (Unix nanoseconds)."""

    event: Judgement
    id: str
    time_ns: int


class Judgements:
    """The latest judgements of ``most`` loops, and the latest ``most`` answers.

    Attributes:
        caught_up: Set once everything has been read that the log held when reading began.
    """

    def __init__(self, most: int) -> None:
        self.caught_up = asyncio.Event()
        self._most = most
        self._loops: dict[tuple[str, str], Judged] = {}
        self._answers: dict[str, Answer] = {}
        self._waiting: dict[str, list[asyncio.Future[Answer]]] = {}

    def of(self, agent: str, loop_id: str) -> Judged | None:
        """Return the latest judgement of an agent's loop, None when it is not among those kept."""
        return self._loops.get((agent, loop_id))

    def answer_to(self, cause: str) -> Answer | None:
        """Return what answered an event, by its id; None when nothing has yet, or it is not among those kept."""
        return self._answers.get(cause)

    @contextlib.contextmanager
    def awaited(self, cause: str) -> Iterator[asyncio.Future[Answer]]:
        """Give the answer to an event, by its id, as a future, for the length of the block."""
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

    async def follow(self, log: Log) -> None:
        """Read guardrails' events from the log's start and go on with those to come, until cancelled.

        Raises:
            Unavailable: the log cannot be read at the start; later outages are waited out.
        """
        filters = [topic_filter(topic_of(event)) for event in ANSWERS]
        upto = max([await log.last(each) for each in filters])
        tail = await log.tail(filters, 0)
        if not upto:
            self.caught_up.set()
        try:
            while True:
                batch = await tail.next()
                for recorded in map(decode, batch):
                    if isinstance(recorded, Recorded):
                        self.fold(recorded)
                if batch[-1].seq >= upto:
                    self.caught_up.set()
        finally:
            await tail.close()

    def fold(self, recorded: Recorded) -> None:
        """Take in one event of the log; one that is known already changes nothing."""
        message = recorded.message
        if isinstance(message.event, Judgement):
            judged = Judged(message.event, message.id, message.time_ns)
            _keep(self._loops, (message.agent, message.event.trace.loop_id), judged, self._most)
        cause = recorded.envelope.cause
        # Those of an exchange answer nobody here, and would push out those that do.
        if not cause or message.exchange or not isinstance(message.event, ANSWERS):
            return
        answer = Answer(message.event, message.id, message.seq, message.time_ns, message.agent)
        _keep(self._answers, cause, answer, self._most)
        for waiting in self._waiting.get(cause, ()):
            if not waiting.done():
                waiting.set_result(answer)


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    """Put an entry at the end, and drop the oldest beyond ``most``."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]
