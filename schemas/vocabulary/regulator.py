"""The router's weights, corrected slowly and within bounds. Owner: ``regulator``, alone in moving them."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Severity, own_entries, own_events
from schemas.event import Event, Unit, Wake

BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "RESPOND.base": (0.30, 0.70),
        "CLARIFY.base": (0.10, 0.50),
        "ACT.base": (0.05, 0.40),
        "ACKNOWLEDGE.base": (0.0, 0.30),
        "respond.answerable": (0.10, 0.50),
        "respond.task": (0.10, 0.50),
        "clarify.underspecified": (0.60, 1.80),
        "act.recall": (0.45, 1.35),
        "acknowledge.social": (0.45, 1.35),
        "respond.warmth_boost": (0.05, 0.40),
        "respond.cold_penalty": (0.05, 0.30),
        "clarify.cold_boost": (0.10, 0.40),
        "clarify.warm_penalty": (0.05, 0.35),
        "act.question_moderate_context": (0.05, 0.35),
        "act.implicit_reference": (0.05, 0.30),
        "acknowledge.greeting": (0.30, 0.80),
        "acknowledge.question_penalty": (0.10, 0.50),
        "tiebreaker_base_margin": (0.08, 0.30),
    }
)
"""Every weight that may be regulated -> the least and the greatest value that regulation may give it.

The router's profiles ``calibrated`` and ``seed`` lack the weights for what a text is, such as ``respond.task``: there
these bounds have no effect.
"""

FLOORS: Mapping[str, str] = MappingProxyType({"tiebreaker_base_margin": "tiebreaker_min_margin"})
"""Regulated weight -> another weight that it may not fall below."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Step = Annotated[int, msgspec.Meta(ge=1)]
"""The number of an adjustment in a series of them, from 1."""

PressureName = Literal[
    "tie_breaker", "act_under_use", "act_over_use", "respond_over_use", "respond_under_use", "clarify_over_use",
    "clarify_under_use", "acknowledge_over_use", "acknowledge_under_use", "ignore_over_use", "missed_clarify",
    "missed_act", "under_engagement", "reflection", "mode_entropy",
]  # fmt: skip
"""What is wrong with an agent's routing; ``actors.regulator.pressures`` has the conditions.

Over and under use: a mode's share of the decisions is too large or too small. ``tie_breaker``: too many decisions in
which two modes scored nearly the same. ``missed_clarify``, ``missed_act``, ``under_engagement``: feedback showed too
many wrong modes, most of them of this kind (``schemas.vocabulary.router.Feedback``). ``reflection``: a model's second
opinions keep differing. ``mode_entropy``: one mode is chosen nearly always.
"""

Outcome = Literal["idle", "too_few_decisions", "no_pressure", "held", "adjusted", "reverted"]
"""The result of a cycle; ``held``: there is a pressure, but its weight may not be moved now."""

Held = Literal[
    "", "no_weight", "no_cue", "no_evidence", "within_chance", "at_bound", "beyond_bounds", "on_trial", "cooling",
    "resting", "too_small", "day_spent", "behind_a_worse_one",
]  # fmt: skip
"""Why a pressure moved nothing in its cycle; empty: it did.

``no_weight``: no weight of the router acts on it. ``no_cue``: the inputs gave no occasion for the missing mode.
``no_evidence``: nobody missed that mode. ``within_chance``: the decisions are so few that it may be chance.
``beyond_bounds``: an operator has set the weight outside its ``BOUNDS``. ``on_trial``: its last change is not judged
yet. ``cooling``: it was changed too lately. ``resting``: moving it did not help, so that it is left alone for a while.
``too_small``: the change called for could not be told from chance. ``day_spent``: the change that one day allows is
used up. ``behind_a_worse_one``: the cycle's one change was for another pressure.
"""

Verdict = Literal["no_improvement", "worse", "unmeasured"]
"""Why an adjustment was undone; ``unmeasured``: its effect could not be measured for too long."""


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure beyond its threshold.

    ``severity`` is how far beyond, as a share of the greatest possible distance. ``metric`` is what an adjustment for
    it is judged by: the lower the better. ``parameter`` is the weight that reduces it when moved in the direction of
    ``sign``; empty: none does. ``held`` says why the weight was not moved.
    """

    name: PressureName
    value: float
    threshold: float
    severity: Unit
    metric: float
    parameter: str
    sign: Literal[-1, 1]
    held: Held = ""


class RegulatorScheduled(Event, frozen=True, kw_only=True, tag="forged_id.regulator.scheduled"):
    """When the agent's next cycle is due, now that it decides again.

    ``offsets`` are the sums of all changes so far, by weight, for routers that have lost them.
    """

    wake_after_ms: Wake
    offsets: dict[str, float] = msgspec.field(default_factory=dict)


class CycleCompleted(Event, frozen=True, kw_only=True, tag="forged_id.regulator.cycle_completed"):
    """A look at the agent's latest routing decisions, worst pressure first; it moved one weight at most.

    ``wake_after_ms`` of 0: nothing was decided lately, and the next decision schedules the next cycle.
    """

    decisions: Count
    pressures: tuple[Pressure, ...]
    outcome: Outcome
    wake_after_ms: Wake


class Adjusted(Event, frozen=True, kw_only=True, tag="forged_id.regulator.adjusted"):
    """A weight of the agent's router, ``parameter``, moves, on trial, because of ``pressure``.

    ``metric_before`` is that pressure's metric before the adjustment. ``delta`` = ``after`` - ``before`` is what was
    applied of the ``requested`` change. ``offset`` is the sum of all that was applied; routers add less of it where an
    operator has since changed the setting so that a bound would be passed. ``step`` is its number in a series of
    adjustments, which is judged as one, by the metric before its first step. ``fading``: it takes back a part of an
    earlier correction whose cause seems gone; it is undone if the pressure returns.
    """

    parameter: str
    before: float
    after: float
    delta: float
    requested: float
    offset: float
    pressure: PressureName
    metric_before: float
    step: Step = 1
    fading: bool = False


class Reverted(Event, frozen=True, kw_only=True, tag="forged_id.regulator.reverted"):
    """An adjustment is undone, exactly: ``delta`` is the negative of what had been applied.

    It is less where an operator has since set the weight so near to a bound that it would be passed. Of a series the
    latest step still in force is undone; ``steps_left`` more follow, one by one, each after the time it took to make.
    ``metric_after`` is the metric of ``pressure`` now, None where it could not be measured; the other fields are as in
    ``regulator.adjusted``.
    """

    parameter: str
    before: float
    after: float
    delta: float
    offset: float
    pressure: PressureName
    metric_before: float
    metric_after: float | None
    verdict: Verdict
    steps_left: Count = 0


class Confirmed(Event, frozen=True, kw_only=True, tag="forged_id.regulator.confirmed"):
    """An adjustment, or a series of them, has helped and stays; one that was ``fading`` has done no harm.

    Its fields are as in ``regulator.adjusted`` and ``regulator.reverted``.
    """

    parameter: str
    delta: float
    offset: float
    pressure: PressureName
    metric_before: float
    metric_after: float
    fading: bool = False


RegulatorConfigured, RegulatorFailed = own_events("regulator")

_entry = partial(Entry, owner="regulator", scope=Scope.AGENT)

ENTRIES = (
    _entry(
        meaning="When the next look at an agent's routing is due.",
        sample=RegulatorScheduled(wake_after_ms=86_400_000, offsets={"RESPOND.base": -0.02}),
    ),
    _entry(
        meaning="A look at an agent's latest routing decisions: its pressures, and what was done.",
        sample=CycleCompleted(
            decisions=60,
            pressures=(
                Pressure(
                    name="respond_over_use",
                    value=0.85,
                    threshold=0.75,
                    severity=0.4,
                    metric=0.85,
                    parameter="RESPOND.base",
                    sign=-1,
                ),
            ),
            outcome="adjusted",
            wake_after_ms=86_400_000,
        ),
    ),
    _entry(
        meaning="A weight of an agent's router moves, within bounds and on trial.",
        sample=Adjusted(
            parameter="RESPOND.base",
            before=0.4,
            after=0.38,
            delta=-0.02,
            requested=-0.02,
            offset=-0.02,
            pressure="respond_over_use",
            metric_before=0.85,
        ),
    ),
    _entry(
        meaning="An adjustment of a router weight is undone.",
        sample=Reverted(
            parameter="RESPOND.base",
            before=0.38,
            after=0.4,
            delta=0.02,
            offset=0.0,
            pressure="respond_over_use",
            metric_before=0.85,
            metric_after=0.86,
            verdict="worse",
        ),
    ),
    _entry(
        meaning="An adjustment of a router weight has helped and stays.",
        sample=Confirmed(
            parameter="RESPOND.base",
            delta=-0.02,
            offset=-0.02,
            pressure="respond_over_use",
            metric_before=0.85,
            metric_after=0.7,
        ),
    ),
    *own_entries(
        RegulatorConfigured,
        RegulatorFailed,
        owner="regulator",
        scope=Scope.AGENT,
        then="nothing else waits for it",
        failed_topic="forged_id.clock.fired",
        severity=Severity.WARNING,
    ),
)
