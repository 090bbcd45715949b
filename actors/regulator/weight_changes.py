"""Chooses the one change of a cycle, and its size. Pure.

A cycle looks at an agent's latest routing decisions. A *pressure* is a fault of theirs that a weight of the router may
correct; an *adjustment* changes a weight a little, in one step or a *series* of steps that are judged together.
``parameter`` is always the name of a weight.

The change is the first of these that is possible: undo an adjustment that did not help; continue a series; correct the
worst pressure that can be corrected; fade a correction by a step back, if its cause seems gone.
"""

from collections.abc import Sequence

import msgspec

from actors.regulator.agent_record import (
    AgentRecord,
    direction,
    is_cooling,
    is_resting,
    is_within_limits,
    limits,
    spent_today,
    trial_of,
)
from actors.regulator.decision_window import Counts
from actors.regulator.pressures import metric_of, remedies_for, rounded
from actors.regulator.settings import RegulatorSettings
from actors.regulator.trial_outcome import Judged
from schemas.persistent import Map
from schemas.vocabulary.regulator import Adjusted, Held, Pressure, Reverted, Verdict

_DECIMAL = 0.000001
"""The smallest difference between two weights."""

_MOST_DOUBLINGS = 4
"""How often the time after which a correction fades can double."""

_NS_PER_MS = 1_000_000


def revert_failed(
    record: AgentRecord, failed: Sequence[Judged], now_ns: int, settings: RegulatorSettings
) -> Reverted | None:
    """Return the revert of the latest step of the first failed adjustment whose weight may be changed now."""
    used = spent_today(record, now_ns, settings)
    room = settings.per_day - used
    for each in failed:
        # If the setting ``per_day`` was lowered since, the step may exceed it. It is then undone on a day without other
        # changes.
        fits = not used or abs(each.trial.deltas[-1]) <= room + _DECIMAL / 2
        if fits and not is_cooling(record, each.trial.parameter, now_ns, settings):
            return _revert(record, each)
    return None


def is_blocked(record: AgentRecord, failed: Sequence[Judged], now_ns: int, settings: RegulatorSettings) -> bool:
    """Whether a revert waits only for room within ``per_day``, which other changes must then not use up."""
    return any(not is_cooling(record, each.trial.parameter, now_ns, settings) for each in failed)


def next_step(
    record: AgentRecord, judged: Judged, pressure: Pressure, now_ns: int, settings: RegulatorSettings
) -> Adjusted | Held:
    """Return the next step of a series, or why there is none."""
    trial = judged.trial
    continued = msgspec.structs.replace(pressure, parameter=trial.parameter, sign=1 if trial.deltas[0] > 0 else -1)
    # Each step is twice as large as the one before, so that a few of them cross a range in which the weight has no
    # effect.
    factor = record.factors.get(trial.parameter, 1.0) * float(1 << len(trial.deltas))
    found = _step(record, continued, factor, now_ns, settings)
    if not isinstance(found, Adjusted):
        return found
    return msgspec.structs.replace(found, metric_before=trial.metric_before, step=len(trial.deltas) + 1)


def correct_pressure(
    record: AgentRecord, pressure: Pressure, confirmed: Sequence[str], now_ns: int, settings: RegulatorSettings
) -> Adjusted | Held:
    """Return the change of the first weight that may be moved to correct a pressure; else why the first may not.

    ``confirmed`` are the weights whose adjustments were just confirmed.
    """
    if pressure.held:
        return pressure.held
    first: Held = "no_weight"
    for index, (parameter, sign) in enumerate(remedies_for(pressure)):
        held = _why_held(record, pressure, parameter, confirmed, now_ns, settings)
        if not held:
            factor = 1.0 if parameter in confirmed else record.factors.get(parameter, 1.0)
            chosen = msgspec.structs.replace(pressure, parameter=parameter, sign=sign)
            found = _step(record, chosen, factor, now_ns, settings)
            if isinstance(found, Adjusted):
                return found
            held = found
        first = held if index == 0 or first == "no_weight" else first
    return first


def fade_correction(record: AgentRecord, counts: Counts, now_ns: int, settings: RegulatorSettings) -> Adjusted | None:
    """Return a step back of the correction that was needed least recently; None if none may be made."""
    for _, parameter in sorted(_may_fade(record, now_ns, settings)):
        found = _step_back(record, parameter, counts, now_ns, settings)
        if found is not None:
            return found
    return None


def _may_fade(record: AgentRecord, now_ns: int, settings: RegulatorSettings) -> list[tuple[int, str]]:
    """Return the corrections that may fade, each with the time when it was last needed (Unix nanoseconds)."""
    found = []
    for parameter, offset in _in_force(record).items():
        if (
            parameter not in record.causes
            or trial_of(record, parameter) is not None
            or not is_within_limits(record, parameter)
        ):
            continue
        pressed_ns = record.pressed_ns.get(direction((parameter, 1 if offset > 0 else -1)), 0)
        since_ns = max(record.led_ns.get(parameter, 0), pressed_ns)
        fade_after_ns = (settings.fade_after_ms * _NS_PER_MS) << min(record.returned.get(parameter, 0), _MOST_DOUBLINGS)
        if now_ns - since_ns >= fade_after_ns and not is_cooling(record, parameter, now_ns, settings):
            found.append((since_ns, parameter))
    return found


def _in_force(record: AgentRecord) -> Map[str, float]:
    """Return the part of the corrections that is in force: a changed setting may put a part of them out of bounds."""
    return record.offsets if record.in_force is None else record.in_force


def _step_back(
    record: AgentRecord, parameter: str, counts: Counts, now_ns: int, settings: RegulatorSettings
) -> Adjusted | None:
    """Return an adjustment that takes back part of a weight's correction; None if none may be made now."""
    offset, before, cause = _in_force(record)[parameter], record.weights.get(parameter), record.causes[parameter]
    size = min(abs(offset), settings.per_day, settings.per_day - spent_today(record, now_ns, settings))
    delta = towards_zero(-size if offset > 0 else size)
    if before is None or abs(delta) < min(settings.least_step, abs(offset)):
        return None
    least, most = limits(parameter, record.weights)
    if not least <= rounded(before + delta) <= most:
        return None
    metric = metric_of(cause, counts, settings)
    return Adjusted(
        parameter=parameter,
        before=before,
        after=rounded(before + delta),
        delta=delta,
        requested=delta,
        offset=rounded(offset + delta),
        pressure=cause,
        metric_before=0.0 if metric is None else metric,
        fading=True,
    )


def _why_held(
    record: AgentRecord,
    pressure: Pressure,
    parameter: str,
    confirmed: Sequence[str],
    now_ns: int,
    settings: RegulatorSettings,
) -> Held:
    """Return why a weight may not be moved for a pressure now; empty if it may."""
    if parameter not in record.weights:
        return "no_weight"
    if not is_within_limits(record, parameter):
        return "beyond_bounds"
    if trial_of(record, parameter) is not None and parameter not in confirmed:
        return "on_trial"
    if is_cooling(record, parameter, now_ns, settings):
        return "cooling"
    return "resting" if is_resting(record, pressure.name, parameter, now_ns, settings) else ""


def _step(
    record: AgentRecord, pressure: Pressure, factor: float, now_ns: int, settings: RegulatorSettings
) -> Adjusted | Held:
    """Return a step of the weight that corrects a pressure, or why none can be made."""
    parameter = pressure.parameter
    before = record.weights.get(parameter)
    if before is None:
        return "no_weight"
    if not is_within_limits(record, parameter):
        return "beyond_bounds"
    least, most = limits(parameter, record.weights)
    room, room_to_limit = (
        settings.per_day - spent_today(record, now_ns, settings),
        most - before if pressure.sign > 0 else before - least,
    )
    full_size = min(settings.gain * pressure.severity, settings.per_day)
    # Halving stops at the least step. Otherwise a weight that went wrong a few times would never be moved again.
    size = min(max(full_size * factor, min(full_size, settings.least_step)), settings.per_day)
    delta = towards_zero(pressure.sign * min(size, room, room_to_limit))
    least_step = max(settings.least_step, _DECIMAL)
    if abs(delta) < least_step:
        return "too_small" if size < least_step else "at_bound" if room_to_limit < least_step else "day_spent"
    return Adjusted(
        parameter=parameter,
        before=before,
        after=rounded(before + delta),
        delta=delta,
        requested=rounded(pressure.sign * size),
        offset=rounded(record.offsets.get(parameter, 0.0) + delta),
        pressure=pressure.name,
        metric_before=pressure.metric,
    )


def _revert(record: AgentRecord, judged: Judged) -> Reverted:
    """Return the revert of the latest step of a judged adjustment."""
    trial = judged.trial
    before, (least, most) = record.weights.get(trial.parameter, 0.0), limits(trial.parameter, record.weights)
    after, delta = rounded(before - trial.deltas[-1]), -trial.deltas[-1]
    if not least <= after <= most:
        # A setting changed since has brought the weight nearer to its bound.
        after = min(max(after, least), most)
        delta = rounded(after - before)
    return Reverted(
        parameter=trial.parameter,
        before=before,
        after=after,
        delta=delta,
        offset=rounded(record.offsets.get(trial.parameter, 0.0) + delta),
        pressure=trial.pressure,
        metric_before=trial.metric_before,
        metric_after=judged.metric,
        verdict=_verdict(judged),
        steps_left=len(trial.deltas) - 1,
    )


def _verdict(judged: Judged) -> Verdict:
    outcome = judged.outcome
    assert outcome != "helped", "what has helped is not undone"
    assert outcome != "onward", "what goes on is not undone"
    return outcome


def towards_zero(value: float) -> float:
    """Return a value to 6 decimals, never farther from 0 than it is: rounding must not lead beyond a bound."""
    nearest = rounded(value)
    if abs(nearest) <= abs(value) + 1e-9:
        return nearest
    return rounded(nearest - 1e-6 if value > 0 else nearest + 1e-6)
