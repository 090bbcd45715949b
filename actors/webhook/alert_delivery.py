"""Delivers alerts: to which receivers, how long to wait between calls, and what to record.

A new alert is distributed at once, with a ``webhook.queued`` for each receiver that wants it. Each of these events is a
request of its own, performed and recorded separately. So no receiver can delay another, or cause it to be called twice.
Each receiver has a queue of its own (:class:`~schemas.effectors.contract.OrderedQueue`): the broker delivers its oldest
alert, and the next one after the outcome is in the log. So alerts are delivered in order, whichever workers do it, and
a worker that dies causes at most one repeated alert for each receiver.
"""

import random
from collections.abc import Mapping, Sequence

import msgspec

from actors.runtime.clock import Clock
from actors.runtime.effectors.left_to_others import LeftToOthers
from actors.webhook.http_call import OVERDUE, CallFailed, post_to_receiver
from actors.webhook.payloads import payload
from actors.webhook.receivers import Address, is_wanted, queue_numbers
from actors.webhook.settings import WebhookSettings
from events.libraries.http_client import httpx
from events.loggers import get_logger
from schemas.actor import Message
from schemas.catalogue import ALERTS
from schemas.effectors.contract import QueueTurn, TryLater
from schemas.entry import Severity
from schemas.event import Event, Failed, topic_of
from schemas.vocabulary.alerts import Alert
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed, WebhookQueued

MOST_PAUSE_S = 3_600.0
"""Most seconds of pause that a receiver may ask for, so that its own header cannot exclude it for long."""

BACKLOG_WAIT_S = 15.0
"""Seconds in the queue after which an alert becomes a dead letter if too many (``backlog``) wait behind it."""

_ALERT_TYPES: Mapping[str, type[Alert]] = {topic_of(kind): kind for kind in ALERTS.values()}
_logger = get_logger("neuraxis.webhook")


class CallHistory(msgspec.Struct):
    """How many calls were ``made`` for the queued alert at sequence ``seq``, and the error of the last one."""

    seq: int
    made: int = 0
    error: str = ""


class AlertDelivery:
    """Delivers alerts to receivers.

    Args:
        http: The client that calls the receivers.
        settings: Which receivers get which alerts, and the time limits.
        addresses: The receivers' addresses.
        clock: Measures how old an alert is.
    """

    def __init__(
        self, http: httpx.AsyncClient, settings: WebhookSettings, addresses: Mapping[str, Address], *, clock: Clock
    ) -> None:
        self._http = http
        self._settings = settings
        self._addresses = addresses
        self._clock = clock
        self._queue_numbers = queue_numbers(addresses)
        self._answer_s, self._patience_s = settings.answer_ms / 1000, settings.patience_ms / 1000
        self._calls: dict[str, CallHistory] = {}
        self._unknown_receivers = LeftToOthers(clock, settings.unknown_ms / 1000)

    async def queue_alert(self, message: Message) -> Sequence[Event]:
        """Distribute an alert to the receivers that want it.

        Raises:
            TryLater: this worker knows no such receiver, but another worker may know one.
        """
        alert = message.event
        assert isinstance(alert, Alert)
        body = msgspec.to_builtins(alert)
        queued_alerts = tuple(
            WebhookQueued(
                body=body, request=message.id, stored_ns=message.time_ns, receiver=name, line=self._queue_numbers[name]
            )
            for name, receiver in self._settings.receivers.items()
            if is_wanted(receiver, Severity(alert.severity), alert.source)
        )
        if queued_alerts:
            return queued_alerts
        self._leave_to_others("", message)
        failed = WebhookFailed(
            reason="receiver_unknown", error="", failed_seq=message.seq, failed_topic=topic_of(alert)
        )
        return (enrich_failure(failed, message),)

    async def deliver(self, message: Message, turn: QueueTurn) -> Sequence[Event]:
        """Call a receiver for the alert at the head of its queue.

        Raises:
            TryLater: the receiver does not accept it at the moment.
        """
        queued = message.event
        assert isinstance(queued, WebhookQueued)
        alert, name = alert_of(queued), queued.receiver
        if name not in self._addresses:
            self._leave_to_others(name, message)
            return (_failure(message, queued, alert, CallHistory(message.seq), "receiver_unknown"),)
        calls = self._calls.get(name)
        if calls is None or calls.seq != message.seq:
            calls = self._calls[name] = CallHistory(message.seq)
        if (left_s := self._left_s(queued)) <= 0:
            reason = "receiver_unreachable" if turn.attempt > 1 else "receiver_overdue"
            return (self._give_up(message, queued, alert, calls, reason),)
        waited_s = (self._clock.now_ns() - message.time_ns) / 1e9
        if turn.behind >= self._settings.backlog and waited_s >= BACKLOG_WAIT_S:
            return (self._give_up(message, queued, alert, calls, "receiver_overrun"),)
        calls.made += 1
        try:
            code = await self._call(queued, alert, min(left_s, self._answer_s))
        except CallFailed as failed:
            # The alert may expire before the call does: then the last completed call says more.
            cut_short = failed.error == OVERDUE and left_s < self._answer_s
            calls.error = (cut_short and calls.error) or failed.error
            _logger.warning(
                "call_failed", receiver=name, error=failed.error, attempt=calls.made, request=queued.request
            )
            if not failed.temporary:
                return (_failure(message, queued, alert, calls, "receiver_refused"),)
            raise TryLater(self._pause_s(failed, turn.attempt, queued)) from failed
        return (
            WebhookDelivered(
                alert=alert.alert,
                status=alert.status,
                count=alert.count,
                request=queued.request,
                receiver=name,
                code=code,
                attempts=calls.made,
            ),
        )

    def _leave_to_others(self, receiver: str, message: Message) -> None:
        """Raise TryLater as long as another worker, which knows this receiver, may take the message."""
        if pause_s := self._unknown_receivers.pause_s(receiver, message.seq, message.time_ns):
            raise TryLater(pause_s)

    async def _call(self, queued: WebhookQueued, alert: Alert, within_s: float) -> int:
        receiver = self._settings.receivers[queued.receiver]
        body = payload(alert, receiver, queued.stored_ns, self._settings.lasts_ms)
        return await post_to_receiver(
            self._http, self._addresses[queued.receiver], body, queued.request, within_s, receiver.style
        )

    def _pause_s(self, failed: CallFailed, attempt: int, queued: WebhookQueued) -> float:
        """Return the seconds until the next call: random within a growing limit, or longer if the receiver asks for it.

        A pause that a receiver asks for also applies to the alerts behind this one, so this alert waits in any case.
        """
        settings = self._settings
        most_s = min(settings.backoff_first_ms * 2.0 ** min(attempt - 1, 32), settings.backoff_most_ms) / 1000
        pause_s = min(random.uniform(0, most_s), max(0.0, self._left_s(queued)))
        return max(pause_s, min(failed.retry_after_s, MOST_PAUSE_S, self._patience_s))

    def _left_s(self, queued: WebhookQueued) -> float:
        """Return for how many seconds an alert is still useful."""
        return (queued.stored_ns - self._clock.now_ns()) / 1e9 + self._patience_s

    def _give_up(
        self, message: Message, queued: WebhookQueued, alert: Alert, calls: CallHistory, reason: str
    ) -> WebhookFailed:
        _logger.error(
            "alert_given_up", receiver=queued.receiver, reason=reason, error=calls.error, request=queued.request
        )
        return _failure(message, queued, alert, calls, reason)


def wanted_alerts(settings: WebhookSettings) -> tuple[type[Alert], ...]:
    """Return the alerts that at least one receiver gets."""
    receivers = settings.receivers.values()
    return tuple(kind for key, kind in ALERTS.items() if any(is_wanted(receiver, *key) for receiver in receivers))


def alert_of(queued: WebhookQueued) -> Alert:
    """Return the alert to be delivered; raises msgspec.ValidationError where the recorded body is not an alert."""
    kind = _ALERT_TYPES.get(str(queued.body.get("topic")))
    if kind is None:
        raise msgspec.ValidationError(f"a queued alert has the topic {queued.body.get('topic')!r}, which no alert has")
    return msgspec.convert(queued.body, kind)


def enrich_failure(failed: Failed, message: Message) -> Failed:
    """Return a ``webhook.failed`` with its alert filled in."""
    assert isinstance(failed, WebhookFailed)
    event = message.event
    if isinstance(event, Alert):
        changes = {"alert": event.alert, "status": event.status, "count": event.count, "request": message.id}
        return msgspec.structs.replace(failed, **changes)
    assert isinstance(event, WebhookQueued)
    enriched = msgspec.structs.replace(failed, request=event.request, receiver=event.receiver)
    try:
        alert = alert_of(event)
    except msgspec.ValidationError:
        return enriched  # its body is no alert, which is what failed
    return msgspec.structs.replace(enriched, alert=alert.alert, status=alert.status, count=alert.count)


def _failure(message: Message, queued: WebhookQueued, alert: Alert, calls: CallHistory, reason: str) -> WebhookFailed:
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
