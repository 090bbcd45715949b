"""Deliveries of alerts to people's own tools. Owner: ``webhook``, an effector.

Events name receivers, which the settings know, and never hold their addresses.
"""

from functools import partial
from typing import Annotated, Any

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity
from schemas.event import Event, Failed
from schemas.vocabulary.alerts import Count, Status

Attempts = Annotated[int, msgspec.Meta(ge=0)]


class WebhookDelivered(Event, frozen=True, kw_only=True, tag="forged_id.webhook.delivered"):
    """A receiver accepted an alert, whose ``alert``, ``status`` and ``count`` are repeated here.

    ``request`` is the id of the alert's event, ``code`` the HTTP status of the receiver's answer, ``attempts`` the
    number of calls by the worker that delivered it.
    """

    alert: str
    status: Status
    count: Count
    request: str
    receiver: str
    code: int
    attempts: Attempts


class WebhookQueued(Event, frozen=True, kw_only=True, tag="forged_id.webhook.queued"):
    """An alert is to be delivered to a receiver, after those that wait for that receiver already.

    ``body`` is the alert as it was published, ``request`` the id of its event and ``stored_ns`` when that was stored
    (Unix nanoseconds). ``line`` is the ordered queue that it goes through: deliveries of one queue are made one after
    another.
    """

    body: dict[str, Any]
    request: str
    stored_ns: int
    receiver: str
    line: Annotated[int, msgspec.Meta(ge=1)] = 1


class WebhookFailed(Failed, frozen=True, kw_only=True, tag="forged_id.webhook.failed"):
    """The dead letter of an alert that a receiver did not get.

    Reasons besides an effector's own: ``receiver_refused`` (a status, or an error under a good status, for
    which another attempt is useless), ``receiver_unreachable`` and ``receiver_overdue`` (it was not delivered within
    the time that the settings give), ``receiver_overrun`` (it is down or slow, and more alerts waited for it than the
    settings allow), ``receiver_unknown`` (no worker knows it). ``request`` is the id of the alert's event, empty where
    it is unknown.
    """

    alert: str = ""
    status: Status = "firing"
    count: Count = 0
    request: str = ""
    receiver: str = ""
    attempts: Attempts = 0


_entry = partial(Entry, owner="webhook", scope=Scope.GLOBAL)

ENTRIES = (
    _entry(
        meaning="A receiver outside took an alert.",
        sample=WebhookDelivered(
            alert="0f" * 8, status="firing", count=1, request="0" * 32, receiver="ops", code=200, attempts=1
        ),
    ),
    _entry(
        meaning="An alert waits for its turn at a receiver outside.",
        asks="webhook",
        sample=WebhookQueued(
            body={"topic": "forged_id.alert.critical.breaker", "alert": "0f" * 8},
            request="0" * 32,
            stored_ns=1_700_000_000_000_000_000,
            receiver="ops",
        ),
    ),
    _entry(
        meaning="A receiver outside did not get an alert, and is tried no more.",
        sample=WebhookFailed(
            reason="receiver_unreachable",
            error="ConnectError",
            failed_seq=9,
            failed_topic="forged_id.webhook.queued",
            alert="0f" * 8,
            count=1,
            request="0" * 32,
            receiver="ops",
            attempts=40,
        ),
        severity=Severity.WARNING,
        grouping=Grouping(
            by_agent=False, fields=("receiver",), copied_fields=("receiver", "reason", "error", "attempts")
        ),
        ended_by=(WebhookDelivered,),
    ),
)
