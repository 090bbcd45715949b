"""Alerts as rows and lines, and which of them are still firing. Pure."""

from collections.abc import Iterable, Mapping

import msgspec
from rich.text import Text

from deploy.cli.rendering.event_rows import time_text
from deploy.cli.rendering.layout.printable import printable_struct
from events.decoding import Recorded, decode
from events.log import Stored
from schemas.event import ROOT, topic_of
from schemas.vocabulary.alerts import Alert, SeverityName, Status
from schemas.wording.alert_summary import alert_summary

_STYLES: Mapping[SeverityName, str] = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_FROM_MOST_SEVERE = tuple(_STYLES)
"""The severities, the most severe first."""


class AlertShown(msgspec.Struct, frozen=True, kw_only=True):
    """An alert at its place in the log: the fields of ``schemas.vocabulary.alerts.Alert``, its subject, when it was
    stored, and its text.

    An alert (``alert``, its id) is about a group of ``count`` similar events: who appended them (``source``), their
    subject (``event``), the first and the latest of them (``first_seq``, ``since_ns``; ``cause_seq``, ``last_ns``;
    times are Unix nanoseconds), and the latest one's ``figures`` (numbers and codes). ``detail`` is what else the group
    has in common, ``summary`` a sentence. ``suppressed`` counts alerts that a rate limit has held back since the one
    before. ``resolved_by`` is the subject that ended it, empty while it fires.
    """

    seq: int
    time: str
    topic: str
    alert: str
    status: Status
    severity: SeverityName
    source: str
    event: str
    summary: str
    figures: dict[str, str]
    agent: str
    session: str
    exchange: str
    detail: str
    count: int
    suppressed: int
    since_ns: int
    last_ns: int
    first_seq: int
    cause_seq: int
    resolved_by: str


def alert_of(stored: Stored) -> AlertShown | None:
    """Return a message of the log as an alert; None if it is no alert, or cannot be read."""
    found = decode(stored)
    if not isinstance(found, Recorded) or not isinstance(found.message.event, Alert):
        return None
    alert = found.message.event
    time = time_text(stored.time_ns)
    fields = {name: getattr(alert, name) for name in alert.__struct_fields__}
    return AlertShown(seq=stored.seq, time=time, topic=topic_of(alert), summary=alert_summary(alert), **fields)


class _AnyAlert(msgspec.Struct, frozen=True):
    """The fields that an alert has in every release."""

    alert: str
    status: str


class UnreadableAlerts:
    """Collects alerts that this release cannot read, such as those of a later release.

    Attributes:
        count: How many there are.
        first: Where the first one is, and why it cannot be read.
        open: Those that fire, or may fire: the alert's id (``sequence N`` if that cannot be read) -> its sequence.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self.open: dict[str, int] = {}

    def take(self, stored: Stored) -> None:
        """Note an alert of the log, readable or not."""
        found = decode(stored)
        try:
            readable = msgspec.json.decode(stored.data, type=_AnyAlert)
        except (msgspec.DecodeError, UnicodeDecodeError):
            readable = _AnyAlert(f"sequence {stored.seq}", "firing")
        self.open.pop(readable.alert, None)
        if isinstance(found, Recorded):
            return
        self.count += 1
        self.first = self.first or f"at sequence {stored.seq}: {found.detail}"
        if readable.status != "resolved":
            self.open[readable.alert] = stored.seq

    @property
    def open_text(self) -> str:
        """How many of them fire, or may: the end of a sentence about the alerts that fire; empty if none does."""
        if not self.open:
            return ""
        return f"; {len(self.open)} cannot be read, the first at sequence {min(self.open.values())}"


def is_severe_enough(alert: AlertShown, least: SeverityName) -> bool:
    """Whether an alert's severity is ``least`` or higher."""
    return _FROM_MOST_SEVERE.index(alert.severity) <= _FROM_MOST_SEVERE.index(least)


def still_firing(alerts: Iterable[AlertShown]) -> list[AlertShown]:
    """Return the latest event of each alert that is not resolved, in the order of the log."""
    latest: dict[str, AlertShown] = {}
    for each in alerts:
        latest.pop(each.alert, None)
        if each.status == "firing":
            latest[each.alert] = each
    return list(latest.values())


def line_of(alert: AlertShown) -> Text:
    """Return an alert on one line."""
    alert = printable_struct(alert)
    style = "green" if alert.status == "resolved" else _STYLES[alert.severity]
    line = Text().append(f"{alert.seq:>8} {alert.time[:19].replace('T', ' ')} ", "dim")
    line.append(f"{alert.severity:<8} {alert.status:<8} ", style)
    line.append(alert.event.removeprefix(f"{ROOT}."), "bold")
    labels = " ".join(f"{name}={value}" for name, value in _labels(alert) if value)
    line.append(f" x{alert.count}" if alert.count > 1 else "").append(f" {labels}" if labels else "", "dim")
    line.append(f": {alert.summary}")
    if alert.resolved_by:
        line.append(f" (resolved by {alert.resolved_by.removeprefix(f'{ROOT}.')})", "green")
    if alert.suppressed:
        line.append(f" ({alert.suppressed} held back before this)", "yellow")
    return line


def _labels(alert: AlertShown) -> tuple[tuple[str, str], ...]:
    return ("agent", alert.agent), ("session", alert.session), ("of", alert.detail)
