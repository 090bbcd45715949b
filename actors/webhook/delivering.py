"""Delivering alerts: to whom, how long to wait between calls, and what to record.

A new alert is shared out at once: a ``webhook.queued`` for each receiver that wants it. Each of these is a request of
its own, called for and recorded by itself, so that no receiver, whatever it does, keeps another waiting or has it told
twice. There is one line to a receiver: the oldest alert in it is tried until it has become too old, and the others
wait, which keeps alerts in order and a receiver that recovers from being overrun. The turn is over when what it came to
is in the log, so that a worker that dies has told a receiver one alert at most that will be told again. What waits is
bounded, see ``line``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import httpx
import msgspec
from tenacity import AsyncRetrying, retry_if_exception
from tenacity.wait import wait_random_exponential

from actors.runtime.clock import Clock
from actors.webhook.calling import OVERDUE, CallFailed, call
from actors.webhook.payloads import payload
from actors.webhook.queue import Age, Capacity, Overrun, Queue
from actors.webhook.receivers import Address, is_wanted
from actors.webhook.settings import WebhookSettings
from events.loggers import get_logger
from schemas.actor import Message
from schemas.catalogue import ALERTS
from schemas.entry import Severity
from schemas.event import Event, Failed, topic_of
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed, WebhookQueued

MOST_PAUSE_S = 3_600.0
"""Seconds a receiver may ask to be left alone for: no receiver is shut out for long by a word of its own."""

_TYPES: Mapping[str, type[Alert]] = {topic_of(kind): kind for kind in ALERTS.values()}
_logger = get_logger("neuraxis.webhook")


class Calls(msgspec.Struct):
    """The calls made to a receiver for an alert, and what the last one came to."""

    made: int = 0
    error: str = ""


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
        room = Capacity(settings.backlog)
        self._lines = {name: room.line() for name in addresses}
        self._backoff = wait_random_exponential(
            multiplier=settings.backoff_first_ms / 1000, max=settings.backoff_most_ms / 1000
        )
        self._answer_s, self._patience_s = settings.answer_ms / 1000, settings.patience_ms / 1000
        self._turns: dict[int, Queue] = {}
        self._calling: set[int] = set()

    def on_start(self, seconds: float) -> None:
        """Call no receiver for so long, see :class:`~schemas.effector.Effector`: what comes late may be older."""
        for line in self._lines.values():
            line.hold(seconds)

    def waits(self, message: Message) -> bool:
        """Whether a delivery is between two calls."""
        return message.seq not in self._calling

    def ended(self, message: Message) -> None:
        """Let the next delivery have the turn of one that is recorded, or handed back."""
        self._calling.discard(message.seq)
        if (line := self._turns.pop(message.seq, None)) is not None:
            line.leave()

    async def admit(self, message: Message) -> Sequence[Event] | None:
        """Share an alert out, or have one wait for its turn at its receiver; None once it is to be called for."""
        event = message.event
        if isinstance(event, WebhookQueued):
            failure = await self._wait_for_turn(message, event)
            return None if failure is None else (failure,)
        assert isinstance(event, Alert)
        body = msgspec.to_builtins(event)
        return tuple(
            WebhookQueued(body=body, request=message.id, stored_ns=message.time_ns, receiver=name)
            for name, receiver in self._settings.receivers.items()
            if is_wanted(receiver, Severity(event.severity), event.source)
        )

    async def _wait_for_turn(self, message: Message, queued: WebhookQueued) -> WebhookFailed | None:
        alert, none = alert_of(queued), Calls()
        line = self._lines.get(queued.receiver)
        if line is None:
            return _failure(message, queued, alert, none, "receiver_unknown")
        age = _age(message, queued)
        try:
            async with asyncio.timeout(self._left_s(queued)) as limit:
                await line.admit(age)
        except Overrun:
            return self._given_up(message, queued, alert, none, "receiver_overrun")
        except TimeoutError:
            if not limit.expired():
                raise
            return self._given_up(message, queued, alert, none, "receiver_overdue")
        self._turns[message.seq] = line
        if self._left_s(queued) <= 0:
            return self._given_up(message, queued, alert, none, "receiver_overdue")
        if alert.status == "firing" and line.is_over(alert.alert, age):
            return _failure(message, queued, alert, none, "alert_superseded")
        return None

    async def handle(self, message: Message) -> Sequence[Event]:
        """Call a receiver for an alert whose turn it is; whatever goes wrong is an answer too."""
        queued = message.event
        assert isinstance(queued, WebhookQueued)
        alert, calls, line = alert_of(queued), Calls(), self._turns[message.seq]
        try:
            async with asyncio.timeout(self._left_s(queued)) as limit:
                return (await self._try(message, queued, alert, calls, line),)
        except TimeoutError:
            if not limit.expired():
                raise
        reason = "receiver_unreachable" if calls.made else "receiver_overdue"
        return (self._given_up(message, queued, alert, calls, reason),)

    def _left_s(self, queued: WebhookQueued) -> float:
        """Return the seconds for which an alert is of use still."""
        return (queued.stored_ns - self._clock.now_ns()) / 1e9 + self._patience_s

    def _given_up(
        self, message: Message, queued: WebhookQueued, alert: Alert, calls: Calls, reason: str
    ) -> WebhookFailed:
        _logger.error(
            "alert_given_up", receiver=queued.receiver, reason=reason, error=calls.error, request=queued.request
        )
        return _failure(message, queued, alert, calls, reason)

    async def _try(self, message: Message, queued: WebhookQueued, alert: Alert, calls: Calls, line: Queue) -> Event:
        """Call until the receiver answers for good."""
        retrying = AsyncRetrying(retry=retry_if_exception(_passes), wait=self._backoff, sleep=self._sleep, reraise=True)
        try:
            code: int = await retrying(self._call, message.seq, queued, alert, calls, line)
        except CallFailed:
            return _failure(message, queued, alert, calls, "receiver_refused")
        if alert.status == "resolved":
            line.took_end(alert.alert, _age(message, queued))
        return WebhookDelivered(
            alert=alert.alert,
            status=alert.status,
            count=alert.count,
            request=queued.request,
            receiver=queued.receiver,
            code=code,
            attempts=calls.made,
        )

    async def _call(self, seq: int, queued: WebhookQueued, alert: Alert, calls: Calls, line: Queue) -> int:
        name, settings = queued.receiver, self._settings
        now = asyncio.get_running_loop().time
        if (rest_s := line.open_at - now()) > 0:
            await self._sleep(rest_s)
        receiver = settings.receivers[name]
        body = payload(alert, receiver, queued.stored_ns, settings.lasts_ms)
        calls.made += 1
        # An alert's own time may be over before a call's: then the last call that came to an end says more.
        calls.error = calls.error or OVERDUE
        self._calling.add(seq)
        try:
            code = await call(self._http, self._addresses[name], body, queued.request, self._answer_s, receiver.style)
        except CallFailed as failed:
            calls.error = failed.error
            if failed.passing:
                self._calling.discard(seq)
                line.open_at = now() + min(failed.retry_after_s, MOST_PAUSE_S, self._patience_s)
                line.failed()
            else:
                line.answered()
            _logger.warning(
                "call_failed", receiver=name, error=failed.error, attempt=calls.made, request=queued.request
            )
            raise
        line.answered()
        return code


def wanted(settings: WebhookSettings) -> tuple[type[Alert], ...]:
    """Return the alerts that at least one receiver gets."""
    receivers = settings.receivers.values()
    return tuple(kind for key, kind in ALERTS.items() if any(is_wanted(receiver, *key) for receiver in receivers))


def alert_of(queued: WebhookQueued) -> Alert:
    """Return what is to be delivered; raises msgspec.ValidationError where the recorded body is no alert."""
    kind = _TYPES.get(str(queued.body.get("topic")))
    if kind is None:
        raise msgspec.ValidationError(f"a queued alert has the topic {queued.body.get('topic')!r}, which no alert has")
    return msgspec.convert(queued.body, kind)


def enrich_failure(failed: Failed, message: Message) -> Failed:
    """Return a ``webhook.failed`` with the alert it is of."""
    assert isinstance(failed, WebhookFailed)
    event = message.event
    if isinstance(event, Alert):
        changes = {"alert": event.alert, "status": event.status, "count": event.count, "request": message.id}
        return msgspec.structs.replace(failed, **changes)
    assert isinstance(event, WebhookQueued)
    named = msgspec.structs.replace(failed, request=event.request, receiver=event.receiver)
    try:
        alert = alert_of(event)
    except msgspec.ValidationError:
        return named  # its body is no alert, which is what failed
    return msgspec.structs.replace(named, alert=alert.alert, status=alert.status, count=alert.count)


def _age(message: Message, queued: WebhookQueued) -> Age:
    return queued.stored_ns, message.seq


def _failure(message: Message, queued: WebhookQueued, alert: Alert, calls: Calls, reason: str) -> WebhookFailed:
    return WebhookFailed(
        reason=reason,
        error=calls.error,
        failed_seq=message.seq,
        failed_topic=topic_of(queued),
        alert=alert.alert,
        status=alert.status,
        count=alert.count,
        request=queued.request,
        receiver=queued.receiver,
        attempts=calls.made,
    )


def _passes(error: BaseException) -> bool:
    return isinstance(error, CallFailed) and error.passing
