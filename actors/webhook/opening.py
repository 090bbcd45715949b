"""Opening the effector: its receivers, its connections, and the effector over them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from actors.runtime.effectors.spec import EffectorContext
from actors.webhook.calling import connections
from actors.webhook.delivering import Delivering, enrich_failure, wanted
from actors.webhook.receivers import addresses
from actors.webhook.settings import WebhookSettings
from events.loggers import get_logger
from schemas.effector import Effector
from schemas.vocabulary.webhook import WebhookFailed, WebhookQueued

_GRACE_S = 30.0
"""Seconds by which the shell waits longer than an alert's own time: that one says more of what went wrong."""

_SHARED_OUT = 8
"""Alerts that are shared out at once."""

_logger = get_logger("neuraxis.webhook")


@asynccontextmanager
async def open_webhook(settings: WebhookSettings, context: EffectorContext) -> AsyncIterator[Effector]:
    """Open the effector for the length of the block.

    Raises:
        BadReceiver: the settings name no receiver, or one that cannot be used.
    """
    found = addresses(settings.receivers, context.environment)
    alerts = wanted(settings)
    async with connections(settings.connect_ms / 1000) as http:
        delivering = Delivering(http, settings, found, clock=context.clock)
        _logger.info("webhook_serves", receivers=sorted(found), alerts=len(alerts))
        yield Effector(
            name="webhook",
            consumes=(*alerts, WebhookQueued),
            handle=delivering.handle,
            failed=WebhookFailed,
            enrich_failure=enrich_failure,
            admit=delivering.admit,
            waits=delivering.waits,
            ended=delivering.ended,
            exclusive=True,
            on_start=delivering.on_start,
            timeout_s=settings.patience_ms / 1000 + _GRACE_S,
            # Most of a performance is waiting in line: a worker that ends meanwhile says nothing of the alert.
            most_attempts=None,
            # All that can wait for receivers that are down, and one at a call to each, leave room to share out alerts.
            concurrency=max(settings.backlog, len(found)) + len(found) + _SHARED_OUT,
        )
