"""Opens the webhook effector: reads its receivers, and opens its HTTP connections."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from actors.runtime.effectors.spec import EffectorContext
from actors.webhook.alert_delivery import AlertDelivery, enrich_failure, wanted_alerts
from actors.webhook.http_call import connections
from actors.webhook.receivers import QUEUES, addresses
from actors.webhook.settings import WebhookSettings
from events.loggers import get_logger
from schemas.actor import Message
from schemas.effectors.contract import Effector, OrderedQueue
from schemas.vocabulary.webhook import WebhookFailed, WebhookQueued

_GRACE_S = 30.0
"""Seconds that the worker waits beyond the limit of a call: the call's own error says more than the worker's."""

_logger = get_logger("neuraxis.webhook")


@asynccontextmanager
async def open_webhook(settings: WebhookSettings, context: EffectorContext) -> AsyncIterator[Effector]:
    """Open the effector for the length of the block.

    Raises:
        BadReceiver: the settings name no receiver, or one that cannot be used.
    """
    receivers = addresses(settings.receivers, context.environment)
    alerts = wanted_alerts(settings)
    async with connections(settings.connect_ms / 1000) as http:
        delivery = AlertDelivery(http, settings, receivers, clock=context.clock)
        _logger.info("webhook_serves", receivers=sorted(receivers), alerts=len(alerts))
        yield Effector(
            name="webhook",
            consumes=alerts,
            handle=delivery.queue_alert,
            failed=WebhookFailed,
            enrich_failure=enrich_failure,
            timeout_s=settings.answer_ms / 1000 + _GRACE_S,
            # A receiver that is down is retried for hours.
            most_attempts=None,
            in_order=True,
            ordered_queues=tuple(_queue(name, delivery) for name in QUEUES),
        )


def _queue(name: str, delivery: AlertDelivery) -> OrderedQueue:
    def is_in_queue(message: Message) -> bool:
        # ``line`` is the number of the receiver's queue.
        return isinstance(message.event, WebhookQueued) and str(message.event.line) == name

    return OrderedQueue(name, (WebhookQueued,), is_in_queue, delivery.deliver)
