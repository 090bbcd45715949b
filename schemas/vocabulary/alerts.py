"""Alerts: events that need a person, grouped and rate-limited. Owner: ``alerts``.

Their subjects are ``forged_id.alert.<severity>.<source>``.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Severity, own_entries, own_events
from schemas.event import ROOT, Event, Wake

Count = Annotated[int, msgspec.Meta(ge=0)]
Status = Literal["firing", "resolved"]
"""Whether what an alert is about lasts, or is over."""

SeverityName = Literal["critical", "warning", "info"]

SEVERITY_NAMES: Mapping[Severity, SeverityName] = {
    Severity.CRITICAL: "critical",
    Severity.WARNING: "warning",
    Severity.INFO: "info",
}
"""Severity -> its name in an alert's body."""

QUIET = "quiet"
"""``resolved_by`` of a group to which no event was added for a while."""

LAPSED = "lapsed"
"""``resolved_by`` of a condition whose end was not reported within the longest time that a condition stays open."""


class Alert(Event, frozen=True, kw_only=True):
    """A group of similar events that need a person: it began, goes on, or is over.

    Attributes:
        alert: Id of the group: a hash of its topic and of what it is grouped by. A group can fire again after it was
            resolved; each time is an outbreak.
        status: ``firing``, or ``resolved`` once its condition ended or it went quiet.
        severity: How urgently it needs a person.
        source: The owner of the events.
        event: Their public subject.
        figures: The latest event's numbers and codes, by the names of its fields; never people's words. A sentence is
            made of them when the alert is shown (``schemas.wording.alert_summary``): a recorded one could not be
            improved.
        agent: The agent, where the group is one agent's.
        session: The session, where the group is one session's.
        exchange: The exchange of the latest event; empty where it has none.
        detail: What else distinguishes the group from others of its topic, such as a mode or a failure's reason.
        count: Events of this outbreak so far.
        suppressed: Alerts of this severity that the rate limit has held back since the one before this.
        since_ns: When the first event of this outbreak was stored, by the server (Unix nanoseconds).
        last_ns: When the latest event was stored (Unix nanoseconds).
        first_seq: Sequence of the first event: with ``alert`` it names the outbreak.
        cause_seq: Sequence of the latest event.
        resolved_by: The subject that ended it, ``quiet`` or ``lapsed``; empty while it fires.
    """

    alert: str
    status: Status
    severity: SeverityName
    source: str
    event: str
    figures: dict[str, str] = msgspec.field(default_factory=dict)
    agent: str
    session: str
    exchange: str
    detail: str
    count: Count
    suppressed: Count
    since_ns: Count
    last_ns: Count
    first_seq: Count
    cause_seq: Count
    resolved_by: str = ""


class AlertsScheduled(Event, frozen=True, kw_only=True, tag="forged_id.alert.scheduled"):
    """When the alerts actor next looks for groups that have gone quiet; 0: there is none to look for.

    ``open_groups`` is how many there are. ``untold`` counts the events of groups that ended without an alert since the
    previous event of this type, because the rate limit held the alert back.
    """

    wake_after_ms: Wake
    open_groups: Count
    untold: Count = 0


AlertsConfigured, AlertsFailed = own_events("alerts", prefix="alert")


@cache
def alert_type(severity: Severity, source: str) -> type[Alert]:
    """Return the type of alerts of a severity about what ``source`` reports: the same type on each call."""
    name = f"{severity.value.capitalize()}{source.title().replace('_', '')}Alert"
    doc = f"An alert of severity {severity.value} about what ``{source}`` reports."
    kind = msgspec.defstruct(
        name,
        [],
        bases=(Alert,),
        module=__name__,
        namespace={"__doc__": doc},
        frozen=True,
        kw_only=True,
        tag=f"{ROOT}.alert.{severity.value}.{source}",
    )
    assert issubclass(kind, Alert)
    return kind


def _sample(severity: Severity, source: str) -> Alert:
    return alert_type(severity, source)(
        alert="0f" * 8,
        status="firing",
        severity=SEVERITY_NAMES[severity],
        source=source,
        event=f"{ROOT}.{source}.failed",
        figures={"reason": "decider_raised", "error": "ValueError"},
        agent="",
        session="",
        exchange="0" * 32,
        detail="decider_raised",
        count=1,
        suppressed=0,
        since_ns=1_761_482_096_000_000_000,
        last_ns=1_761_482_096_000_000_000,
        first_seq=7,
        cause_seq=7,
    )


ENTRIES = (
    Entry(
        owner="alerts",
        scope=Scope.GLOBAL,
        meaning="When alerts looks next for groups that have gone quiet.",
        sample=AlertsScheduled(wake_after_ms=900_000, open_groups=1),
    ),
    *own_entries(
        AlertsConfigured,
        AlertsFailed,
        owner="alerts",
        scope=Scope.GLOBAL,
        then="nothing else waits for it, and no alert tells of it",
        failed_topic="forged_id.breaker.tripped",
    ),
)

_MOST_SEVERE_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)


def alert_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries of alerts: one for each severity and owner that ``entries`` call for.

    Failures of the alerts actor itself have none: that actor could not raise them.
    """
    pairs = {(entry.severity, entry.owner) for entry in entries if entry.severity and entry.owner != "alerts"}
    return tuple(
        Entry(
            owner="alerts",
            scope=Scope.GLOBAL,
            meaning=f"A group of {severity.value} events of {source} began, goes on, or is over.",
            asks="webhook",
            sample=_sample(severity, source),
        )
        for severity, source in sorted(pairs, key=lambda pair: (_MOST_SEVERE_FIRST.index(pair[0]), pair[1]))
    )
