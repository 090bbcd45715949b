"""What calls for a person, grouped and limited. Owner: ``alerts``; subjects ``forged_id.alert.<severity>.<source>``."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Severity
from schemas.event import ROOT, Configured, Event, Failed, Wake

Count = Annotated[int, msgspec.Meta(ge=0)]
Status = Literal["firing", "resolved"]
Loudness = Literal["critical", "warning", "info"]

LOUDNESS: Mapping[Severity, Loudness] = {
    Severity.CRITICAL: "critical",
    Severity.WARNING: "warning",
    Severity.INFO: "info",
}
"""A severity as an alert's body has it."""

QUIET = "quiet"
"""``resolved_by`` of a group that nothing was added to for a while."""

LAPSED = "lapsed"
"""``resolved_by`` of a condition whose end nobody told of within the longest time that one is held open."""


class Alert(Event, frozen=True, kw_only=True):
    """A group of like events that call for a person: that it began, goes on, or is over.

    Attributes:
        alert: Names the group, from one outbreak to the next: a hash of its topic and of what it is grouped by.
        status: ``firing``, or ``resolved`` once its condition ended or it went quiet.
        severity: How loudly it calls.
        source: The owner of the events.
        event: Their public subject.
        summary: What they mean and the latest one's numbers and codes; never people's words.
        agent: The agent, where the group is one agent's.
        session: The session, where the group is one session's.
        exchange: The exchange of the latest event; empty where it has none.
        detail: What else tells the group from others of its topic, such as a mode or a failure's reason.
        count: Events of this outbreak so far.
        suppressed: Announcements of this severity that the limit has held back since the one before this.
        since_ns: When the first event of this outbreak was stored, by the server (Unix nanoseconds).
        last_ns: When the latest was.
        first_seq: Sequence of the first event: with ``alert`` it names the outbreak.
        cause_seq: Sequence of the latest.
        resolved_by: The subject that ended it, ``quiet`` or ``lapsed``; empty while it fires.
    """

    alert: str
    status: Status
    severity: Loudness
    source: str
    event: str
    summary: str
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
    """When alerts looks next for groups that have gone quiet; 0: there is none to look for.

    ``open_groups`` is how many there are. ``untold`` counts the events, since the last of these, of groups that ended
    without having been announced, because the limit held them back.
    """

    wake_after_ms: Wake
    open_groups: Count
    untold: Count = 0


class AlertsConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.alert.configured"):
    """The settings of alerts, from here on."""


class AlertsFailed(Failed, frozen=True, kw_only=True, tag="forged_id.alert.failed"):
    """A message that alerts could not decide: what it called for, nobody is told of."""


SOURCES: Mapping[Severity, tuple[str, ...]] = {
    Severity.CRITICAL: (
        "act",
        "appraisal",
        "arbiter",
        "breaker",
        "clock",
        "coherence",
        "guardrails",
        "intuition",
        "ledger",
        "memory",
        "monitor",
        "reflex",
        "responder",
        "router",
        "swarm",
    ),
    Severity.WARNING: (
        "arbiter",
        "coherence",
        "drift",
        "guardrails",
        "intuition",
        "llm",
        "monitor",
        "reflection",
        "reflex",
        "regulator",
        "self_review",
        "webhook",
    ),
    Severity.INFO: ("breaker", "delegate", "gateway", "guardrails", "operator", "self_review"),
}
"""Severity -> the owners that have events of it, ``alerts`` itself aside; a test holds it against the catalogue."""


def _alert_type(severity: Severity, source: str) -> type[Alert]:
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


ALERTS: Mapping[tuple[Severity, str], type[Alert]] = {
    (severity, source): _alert_type(severity, source) for severity, sources in SOURCES.items() for source in sources
}
"""(severity, source) -> the event type, one a subject."""


def _sample(severity: Severity, source: str) -> Alert:
    return ALERTS[severity, source](
        alert="0f" * 8,
        status="firing",
        severity=LOUDNESS[severity],
        source=source,
        event=f"{ROOT}.{source}.failed",
        summary="A message could not be decided. reason=decider_raised error=ValueError",
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
    *(
        Entry(
            event=kind,
            owner="alerts",
            scope=Scope.GLOBAL,
            meaning=f"A group of {severity.value} events of {source} began, goes on, or is over.",
            sample=_sample(severity, source),
        )
        for (severity, source), kind in ALERTS.items()
    ),
    Entry(
        event=AlertsScheduled,
        owner="alerts",
        scope=Scope.GLOBAL,
        meaning="When alerts looks next for groups that have gone quiet.",
        sample=AlertsScheduled(wake_after_ms=900_000, open_groups=1),
    ),
    Entry(
        event=AlertsConfigured,
        owner="alerts",
        scope=Scope.GLOBAL,
        meaning="Alerts decides with these settings from here on.",
        sample=AlertsConfigured(settings={}, settings_hash="0" * 64, behaviour=1),
        spontaneous=True,
    ),
    Entry(
        event=AlertsFailed,
        owner="alerts",
        scope=Scope.GLOBAL,
        meaning="Alerts could not decide a message; nothing else waits for it, and no alert tells of it.",
        sample=AlertsFailed(
            reason="decider_raised", error="ValueError", failed_seq=7, failed_topic="forged_id.breaker.tripped"
        ),
        severity=Severity.CRITICAL,
    ),
)
