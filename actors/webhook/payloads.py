"""The bodies that receivers are sent. Pure.

Each format contains the alert's name, status and count, so that a receiver can recognise a repeated delivery.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from actors.webhook.settings import Receiver
from schemas.event import ROOT
from schemas.vocabulary.alerts import Alert, SeverityName
from schemas.wording.alert_summary import alert_summary

_COLOURS: Mapping[SeverityName, str] = {"critical": "#d00000", "warning": "#e8a200", "info": "#3a7bd5"}
_RESOLVED = "#2eb67d"  # the colour of an alert that is over
_MOST_CHARACTERS = 120
"""Most characters of a name in a Slack message: Slack refuses a text of more than 3,000, escapes included."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def payload(alert: Alert, receiver: Receiver, stored_ns: int, lasts_ms: int) -> bytes:
    """Return the body of a request to a receiver.

    Args:
        alert: The alert to deliver.
        receiver: The receiver.
        stored_ns: When the alert's event was stored (Unix nanoseconds).
        lasts_ms: How long from then on a firing alert holds, for formats that state when an alert ends.
    """
    match receiver.style:
        case "slack":
            return msgspec.json.encode(slack_message(alert, receiver.link))
        case "alertmanager":
            return msgspec.json.encode([alertmanager_alert(alert, receiver.link, stored_ns, lasts_ms)])
        case "json":
            return msgspec.json.encode(json_body(alert))


def json_body(alert: Alert) -> dict[str, Any]:
    """Return an alert's own body, with sentences about what it reports."""
    return {**msgspec.to_builtins(alert), "summary": alert_summary(alert)}


def slack_message(alert: Alert, link: str) -> dict[str, Any]:
    """Return a message for a Slack-style incoming webhook: a line for the notification, and a coloured block."""
    resolved = alert.status == "resolved"
    title = f"{'Resolved' if resolved else alert.severity.capitalize()}: {_name(alert)}"
    facts = [
        f"*{label}* {_quoted(value)}"
        for label, value in (
            ("agent", _cut(alert.agent)),
            ("session", _cut(alert.session)),
            ("detail", alert.detail),
            ("exchange", _cut(alert.exchange)),
            ("ended by", alert.resolved_by),
            ("count", str(alert.count)),
            ("held back", str(alert.suppressed or "")),
            ("since", _iso_time(alert.since_ns)),
            ("alert", f"{alert.alert} {alert.status} {alert.count}"),
        )
        if value
    ]
    heading = f"*<{_escaped(link)}|{_escaped(title)}>*" if link else f"*{_escaped(title)}*"
    blocks = [
        {"type": "section", "text": _mrkdwn(f"{heading}\n{_escaped(alert_summary(alert))}")},
        {"type": "context", "elements": [_mrkdwn(" · ".join(facts))]},
    ]
    colour = _RESOLVED if resolved else _COLOURS[alert.severity]
    return {
        "text": _escaped(f"{title}. {alert_summary(alert)}"),
        "mrkdwn": False,
        "attachments": [{"color": colour, "blocks": blocks}],
    }


def alertmanager_alert(alert: Alert, link: str, stored_ns: int, lasts_ms: int) -> dict[str, Any]:
    """Return an alert of Alertmanager's API v2. Its labels are equal while it fires and when it is resolved."""
    labels = {
        "alertname": _name(alert),
        "severity": alert.severity,
        "source": alert.source,
        "agent": alert.agent,
        "session": alert.session,
        "detail": alert.detail,
        "alert": alert.alert,
    }
    annotations = {
        "summary": alert_summary(alert),
        "status": alert.status,
        "count": str(alert.count),
        "suppressed": str(alert.suppressed),
        "exchange": alert.exchange,
        "resolved_by": alert.resolved_by,
    }
    ends_ns = stored_ns if alert.status == "resolved" else stored_ns + lasts_ms * 1_000_000
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: value for name, value in annotations.items() if value},
        "startsAt": _iso_time(alert.since_ns),
        "endsAt": _iso_time(ends_ns),
        **({"generatorURL": link} if link else {}),
    }


def _iso_time(time_ns: int) -> str:
    return (_EPOCH + timedelta(microseconds=time_ns // 1000)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _name(alert: Alert) -> str:
    return alert.event.removeprefix(f"{ROOT}.")


def _mrkdwn(text: str) -> dict[str, Any]:
    # Verbatim: only explicit markup becomes a link, a channel or a mention.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _escaped(text: str) -> str:
    # The three characters with a special meaning in Slack's mrkdwn.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"{name[:_MOST_CHARACTERS]}…"


def _quoted(text: str) -> str:
    """Return text as code on one line, in which nothing is formatted and nobody is mentioned."""
    return f"`{_escaped(''.join(char if char.isprintable() and char != '`' else '?' for char in text))}`"
