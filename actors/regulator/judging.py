"""What has become of an adjustment on trial: whether its metric has fallen since, by what was seen after it. Pure.

What is measured of decisions lies after the adjustment because the settings say so (``judge_after_ms``); what a second
opinion is about is told by the time of the decisions, however much later it was had.

A series is judged by the metric before its first step. While the pressure lasts, nothing has become worse and there are
steps left, it goes on: one step may be too small to change a single decision.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import msgspec

from actors.regulator.pressures import Opinion, chance, metric_of, since
from actors.regulator.settings import RegulatorSettings
from actors.regulator.window import Counts
from schemas.vocabulary.regulator import PressureName, Verdict

_NS_PER_MS = 1_000_000

Outcome = Literal["helped", "onward", "no_improvement", "worse", "unmeasured"]
"""What a trial has come to: it stays, its series goes on, or it is undone for a ``Verdict``."""


class Trial(msgspec.Struct, frozen=True):
    """An adjustment that is not judged yet, or a series of them: what was applied, because of which pressure.

    ``deltas`` are its steps that stand, ``at_ns`` when the latest was made or undone. ``fading``: it takes back a part
    of an earlier correction. ``verdict``: it is being undone for that, a step at a time.
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
        """What its steps come to."""
        return round(sum(self.deltas), 6) + 0.0


class Judged(NamedTuple):
    """An adjustment that is judged, by its metric (None: not to be measured)."""

    trial: Trial
    metric: float | None
    outcome: Outcome

    @property
    def failed(self) -> bool:
        """Whether it is to be undone."""
        return self.outcome not in ("helped", "onward")


def judge(
    trials: Sequence[Trial],
    counts: Counts,
    opinion: Opinion | None,
    pressing: Collection[PressureName],
    now_ns: int,
    settings: RegulatorSettings,
) -> list[Judged]:
    """Return the adjustments that are due and can be told of, by the decisions of the window and the latest opinion.

    ``pressing`` are the pressures that there are now.
    """
    found = []
    for trial in trials:
        if now_ns - trial.at_ns < settings.judge_after_ms * _NS_PER_MS:
            continue
        metric = _metric(trial, counts, opinion, settings)
        outcome = _outcome(trial, metric, counts, trial.pressure in pressing, now_ns, settings)
        if outcome is not None:
            found.append(Judged(trial, metric, outcome))
    return found


def _metric(trial: Trial, counts: Counts, opinion: Opinion | None, settings: RegulatorSettings) -> float | None:
    if trial.pressure == "reflection":
        later = since(opinion, trial.at_ns, settings.opinions_needed) if opinion is not None else None
        return None if later is None else later.disagreement
    return metric_of(trial.pressure, counts, settings) if counts.decisions >= settings.decisions_needed else None


def _outcome(
    trial: Trial, metric: float | None, counts: Counts, presses: bool, now_ns: int, settings: RegulatorSettings
) -> Outcome | None:
    """Return what has become of an adjustment; None while there is nothing to tell by."""
    if trial.verdict is not None:
        return trial.verdict
    if metric is None:
        overdue = now_ns - trial.at_ns >= settings.evidence_within_ms * _NS_PER_MS
        # Of what second opinions had asked for, none speaks any more: that is what a fading waits to hear.
        unheard: Outcome = "helped" if trial.fading and trial.pressure == "reflection" else "unmeasured"
        return unheard if overdue else None
    if trial.fading:
        return "worse" if presses else "helped"
    if metric < trial.metric_before * settings.improved_below:
        return "helped"
    if metric > trial.metric_before + settings.doubt * chance(trial.pressure, counts, settings):
        return "worse"
    # What a second opinion is about are weights one by one: it has said nothing of a gap.
    if presses and trial.pressure != "reflection" and len(trial.deltas) < settings.series_steps:
        return "onward"
    return "no_improvement"
