"""Answers requests for a model: calls it, repeats failed calls within the time limit, and records the outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, stop_before_delay
from tenacity.wait import wait_random_exponential

from actors.contract.answers.prompt import Prompt, prompt_of
from actors.contract.answers.window import STREAMED, AnswerWindow
from actors.contract.privacy.masking import Masks, StreamRestorer
from actors.contract.privacy.recognising import found_in, recogniser
from actors.llm.answer_text import AnswerInvalid, is_too_long, read_answer_text
from actors.llm.circuit import Circuit, CircuitOpen
from actors.llm.client import CallFailed, ChatClient, ClientAnswer
from actors.llm.settings import LlmSettings
from actors.llm.wire.response_parsing import finish_reason_of
from actors.llm.wire.thought_filter import ThoughtFilter, without_thoughts
from actors.runtime.clock import Clock
from events.loggers import get_logger
from schemas.actor import Message
from schemas.catalogue import requests_to
from schemas.effectors.model_calls import ModelCall
from schemas.event import Event, Failed, topic_of
from schemas.vocabulary.llm import ANSWER_FILTERED, ANSWER_INVALID, LlmCompleted, LlmFailed
from schemas.vocabulary.reflex import AnswerFault

REQUESTS = requests_to("llm")
"""The events that ask a model."""


@runtime_checkable
class Request(Protocol):
    """The common part of these events."""

    @property
    def call(self) -> ModelCall:
        """The question to the model."""


_LONG_PROMPT = 30_000
"""If a call's messages have more characters than this, reading them takes more than a few milliseconds."""

Publish = Callable[[str, bytes], Awaitable[None]]
"""Sends a body to an inbox. It may be lost: an error of the broker is not raised."""

_logger = get_logger("neuraxis.llm")


class SentPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer, sent to ``ModelCall.stream_to`` while the model generates.

    The pieces of one ``attempt``, in order of ``index`` (from 0), form the text so far. A later attempt starts again
    from an empty text: the model was called again, or the text sent so far turned out to be a thought. Pieces only show
    progress. The answer is in the event, and may differ: thoughts are removed from it, it may be shortened or refused,
    and a request may be performed twice. ``done`` is always false, so that a reader can distinguish pieces from the
    copy of the final event that comes to the same inbox.

    Attributes:
        request: Id of the event that asks.
        exchange: The exchange it belongs to.
        text: The piece.
    """

    request: str
    exchange: str
    attempt: int
    index: int
    text: str
    done: bool = False


class LlmCaller:
    """Performs requests at one endpoint.

    Args:
        client: The client of the endpoint.
        settings: Number of calls and time limits.
        backend: The name of the endpoint in answers.
        publish: Sends pieces of text.
        clock: Measures how old a request is.
        sleep: Waits between two calls.
        withheld_for: The faults for which an answer is withheld; once one is found, no more pieces are sent. By
            default, all that can be found while an answer arrives.
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
        withheld_for: tuple[AnswerFault, ...] = STREAMED,
    ) -> None:
        self._withheld_for = withheld_for
        self._client = client
        self._settings = settings
        self._backend = backend
        self._publish = publish
        self._clock = clock
        self._sleep = sleep
        self._circuits: dict[str, Circuit] = {}
        self._thinking: set[str] = set()  # models whose answers begin within a thought
        self._random_wait = wait_random_exponential(
            multiplier=settings.backoff_first_ms / 1000, max=settings.backoff_most_ms / 1000
        )

    async def handle(self, message: Message) -> Sequence[Event]:
        """Call the model for a request; a failure of any kind is recorded as the answer."""
        assert isinstance(message.event, Request)
        call = message.event.call
        model = self._settings.models.of(call.purpose)
        masks = self._masks(message.agent, call)
        if masks is not None:
            # In another thread, so that other answers continue meanwhile: a long text takes a while.
            call = await asyncio.to_thread(_masked, call, masks)
        found = await self._ask(message, call, model, masks)
        if masks is None or not masks.counts:
            return (found,)
        return (msgspec.structs.replace(found, masked=masks.counts, recogniser=recogniser()),)

    def _masks(self, agent: str, call: ModelCall) -> Masks | None:
        """Return what replaces the personal data in a call; None if the model may see this agent's."""
        privacy = self._settings.privacy
        if not privacy.masks(agent):
            return None
        return Masks(lambda text: found_in(text, privacy.regions), (each.content for each in call.messages))

    async def _ask(
        self, message: Message, call: ModelCall, model: str, masks: Masks | None
    ) -> LlmCompleted | LlmFailed:
        started = self._clock.elapsed_ns()
        try:
            if not model:
                raise CallFailed("no_model", "NoModelForPurpose")
            answer, attempts = await self._ask_in_time(message, call, model, masks)
        except CallFailed as failed:
            return _failure(message, call, failed.reason, failed.error, failed.said)
        completion, ended = answer.completion, finish_reason_of(answer.completion.finish_reason)
        try:
            text = read_answer_text(completion.text, call.answer_schema, call.most_tokens)
        except AnswerInvalid as invalid:
            filtered = ended == "content_filter" and not without_thoughts(completion.text)
            said = f"finish_reason {completion.finish_reason or 'none'}"
            return _failure(message, call, ANSWER_FILTERED if filtered else ANSWER_INVALID, invalid.error, said)
        if is_too_long(without_thoughts(completion.text), call.most_tokens):  # longer than the tokens asked for
            ended = "length"
        _logger.info(
            "model_answered",
            purpose=call.purpose,
            model=completion.model or model,
            ended=ended,
            attempts=attempts,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            took_ms=(self._clock.elapsed_ns() - started) // 1_000_000,
            exchange=message.exchange,
        )
        return LlmCompleted(
            request=message.id,
            purpose=call.purpose,
            text=_restored(text, call, masks),
            model=completion.model or model,
            backend=self._backend,
            finish_reason=completion.finish_reason,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            attempts=attempts,
            ended=ended,
            adapted=answer.adapted,
            cuts=answer.cuts,
        )

    async def _ask_in_time(
        self, message: Message, call: ModelCall, model: str, masks: Masks | None
    ) -> tuple[ClientAnswer, int]:
        """Call within the request's time, counted from when it was stored: nobody waits for a later answer."""
        age_s = max(0, self._clock.now_ns() - message.time_ns) / 1e9
        left_s = min(call.timeout_ms, self._settings.longest_ms) / 1000 - age_s
        if left_s <= 0:
            raise CallFailed("endpoint_overdue", "RequestExpired")
        limit = asyncio.timeout(left_s)
        try:
            async with limit:
                return await self._ask_with_retries(message, call, model, left_s, limit, masks)
        except TimeoutError as late:
            if not limit.expired():
                raise
            raise CallFailed("endpoint_overdue", "TimeoutError") from late

    async def _ask_with_retries(
        self, message: Message, call: ModelCall, model: str, left_s: float, limit: asyncio.Timeout, masks: Masks | None
    ) -> tuple[ClientAnswer, int]:
        circuit = self._circuit(model)
        calls = 0
        sender = _PieceSender(
            message, self._publish, thinks=model in self._thinking, masks=masks, withheld_for=self._withheld_for
        )
        if sum(len(each.content) for each in call.messages) > _LONG_PROMPT:
            await asyncio.to_thread(sender.read_prompt)  # so that other answers continue meanwhile
        else:
            sender.read_prompt()
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(
                lambda error: isinstance(error, CallFailed) and error.transient and not circuit.is_open
            ),
            wait=self._wait,
            sleep=self._sleep,
            stop=stop_after_attempt(self._settings.attempts) | stop_before_delay(left_s),
            reraise=True,
        ):
            number = attempt.retry_state.attempt_number
            with attempt:
                answer = await self._call_once(message, call, model, number, circuit, limit, sender)
                calls = number - 1 + answer.calls
                if sender.began_thinking:
                    self._thinking.add(model)
                return answer, calls
        raise AssertionError("tenacity ends with a result or an error")

    async def _call_once(
        self,
        message: Message,
        call: ModelCall,
        model: str,
        number: int,
        circuit: Circuit,
        limit: asyncio.Timeout,
        sender: "_PieceSender",
    ) -> ClientAnswer:
        try:
            is_trial = circuit.enter()
        except CircuitOpen as refused:
            raise CallFailed("circuit_open", "CircuitOpen") from refused
        try:
            answer = await self._client.ask(call, model, message.id, sender.begin(), limit.when())
        except CallFailed as failed:
            if failed.dead:
                circuit.failed(is_trial)
            else:
                circuit.succeeded()
            _logger.warning(
                "call_failed", purpose=call.purpose, model=model, reason=failed.reason, error=failed.error,
                attempt=number, exchange=message.exchange,
            )  # fmt: skip
            raise
        except asyncio.CancelledError:
            # Out of time (an endpoint that hangs counts as dead), or the worker is stopping.
            if limit.expired():
                circuit.failed(is_trial)
            else:
                circuit.abandoned(is_trial)
            raise
        circuit.succeeded()
        return answer

    def _circuit(self, model: str) -> Circuit:
        # One circuit per model: a model that is still loading must not block those that answer.
        if model not in self._circuits:
            settings = self._settings
            self._circuits[model] = Circuit(settings.circuit_failures, settings.circuit_wait_ms / 1000)
        return self._circuits[model]

    def _wait(self, state: RetryCallState) -> float:
        """Return how long to wait before the next call: random, but at least as long as the endpoint asks for."""
        error = state.outcome.exception() if state.outcome is not None else None
        return self._random_wait(state) + (error.retry_after_s if isinstance(error, CallFailed) else 0.0)


class _PieceSender:
    """Sends the pieces of one answer while it is generated.

    It starts again with each attempt, and when the text so far turns out to be a thought. Each piece is sent after it
    was checked for faults (``actors.contract.answers.window``); once one is found, nothing more is sent. The text that
    is held back comes with the final answer, if that passes the guards.
    """

    def __init__(
        self,
        message: Message,
        publish: Publish,
        *,
        thinks: bool,
        masks: Masks | None,
        withheld_for: tuple[AnswerFault, ...],
    ) -> None:
        self._withheld_for = withheld_for
        assert isinstance(message.event, Request)
        self._message = message
        self._call = message.event.call  # as it was asked, before anything in it was masked
        self._masks = masks
        self._publish = publish
        self._thinks = thinks
        self._attempt = self._index = self._restarts = 0
        self._thought_filter = ThoughtFilter()
        self._prompt = Prompt("", ())
        self._window: AnswerWindow | None = None
        self._restoring: StreamRestorer | None = None
        self._held = ""

    def read_prompt(self) -> None:
        """Read the prompt; a long one takes a while. Call it once, before the first attempt."""
        if self._call.stream_to:
            self._prompt = prompt_of(self._call)
            self._window = AnswerWindow(self._prompt, self._withheld_for)

    @property
    def began_thinking(self) -> bool:
        """Whether the answer began within a thought, because the model's template opens it for the model."""
        return self._restarts > 0

    def begin(self) -> Callable[[str], Awaitable[None]]:
        """Start a new attempt; returns the function that takes its pieces."""
        self._thought_filter = ThoughtFilter(thinking=self._thinks)
        self._restart()
        return self._take

    def _restart(self) -> None:
        self._attempt, self._index = self._attempt + 1, 0
        if self._window is not None:  # what it knows of the prompt is kept: a model may close a thought with every word
            self._window = AnswerWindow(self._prompt, self._withheld_for, beside=self._window)
        self._restoring = StreamRestorer(self._masks) if self._masks is not None else None
        self._held = ""

    async def _take(self, piece: str) -> None:
        text = self._thought_filter.take(piece)
        if self._thought_filter.restarts > self._restarts:
            self._restarts = self._thought_filter.restarts
            self._restart()
        if self._restoring is not None:
            text = self._restoring.take(text)
        if self._window is None or not text:
            return
        self._held += text
        self._window.take(text)
        ready = len(self._held) - (self._window.received - self._window.released)
        text, self._held = self._held[:ready], self._held[ready:]
        if text:
            sent_piece = SentPiece(
                request=self._message.id,
                exchange=self._message.exchange,
                attempt=self._attempt,
                index=self._index,
                text=text,
            )
            self._index += 1
            await self._publish(self._call.stream_to, msgspec.json.encode(sent_piece))


def enrich_failure(failed: Failed, message: Message) -> Failed:
    """Return an ``llm.failed`` with its request filled in."""
    assert isinstance(message.event, Request)
    return msgspec.structs.replace(failed, request=message.id, purpose=message.event.call.purpose)


def _failure(message: Message, call: ModelCall, reason: str, error: str, said: str = "") -> LlmFailed:
    return LlmFailed(
        reason=reason,
        error=error,
        failed_seq=message.seq,
        failed_topic=topic_of(message.event),
        request=message.id,
        purpose=call.purpose,
        said=said,
    )


def _masked(call: ModelCall, masks: Masks) -> ModelCall:
    masked = tuple(msgspec.structs.replace(each, content=masks.mask(each.content)) for each in call.messages)
    return msgspec.structs.replace(call, messages=masked)


def _restored(text: str, call: ModelCall, masks: Masks | None) -> str:
    if masks is None:
        return text
    return masks.restore(text) if call.answer_schema is None else masks.restore_json(text.encode()).decode()
