"""Answering requests for a model's words: how often to call, how long to wait, and what to record."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, stop_before_delay
from tenacity.wait import wait_random_exponential

from actors.llm.answers import AnswerInvalid, answer_of
from actors.llm.circuit import Circuit, CircuitOpen
from actors.llm.client import CallFailed, ChatClient
from actors.llm.protocol import Completion
from actors.llm.settings import LlmSettings
from actors.llm.thinking import Spoken
from actors.runtime.clock import Clock
from events.loggers import get_logger
from schemas.actor import Message
from schemas.calls import ModelCall
from schemas.event import Event, Failed, topic_of
from schemas.vocabulary.act import ActPlanRequested
from schemas.vocabulary.drift import DriftSynthesisRequested
from schemas.vocabulary.guardrails import CritiqueRequested
from schemas.vocabulary.llm import ANSWER_INVALID, LlmCompleted, LlmFailed
from schemas.vocabulary.reflection import ReflectionRequested
from schemas.vocabulary.responder import ResponseRequested
from schemas.vocabulary.router import TiebreakRequested

REQUESTS = (
    TiebreakRequested,
    ActPlanRequested,
    ResponseRequested,
    CritiqueRequested,
    ReflectionRequested,
    DriftSynthesisRequested,
)
"""The events that ask for a model's words; each has its ``call``."""

Publish = Callable[[str, bytes], Awaitable[None]]
"""Sends a body to an inbox; best effort, raises nothing of the broker's."""

_logger = get_logger("neuraxis.llm")


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer, sent to ``ModelCall.stream_to`` while the model speaks.

    The pieces of one ``attempt``, in order of ``index`` (from 0), make the text so far; a later attempt starts from
    nothing. They show what comes and are no answer: one that was thought out, shortened or refused at its end differs,
    and the same request may be performed twice. The answer is the event. ``done`` is always false, so that a reader
    tells pieces from the copy of the end that comes to the same inbox.

    Attributes:
        request: Id of the event that asked.
        exchange: The exchange it belongs to.
        text: The piece.
    """

    request: str
    exchange: str
    attempt: int
    index: int
    text: str
    done: bool = False


class Answering:
    """Performs requests against one endpoint.

    Args:
        client: The endpoint.
        settings: How patiently.
        backend: What the endpoint is called in answers.
        publish: Where pieces of text go.
        clock: Tells how old a request is.
        sleep: Waits between two calls.
    """

    def __init__(
        self,
        client: ChatClient,
        settings: LlmSettings,
        *,
        backend: str,
        publish: Publish,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._settings = settings
        self._backend = backend
        self._publish = publish
        self._clock = clock
        self._sleep = sleep
        self._circuits: dict[str, Circuit] = {}
        self._longest_wait = wait_random_exponential(
            multiplier=settings.backoff_first_ms / 1000, max=settings.backoff_most_ms / 1000
        )

    async def perform(self, message: Message) -> Sequence[Event]:
        """Ask for what a request wants; whatever goes wrong is an answer too."""
        assert isinstance(message.event, REQUESTS)
        call = message.event.call
        model = self._settings.models.of(call.purpose)
        started = self._clock.elapsed_ns()
        try:
            if not model:
                raise CallFailed("no_model", "NoModelForPurpose")
            completion, attempts = await self._in_time(message, call, model)
            text = answer_of(completion.text, call.answer_schema, call.most_tokens)
        except CallFailed as failed:
            return (_failure(message, call, failed.reason, failed.error),)
        except AnswerInvalid as invalid:
            return (_failure(message, call, ANSWER_INVALID, invalid.error),)
        _logger.info(
            "model_answered",
            purpose=call.purpose,
            model=completion.model or model,
            attempts=attempts,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            took_ms=(self._clock.elapsed_ns() - started) // 1_000_000,
            exchange=message.exchange,
        )
        return (
            LlmCompleted(
                request=message.id,
                purpose=call.purpose,
                text=text,
                model=completion.model or model,
                backend=self._backend,
                finish_reason=completion.finish_reason,
                prompt_tokens=completion.prompt_tokens,
                completion_tokens=completion.completion_tokens,
                attempts=attempts,
            ),
        )

    async def _in_time(self, message: Message, call: ModelCall, model: str) -> tuple[Completion, int]:
        """Ask within the request's time, which runs from when it was stored: what is late helps nobody any more."""
        age_s = max(0, self._clock.now_ns() - message.time_ns) / 1e9
        left_s = min(call.timeout_ms, self._settings.longest_ms) / 1000 - age_s
        if left_s <= 0:
            raise CallFailed("endpoint_overdue", "RequestExpired")
        limit = asyncio.timeout(left_s)
        try:
            async with limit:
                return await self._patiently(message, call, model, left_s, limit)
        except TimeoutError as late:
            if not limit.expired():
                raise
            raise CallFailed("endpoint_overdue", "TimeoutError") from late

    async def _patiently(
        self, message: Message, call: ModelCall, model: str, left_s: float, limit: asyncio.Timeout
    ) -> tuple[Completion, int]:
        circuit = self._circuit(model)
        number = 0
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(lambda error: _passes(error) and not circuit.is_open),
            wait=self._wait,
            sleep=self._sleep,
            stop=stop_after_attempt(self._settings.attempts) | stop_before_delay(left_s),
            reraise=True,
        ):
            number = attempt.retry_state.attempt_number
            with attempt:
                return await self._once(message, call, model, number, circuit, limit), number
        raise AssertionError("tenacity ends with a result or an error")

    async def _once(
        self, message: Message, call: ModelCall, model: str, number: int, circuit: Circuit, limit: asyncio.Timeout
    ) -> Completion:
        try:
            trying = circuit.enter()
        except CircuitOpen as closed:
            raise CallFailed("circuit_open", "CircuitOpen") from closed
        try:
            completion = await self._client.ask(call, model, message.id, self._speaker(message, call, number))
        except CallFailed as failed:
            if failed.dead:
                circuit.failed(trying)
            else:
                circuit.succeeded()
            _logger.warning(
                "call_failed", purpose=call.purpose, model=model, reason=failed.reason, error=failed.error,
                attempt=number, exchange=message.exchange,
            )  # fmt: skip
            raise
        except asyncio.CancelledError:
            # Out of time (an endpoint that hangs is as good as dead), or the worker is stopping.
            if limit.expired():
                circuit.failed(trying)
            else:
                circuit.left(trying)
            raise
        circuit.succeeded()
        return completion

    def _circuit(self, model: str) -> Circuit:
        # By model: one that is still being loaded must not shut out those that answer.
        if model not in self._circuits:
            settings = self._settings
            self._circuits[model] = Circuit(settings.circuit_failures, settings.circuit_wait_ms / 1000)
        return self._circuits[model]

    def _wait(self, state: RetryCallState) -> float:
        """Return how long to wait before the next call: at random, and no shorter than the endpoint asks for."""
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after_s if isinstance(error, CallFailed) else None
        return self._longest_wait(state) + (asked or 0.0)

    def _speaker(self, message: Message, call: ModelCall, attempt: int) -> Callable[[str], Awaitable[None]]:
        spoken, index = Spoken(), 0

        async def speak(piece: str) -> None:
            nonlocal index
            text = spoken.take(piece)
            if text and call.stream_to:
                partial = Partial(
                    request=message.id, exchange=message.exchange, attempt=attempt, index=index, text=text
                )
                index += 1
                await self._publish(call.stream_to, msgspec.json.encode(partial))

        return speak


def naming(failed: Failed, message: Message) -> Failed:
    """Return an ``llm.failed`` with the request it is of."""
    assert isinstance(message.event, REQUESTS)
    return msgspec.structs.replace(failed, request=message.id, purpose=message.event.call.purpose)


def _failure(message: Message, call: ModelCall, reason: str, error: str) -> LlmFailed:
    return LlmFailed(
        reason=reason,
        error=error,
        failed_seq=message.seq,
        failed_topic=topic_of(message.event),
        request=message.id,
        purpose=call.purpose,
    )


def _passes(error: BaseException) -> bool:
    return isinstance(error, CallFailed) and error.passing
