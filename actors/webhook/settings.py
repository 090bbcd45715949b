"""Settings of the effector that delivers alerts."""

from typing import Annotated, Literal

import msgspec

from schemas.entry import Severity
from schemas.event import Milliseconds

Style = Literal["slack", "alertmanager", "json"]
"""The format of a receiver: Slack's incoming webhooks, Alertmanager's API v2, or the alert's own body."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="a name of letters, digits, _ and -")]
Owner = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$", description="an actor's name")]
"""The owner (an actor, effector or entry point) of events that call for alerts."""


class Receiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receiver of alerts. Its address and its token are secrets, and never settings: see ``receivers``.

    Attributes:
        style: Its format.
        url_env: Environment variable that holds its address.
        url_file: File that holds it instead.
        token_env: Environment variable that holds a token to send as ``Authorization: Bearer``; empty: none.
        token_file: File that holds it instead.
        least: The lowest severity it gets.
        sources: The owners whose alerts it gets; empty: all.
        link: Address to put into what it gets, such as a dashboard's: an http(s) URL; empty: none.
    """

    style: Style
    url_env: str = ""
    url_file: str = ""
    token_env: str = ""
    token_file: str = ""
    least: Severity = Severity.WARNING
    sources: tuple[Owner, ...] = ()
    link: str = ""


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which receivers get alerts, and the limits of delivery.

    Attributes:
        receivers: The receivers by name.
        patience_ms: Time after an alert for which its delivery is tried; then it becomes a dead letter.
        backoff_first_ms: Upper limit of the random wait before the second call; it doubles with each call.
        backoff_most_ms: The highest value of that limit.
        connect_ms: Time to reach a receiver.
        unknown_ms: Time for which a worker leaves deliveries to an unknown receiver to other workers: longer than a
            rolling restart with a new receiver takes.
        answer_ms: Total time for one call.
        lasts_ms: How long an Alertmanager keeps an alert that is never resolved: longer than ``alerts.lapse_ms``.
        backlog: If more deliveries than this (to all receivers) wait behind one that has been in the queue for fifteen
            seconds, that one becomes a dead letter.
    """

    receivers: dict[Name, Receiver] = {}
    patience_ms: Milliseconds = 21_600_000
    backoff_first_ms: Milliseconds = 250
    backoff_most_ms: Milliseconds = 60_000
    connect_ms: Milliseconds = 3_000
    unknown_ms: Milliseconds = 120_000
    answer_ms: Milliseconds = 10_000
    lasts_ms: Milliseconds = 90_000_000
    backlog: Annotated[int, msgspec.Meta(ge=1, le=5000)] = 2000
