"""What has become of an adjustment on trial: whether its metric has fallen since, by what was seen after it. Pure.

What is measured of decisions lies after the adjustment because the settings say so (``judge_after_ms``); what a second
opinion is about is told by the time of the decisions, however much later it was had.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from actors.regulator.pressures import Opinion, metric_of, since
from actors.regulator.settings import RegulatorSettings
from actors.regulator.window import Counts
from schemas.vocabulary.regulator import PressureName, Verdict

_NS_PER_MS = 1_000_000


class Trial(msgspec.Struct, frozen=True):
    """An adjustment that is not judged yet: what was applied at ``at_ns``, because of which pressure."""

    parameter: str
    delta: float
    pressure: PressureName
    metric_before: float
    at_ns: int


class Judged(NamedTuple):
    """An adjustment that is judged, by its metric (None: not to be measured); without a verdict it has helped."""

    trial: Trial
    metric: float | None
    verdict: Verdict | None


def judge(
    trials: Sequence[Trial], counts: Counts, opinion: Opinion | None, now_ns: int, settings: RegulatorSettings
) -> list[Judged]:
    """Return the adjustments that are due and can be told of, by the decisions of the window and the latest opinion."""
    due = (trial for trial in trials if now_ns - trial.at_ns >= settings.judge_after_ms * _NS_PER_MS)
    judged = (_judged(trial, _metric(trial, counts, opinion, settings), now_ns, settings) for trial in due)
    return [each for each in judged if each is not None]


def _metric(trial: Trial, counts: Counts, opinion: Opinion | None, settings: RegulatorSettings) -> float | None:
    if trial.pressure == "reflection":
        later = since(opinion, trial.at_ns, settings.opinions_needed) if opinion is not None else None
        return None if later is None else later.disagreement
    return metric_of(trial.pressure, counts, settings) if counts.decisions >= settings.decisions_needed else None


def _judged(trial: Trial, metric: float | None, now_ns: int, settings: RegulatorSettings) -> Judged | None:
    """Return what has become of an adjustment; None while there is nothing to tell by."""
    if metric is None:
        overdue = now_ns - trial.at_ns >= settings.evidence_within_ms * _NS_PER_MS
        return Judged(trial, None, "unmeasured") if overdue else None
    if metric < trial.metric_before * settings.improved_below:
        return Judged(trial, metric, None)
    return Judged(trial, metric, "worse" if metric > trial.metric_before else "no_improvement")
