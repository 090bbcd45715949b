"""The outcome of an adjustment on trial: whether its metric has fallen, measured after the adjustment. Pure.

An adjustment changes a weight of the router a little, to correct a *pressure*: a fault of an agent's routing decisions,
which the metric measures.

Only what happened after the adjustment may count. For decisions, ``judge_after_ms`` ensures that. For second opinions
(a model's, on past decisions; the actor reflection asks for them), which may come much later, the time of the decisions
that they are about is compared.

A single step may be too small to change any decision. So further steps follow, as a *series*, while the pressure lasts,
the metric has not become worse, and there are steps left. A series is judged against the metric before its first step.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import msgspec

from actors.regulator.decision_window import Counts
from actors.regulator.pressures import Opinion, chance_deviation, metric_of, opinion_since, rounded
from actors.regulator.settings import RegulatorSettings
from schemas.vocabulary.regulator import PressureName, Verdict

_NS_PER_MS = 1_000_000

Outcome = Literal["helped", "onward", "no_improvement", "worse", "unmeasured"]
"""The outcome of a trial: its change stays, its series goes on (``onward``), or it is undone for a ``Verdict``."""


class Trial(msgspec.Struct, frozen=True):
    """An adjustment, or a series of them, that is not judged yet; and the pressure that it corrects.

    ``parameter`` is the name of the weight, ``metric_before`` the metric before the first step. ``deltas`` are its
    steps that are in force, ``at_ns`` the time when the latest was made or undone. ``fading``: it takes back part of an
    earlier correction. ``verdict``: why it is being undone, step by step.
    """

    parameter: str
    deltas: tuple[float, ...]
    pressure: PressureName
    metric_before: float
    at_ns: int
    fading: bool = False
    verdict: Verdict | None = None

    @property
    def delta(self) -> float:
        """The sum of its steps."""
        return rounded(sum(self.deltas))


class Judged(NamedTuple):
    """A judged adjustment, with its metric (None: it could not be measured)."""

    trial: Trial
    metric: float | None
    outcome: Outcome

    @property
    def failed(self) -> bool:
        """Whether it has to be undone."""
        return self.outcome not in ("helped", "onward")


def judge(
    trials: Sequence[Trial],
    counts: Counts,
    opinion: Opinion | None,
    present: Collection[PressureName],
    now_ns: int,
    settings: RegulatorSettings,
) -> list[Judged]:
    """Return the judgements of the trials that are due, by the window's decisions and the latest opinion.

    A trial is left out while nothing can be measured of it. ``present`` are the present pressures.
    """
    found = []
    for trial in trials:
        if now_ns - trial.at_ns < settings.judge_after_ms * _NS_PER_MS:
            continue
        metric = _metric(trial, counts, opinion, settings)
        outcome = _outcome(trial, metric, counts, trial.pressure in present, now_ns, settings)
        if outcome is not None:
            found.append(Judged(trial, metric, outcome))
    return found


def _metric(trial: Trial, counts: Counts, opinion: Opinion | None, settings: RegulatorSettings) -> float | None:
    if trial.pressure == "reflection":
        later = opinion_since(opinion, trial.at_ns, settings.opinions_needed) if opinion is not None else None
        return None if later is None else later.disagreement
    return metric_of(trial.pressure, counts, settings) if counts.decisions >= settings.decisions_needed else None


def _outcome(
    trial: Trial, metric: float | None, counts: Counts, still_present: bool, now_ns: int, settings: RegulatorSettings
) -> Outcome | None:
    """Return the outcome of a trial; None while nothing can be measured of it."""
    if trial.verdict is not None:
        return trial.verdict
    if metric is None:
        overdue = now_ns - trial.at_ns >= settings.evidence_within_ms * _NS_PER_MS
        # Reflection has no newer opinion that asks for this correction, so fading it has done no harm.
        without_measure: Outcome = "helped" if trial.fading and trial.pressure == "reflection" else "unmeasured"
        return without_measure if overdue else None
    if trial.fading:
        return "worse" if still_present else "helped"
    if metric < trial.metric_before * settings.improved_below:
        return "helped"
    if metric > trial.metric_before + settings.doubt * chance_deviation(trial.pressure, counts, settings):
        return "worse"
    # A series must cross a range in which a weight has no effect. Second opinions do not show such a range.
    if still_present and trial.pressure != "reflection" and len(trial.deltas) < settings.series_steps:
        return "onward"
    return "no_improvement"
