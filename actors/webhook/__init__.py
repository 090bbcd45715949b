"""The effector that delivers alerts: it posts them to Slack-style webhooks and to Alertmanager (API v2).

It answers ``alert.<severity>.<source>`` with ``webhook.queued`` for each receiver of the alert. It answers these events
itself: with ``webhook.delivered`` once the receiver accepted the alert, or with ``webhook.failed``, the dead letter.
The log records a delivery once. The receiver may get it twice, if a worker dies between the call and its record. So
every request names its alert, status and count, and has an ``Idempotency-Key``.

Addresses and tokens are secrets: settings name the environment variables or files that hold them, and no event or log
line contains one. Alerts about webhook itself go to no receiver, only to subscribers of the broker: otherwise a failing
receiver would cause further deliveries to it.
"""

from contextlib import AbstractAsyncContextManager

from actors.runtime.effectors.spec import EffectorContext, EffectorSpec
from actors.webhook.settings import WebhookSettings
from schemas.effectors.contract import Effector


def _open(settings: WebhookSettings, context: EffectorContext) -> AbstractAsyncContextManager[Effector]:
    # Imported here: every process loads the settings, but only the one that hosts the effector needs an HTTP client.
    from actors.webhook.open_effector import open_webhook

    return open_webhook(settings, context)


EFFECTOR = EffectorSpec("webhook", WebhookSettings, _open)

__all__ = ["EFFECTOR", "WebhookSettings"]
