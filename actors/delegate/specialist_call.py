"""Asking a specialist (a NATS micro service that answers questions), and checking its answer."""

from collections.abc import Sequence
from typing import Any

import msgspec

from actors.delegate.discovery import find_specialist
from actors.delegate.settings import DelegateSettings
from actors.runtime.clock import Clock
from actors.runtime.effectors.requests import EFFECT_TIMED_OUT
from events.errors import Unavailable, UnknownOutcome
from events.jetstream import Connection
from events.jetstream.connection import Reply
from schemas.actor import Message
from schemas.event import Event, Failed, topic_of
from schemas.vocabulary.act import ActDelegationRequested
from schemas.vocabulary.delegate import DelegateAnswered, DelegateFailed

NO_SPECIALIST = "no_specialist"
SPECIALIST_REFUSED = "specialist_refused"
ANSWER_INVALID = "answer_invalid"
"""Reasons of ``delegate.failed``: none of that name answers; it answers with an error; its answer cannot be used."""

_ERROR_CODE = "Nats-Service-Error-Code"
"""The header in which a NATS micro service reports an error."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a specialist is sent, as JSON.

    Attributes:
        query: The question.
        request: Id of the event that asks, so a repeated question has the same id. It is also sent as the header
            ``Idempotency-Key``.
        timeout_ms: How long an answer is waited for.
    """

    query: str
    request: str
    timeout_ms: int


class SpecialistAnswer(msgspec.Struct, frozen=True):
    """What a specialist answers, as JSON: an answer, or an error; other fields are ignored."""

    answer: str = ""
    error: Any = None


class NoAnswer(Exception):
    """There is no answer: ``reason`` is a reason of ``delegate.failed``, ``error`` a stable code."""

    def __init__(self, reason: str, error: str) -> None:
        self.reason = reason
        self.error = error
        super().__init__(f"{reason}: {error}")


class SpecialistCaller:
    """Asks specialists over one connection."""

    def __init__(self, connection: Connection, settings: DelegateSettings, clock: Clock) -> None:
        self._connection = connection
        self._settings = settings
        self._clock = clock

    async def handle(self, message: Message) -> Sequence[Event]:
        """Ask the specialist that a request names; return its answer, or ``delegate.failed`` if there is none."""
        request = message.event
        assert isinstance(request, ActDelegationRequested)
        try:
            answer = await self._ask(message, request)
        except NoAnswer as no_answer:
            failed = DelegateFailed(
                reason=no_answer.reason,
                error=no_answer.error,
                failed_seq=message.seq,
                failed_topic=topic_of(request),
                request=message.id,
                index=request.action.index,
            )
            return (failed,)
        specialist = request.action.specialist
        return (DelegateAnswered(request=message.id, index=request.action.index, specialist=specialist, answer=answer),)

    async def _ask(self, message: Message, request: ActDelegationRequested) -> str:
        deadline_ns = message.time_ns + min(request.timeout_ms, self._settings.longest_ms) * 1_000_000
        left_s = self._left_s(deadline_ns)
        if left_s <= 0:
            raise NoAnswer(EFFECT_TIMED_OUT, "RequestExpired")
        within_s = min(left_s, self._settings.discovery_ms / 1000)
        subject = await find_specialist(self._connection, request.action.specialist, within_s)
        left_s = self._left_s(deadline_ns)
        if subject is None or left_s <= 0:
            raise NoAnswer(NO_SPECIALIST, "")
        question = Question(query=request.action.query, request=message.id, timeout_ms=max(1, int(left_s * 1000)))
        try:
            answer = await self._connection.request(
                subject, msgspec.json.encode(question), {"Idempotency-Key": message.id}, left_s
            )
        except Unavailable as unreachable:
            raise NoAnswer(NO_SPECIALIST, type(unreachable).__name__) from unreachable
        except UnknownOutcome as late:
            raise NoAnswer(EFFECT_TIMED_OUT, type(late).__name__) from late
        return checked_answer(answer, self._settings.most_answer_bytes)

    def _left_s(self, deadline_ns: int) -> float:
        return (deadline_ns - self._clock.now_ns()) / 1e9


def checked_answer(answer: Reply, most_bytes: int) -> str:
    """Return the text of an answer; raises NoAnswer for one that is an error, too large, or of another form."""
    if (code := answer.headers.get(_ERROR_CODE)) is not None:
        # The service's own description is no stable code, so it is not recorded.
        is_code = code.isascii() and code.isdigit() and len(code) <= 5
        raise NoAnswer(SPECIALIST_REFUSED, f"ServiceError {code}" if is_code else "ServiceError")
    if len(answer.data) > most_bytes:
        raise NoAnswer(ANSWER_INVALID, "AnswerTooLarge")
    try:
        decoded = msgspec.json.decode(answer.data, type=SpecialistAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise NoAnswer(ANSWER_INVALID, "NotTheForm") from wrong
    if decoded.error:
        raise NoAnswer(SPECIALIST_REFUSED, "ErrorInAnswer")
    if not decoded.answer.strip():
        raise NoAnswer(ANSWER_INVALID, "EmptyAnswer")
    return decoded.answer


def enrich_failure(failed: Failed, message: Message) -> Failed:
    """Return a ``delegate.failed`` with its request and action filled in."""
    assert isinstance(message.event, ActDelegationRequested)
    return msgspec.structs.replace(failed, request=message.id, index=message.event.action.index)
