"""Whether an agent's routing stays healthy. Owner: ``monitor``."""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Unit
from schemas.vocabulary.router import Mode

Side = Literal["above", "below"]
"""On which side of a limit a measure lies."""

Rate = Literal["tie_breaker", "misroute", "missed_act", "mode_entropy"]
"""A share of the window's decisions, or how evenly their modes are spread (``mode_entropy``).

``tie_breaker``: two modes scored nearly the same. ``misroute``: the next input, or feedback, showed that another mode
was right. ``missed_act``: that mode was ACT.
"""

Count = Annotated[int, msgspec.Meta(ge=0)]


class ModeOutOfRange(Event, frozen=True, kw_only=True, tag="forged_id.monitor.mode_out_of_range"):
    """A mode's share of the last ``decisions`` is outside its healthy range, ``low`` to ``high``; no red flag."""

    mode: Mode
    share: Unit
    side: Side
    low: Unit
    high: Unit
    decisions: Count


class ModeRedFlag(Event, frozen=True, kw_only=True, tag="forged_id.monitor.mode_red_flag"):
    """A mode's share is beyond ``limit``; ``sign`` names what that is a symptom of, such as ``overconfident``."""

    mode: Mode
    share: Unit
    side: Side
    limit: Unit
    sign: str
    decisions: Count


class ModeInRange(Event, frozen=True, kw_only=True, tag="forged_id.monitor.mode_in_range"):
    """A mode's share is back in its healthy range: ends ``mode_out_of_range`` and ``mode_red_flag``."""

    mode: Mode
    share: Unit
    low: Unit
    high: Unit
    decisions: Count


class RateExceeded(Event, frozen=True, kw_only=True, tag="forged_id.monitor.rate_exceeded"):
    """A rate is beyond its threshold: mode entropy below it, the other rates above."""

    rate: Rate
    value: Unit
    side: Side
    threshold: Unit
    decisions: Count


class RateRecovered(Event, frozen=True, kw_only=True, tag="forged_id.monitor.rate_recovered"):
    """A rate is back on the right side of its threshold."""

    rate: Rate
    value: Unit
    threshold: Unit
    decisions: Count


MonitorConfigured, MonitorFailed = own_events("monitor")

_entry = partial(Entry, owner="monitor", scope=Scope.AGENT)

ENTRIES = (
    _entry(
        meaning="A mode's share of an agent's decisions left its healthy range.",
        sample=ModeOutOfRange(mode="CLARIFY", share=0.25, side="above", low=0.08, high=0.2, decisions=200),
        severity=Severity.WARNING,
        grouping=Grouping(fields=("mode",), copied_fields=("mode", "share", "side", "low", "high")),
        ended_by=(ModeInRange, ModeRedFlag),
    ),
    _entry(
        meaning="A mode's share of an agent's decisions is far out of its healthy range.",
        sample=ModeRedFlag(mode="RESPOND", share=0.9, side="above", limit=0.85, sign="overconfident", decisions=200),
        severity=Severity.CRITICAL,
        grouping=Grouping(fields=("mode",), copied_fields=("mode", "share", "side", "limit")),
        ended_by=(ModeInRange, ModeOutOfRange),
    ),
    _entry(
        meaning="A mode's share of an agent's decisions is back in its healthy range.",
        sample=ModeInRange(mode="RESPOND", share=0.7, low=0.5, high=0.75, decisions=200),
    ),
    _entry(
        meaning="A rate of an agent's routing passed its threshold.",
        sample=RateExceeded(rate="misroute", value=0.15, side="above", threshold=0.1, decisions=200),
        severity=Severity.WARNING,
        grouping=Grouping(fields=("rate",), copied_fields=("rate", "value", "side", "threshold")),
        ended_by=(RateRecovered,),
    ),
    _entry(
        meaning="A rate of an agent's routing is back on the right side of its threshold.",
        sample=RateRecovered(rate="misroute", value=0.05, threshold=0.1, decisions=200),
    ),
    *own_entries(
        MonitorConfigured,
        MonitorFailed,
        owner="monitor",
        scope=Scope.AGENT,
        then="nothing else waits for it",
        failed_topic="forged_id.router.mode_selected",
        severity=Severity.WARNING,
    ),
)
