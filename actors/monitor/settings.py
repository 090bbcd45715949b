"""The monitor's settings: its window, and what is healthy.

A mode is how the router decides to answer: in substance (RESPOND), by asking back (CLARIFY), after looking things up
(ACT), by a brief word (ACKNOWLEDGE), or not at all (IGNORE).
"""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.settings.unreachable_settings import at_most
from schemas.vocabulary.router import Mode

Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
"""A number of decisions."""


class Range(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The healthy shares of a mode, [``low``, ``high``].

    A share below ``red_below`` or above ``red_above`` is a red flag; ``sign_below`` and ``sign_above`` say of what it
    is a symptom.

    Raises:
        ValueError: a red flag within the healthy range. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    low: Unit
    high: Unit
    red_below: Unit = 0.0
    red_above: Unit = 1.0
    sign_below: str = ""
    sign_above: str = ""

    def __post_init__(self) -> None:
        """Refuse limits in the wrong order."""
        if not self.red_below <= self.low <= self.high <= self.red_above:
            raise ValueError("a monitored range must satisfy red_below <= low <= high <= red_above")


HEALTHY: dict[Mode, Range] = {
    "RESPOND": Range(
        low=0.50, high=0.75, red_below=0.40, red_above=0.85, sign_below="under-committing", sign_above="overconfident"
    ),
    "CLARIFY": Range(
        low=0.08,
        high=0.20,
        red_below=0.03,
        red_above=0.30,
        sign_below="never clarifying",
        sign_above="over-questioning",
    ),
    "ACT": Range(
        low=0.05, high=0.15, red_below=0.02, red_above=0.25, sign_below="ACT death", sign_above="over-processing"
    ),
    "ACKNOWLEDGE": Range(
        low=0.03,
        high=0.12,
        red_below=0.01,
        red_above=0.20,
        sign_below="ignoring social cues",
        sign_above="trivializing",
    ),
    "IGNORE": Range(low=0.0, high=0.02, red_above=0.05, sign_above="dropping messages"),
}
"""Mode -> its healthy range and red flags; "ACT death" is that ACT is hardly ever chosen."""


class MonitorSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the monitor judges by. "Above" and "below" are strict.

    Attributes:
        decisions: Number of latest decisions that are judged, none older than ``window_ms``.
        window_ms: Age at which a decision is not judged any more.
        decisions_needed: Decisions below which nothing is judged.
        hysteresis: How far inside a limit a measure must be to count as back, at most a quarter of its possible span.
        ranges: The healthy shares of each mode.
        tie_breaker_above: Share above which ambiguous decisions (two modes had nearly the same score) are reported.
        misroute_above: Share above which misroutes (decisions that the next input shows to be wrong) are reported.
        missed_act_above: Share above which decisions that should have been ACT are reported.
        entropy_below: Normalised entropy of the modes below which it is reported.
        agents: Agents that a partition keeps. If there are more, an eighth is dropped: first the healthy ones without a
            decision for the longest time, then others.
    """

    decisions: Count = 200
    window_ms: Milliseconds = 24 * 3_600_000
    decisions_needed: Annotated[Count, at_most("decisions")] = 30
    hysteresis: Unit = 0.02
    ranges: dict[Mode, Range] = msgspec.field(default_factory=HEALTHY.copy)
    tie_breaker_above: Unit = 0.20
    misroute_above: Unit = 0.10
    missed_act_above: Unit = 0.05
    entropy_below: Unit = 0.35
    agents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000
