"""Delivering alerts: to whom, how often to call, how long to wait, and what to record.

A new alert is tried at once with every receiver that wants it. Whom it does not reach gets it later: a
``webhook.delayed`` for each is a request of its own, so that a receiver that is down keeps no other waiting, and one
that has an alert does not get it again when another has failed. There is one line to a receiver: whoever is first in
it tries until the alert has become too old, and the others wait, which keeps alerts in order and a receiver that
recovers from being overrun. While the line is down, new alerts join it without a call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import httpx
import msgspec
import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, stop_never
from tenacity.stop import stop_base
from tenacity.wait import wait_random_exponential

from actors.runtime.clock import Clock
from actors.webhook.calling import CallFailed, call
from actors.webhook.payloads import payload
from actors.webhook.receivers import Address, is_wanted
from actors.webhook.settings import Receiver, WebhookSettings
from schemas.actor import Message
from schemas.entry import Severity
from schemas.event import Event, Failed, topic_of
from schemas.vocabulary.alerts import ALERTS, Alert
from schemas.vocabulary.webhook import WebhookDelayed, WebhookDelivered, WebhookFailed

QUEUED = "Queued"
_SOON_S = 2.0
_TYPES: Mapping[str, type[Alert]] = {topic_of(kind): kind for kind in ALERTS.values()}
_logger = structlog.get_logger("neuraxis.webhook")


class Notice(msgspec.Struct, frozen=True):
    """An alert to be delivered: the id of its event, when that was stored, and the calls made for it before."""

    alert: Alert
    request: str
    stored_ns: int
    attempts: int = 0


class Line:
    """The way to one receiver; ``down`` from a call that failed until it answers again."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.down = False


class Calls(msgspec.Struct):
    """The calls made to a receiver for an alert, and what the last one came to."""

    made: int
    error: str


class Delivering:
    """Performs deliveries.

    Args:
        http: Connections.
        settings: Who gets what, and how patiently.
        addresses: The receivers' addresses.
        clock: Tells how old an alert is.
        sleep: Waits between two calls.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        settings: WebhookSettings,
        addresses: Mapping[str, Address],
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._http = http
        self._settings = settings
        self._addresses = addresses
        self._clock = clock
        self._sleep = sleep
        self._lines = {name: Line() for name in addresses}
        self._longest_wait = wait_random_exponential(
            multiplier=settings.backoff_first_ms / 1000, max=settings.backoff_most_ms / 1000
        )

    async def perform(self, message: Message) -> Sequence[Event]:
        """Deliver an alert, or one that was delayed; whatever goes wrong is an answer too."""
        event = message.event
        if isinstance(event, WebhookDelayed):
            return (await self._later(message, event),)
        assert isinstance(event, Alert)
        notice = Notice(event, message.id, message.time_ns)
        names = [name for name, receiver in self._settings.receivers.items() if wants(receiver, event)]
        async with asyncio.TaskGroup() as tasks:
            tried = [tasks.create_task(self._at_once(message, notice, name)) for name in names]
        return tuple(each.result() for each in tried)

    async def _at_once(self, message: Message, notice: Notice, name: str) -> Event:
        line, calls = self._lines[name], Calls(notice.attempts, QUEUED)
        # No longer than a call may take: other receivers' words of this alert are stored with this one's.
        turn = asyncio.timeout(self._settings.answer_ms / 1000)
        try:
            async with turn:
                await line.turn.acquire()
        except TimeoutError:
            return _delayed(notice, name, calls)
        try:
            if not line.down:
                soon = stop_after_attempt(self._settings.attempts) | _PutOff()
                return await self._try(message, notice, name, calls, soon)
        finally:
            line.turn.release()
        return _delayed(notice, name, calls)

    async def _later(self, message: Message, delayed: WebhookDelayed) -> Event:
        notice, name = notice_of(delayed), delayed.receiver
        line, calls = self._lines.get(name), Calls(notice.attempts, delayed.error)
        if line is None:
            return _failure(message, notice, name, calls, "receiver_unknown")
        left_s = (notice.stored_ns - self._clock.now_ns()) / 1e9 + self._settings.patience_ms / 1000
        limit = asyncio.timeout(max(0.0, left_s))
        try:
            async with limit, line.turn:
                return await self._try(message, notice, name, calls, stop_never)
        except TimeoutError:
            if not limit.expired():
                raise
        _logger.error("alert_given_up", receiver=name, error=calls.error, attempts=calls.made, request=notice.request)
        return _failure(message, notice, name, calls, "receiver_unreachable" if calls.made else "receiver_overdue")

    async def _try(self, message: Message, notice: Notice, name: str, calls: Calls, stop: stop_base) -> Event:
        """Call until the receiver answers for good, or ``stop`` says so."""
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception(_passes), wait=self._wait, sleep=self._sleep, stop=stop, reraise=True
            ):
                with attempt:
                    return _delivered(notice, name, calls, await self._call(notice, name, calls))
        except CallFailed as failed:
            if not failed.passing:
                return _failure(message, notice, name, calls, "receiver_refused")
        return _delayed(notice, name, calls)

    async def _call(self, notice: Notice, name: str, calls: Calls) -> int:
        line, receiver = self._lines[name], self._settings.receivers[name]
        body = payload(notice.alert, receiver, notice.stored_ns, self._settings.lasts_ms)
        calls.made += 1
        try:
            within_s = self._settings.answer_ms / 1000
            code = await call(self._http, self._addresses[name], body, notice.request, within_s)
        except CallFailed as failed:
            line.down, calls.error = failed.passing, failed.error
            _logger.warning(
                "call_failed", receiver=name, error=failed.error, attempt=calls.made, request=notice.request
            )
            raise
        line.down = False
        return code

    def _wait(self, state: RetryCallState) -> float:
        """Return how long to wait before the next call: at random, and no shorter than the receiver asks for."""
        error = state.outcome.exception() if state.outcome is not None else None
        return self._longest_wait(state) + (error.retry_after_s if isinstance(error, CallFailed) else 0.0)


class _PutOff(stop_base):
    """Stops where a receiver has asked to be left alone for longer than others should have to wait."""

    def __call__(self, retry_state: RetryCallState) -> bool:
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        return isinstance(error, CallFailed) and error.retry_after_s > _SOON_S


def wants(receiver: Receiver, alert: Alert) -> bool:
    """Whether a receiver gets an alert."""
    return is_wanted(receiver, Severity(alert.severity), alert.source)


def wanted(settings: WebhookSettings) -> tuple[type[Alert], ...]:
    """Return the alerts that at least one receiver gets."""
    receivers = settings.receivers.values()
    return tuple(kind for key, kind in ALERTS.items() if any(is_wanted(receiver, *key) for receiver in receivers))


def notice_of(delayed: WebhookDelayed) -> Notice:
    """Return what is to be delivered; raises msgspec.ValidationError where the recorded body is no alert."""
    kind = _TYPES.get(str(delayed.body.get("topic")))
    if kind is None:
        raise msgspec.ValidationError(
            f"a delayed alert has the topic {delayed.body.get('topic')!r}, which no alert has"
        )
    return Notice(msgspec.convert(delayed.body, kind), delayed.request, delayed.stored_ns, delayed.attempts)


def naming(failed: Failed, message: Message) -> Failed:
    """Return a ``webhook.failed`` with the alert it is of."""
    assert isinstance(failed, WebhookFailed)
    event = message.event
    if isinstance(event, Alert):
        changes = {"alert": event.alert, "status": event.status, "count": event.count, "request": message.id}
        return msgspec.structs.replace(failed, **changes)
    assert isinstance(event, WebhookDelayed)
    return msgspec.structs.replace(failed, request=event.request, receiver=event.receiver, attempts=event.attempts)


def _delivered(notice: Notice, receiver: str, calls: Calls, code: int) -> WebhookDelivered:
    return WebhookDelivered(
        alert=notice.alert.alert,
        status=notice.alert.status,
        count=notice.alert.count,
        request=notice.request,
        receiver=receiver,
        code=code,
        attempts=calls.made,
    )


def _delayed(notice: Notice, receiver: str, calls: Calls) -> WebhookDelayed:
    return WebhookDelayed(
        body=msgspec.to_builtins(notice.alert),
        request=notice.request,
        stored_ns=notice.stored_ns,
        receiver=receiver,
        attempts=calls.made,
        error=calls.error,
    )


def _failure(message: Message, notice: Notice, receiver: str, calls: Calls, reason: str) -> WebhookFailed:
    return WebhookFailed(
        reason=reason,
        error=calls.error,
        failed_seq=message.seq,
        failed_topic=topic_of(message.event),
        alert=notice.alert.alert,
        status=notice.alert.status,
        count=notice.alert.count,
        request=notice.request,
        receiver=receiver,
        attempts=calls.made,
    )


def _passes(error: BaseException) -> bool:
    return isinstance(error, CallFailed) and error.passing
