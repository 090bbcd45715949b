"""The one who carries alerts outside: an effector that posts them to Slack-style webhooks and to Alertmanager (API v2).

It answers ``alert.<severity>.<source>`` with ``webhook.queued`` for each receiver that is to get the alert, which it
answers itself: with ``webhook.delivered`` once the receiver took it, or ``webhook.failed``, the dead letter. In the log
a delivery is recorded once; outside it may happen again where a worker died between the call and its record, so every
request names its alert, status and count, and has an ``Idempotency-Key``.

Addresses and tokens are secrets: settings name the environment variables or files that hold them, and neither an event
nor a log line shows one. Alerts about webhook itself go to no receiver, only to who listens on the broker.
"""

from contextlib import AbstractAsyncContextManager

from actors.runtime.effectors.spec import EffectorContext, EffectorSpec
from actors.webhook.settings import WebhookSettings
from schemas.effectors.contract import Effector


def _open(settings: WebhookSettings, context: EffectorContext) -> AbstractAsyncContextManager[Effector]:
    # Here: every process loads the settings, and the one that hosts the effector alone needs an HTTP client.
    from actors.webhook.open_effector import open_webhook

    return open_webhook(settings, context)


EFFECTOR = EffectorSpec("webhook", WebhookSettings, _open)

__all__ = ["EFFECTOR", "WebhookSettings"]
