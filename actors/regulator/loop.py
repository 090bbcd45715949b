"""The closed loop of one agent: adjustments on trial, when a weight may move, and by how much. Pure.

Of a cycle comes one change at most: an adjustment that did not help is undone before another is made. What every
history of decisions must keep to: ``per_day`` in all within any ``day_ms``, ``cooldown_ms`` between two changes of a
weight, ``BOUNDS`` and ``FLOORS``; and a revert takes back what was applied, to the last decimal, as far as a setting
that was changed since has left room for it.
"""

from collections.abc import Mapping

import msgspec

from actors.regulator.judging import Judged, Trial, judge
from actors.regulator.pressures import READING, Opinion, pressures_of, since
from actors.regulator.settings import RegulatorSettings
from actors.regulator.window import Counts, Slices, total, within
from schemas.event import Event
from schemas.persistent import Map
from schemas.vocabulary.regulator import (
    BOUNDS,
    FLOORS,
    Adjusted,
    Confirmed,
    CycleCompleted,
    Outcome,
    Pressure,
    Reverted,
)

_DECIMAL = 0.000001
"""The last decimal of a weight."""

_NS_PER_MS = 1_000_000


class Move(msgspec.Struct, frozen=True):
    """A change of a weight, by its size."""

    at_ns: int
    size: float


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """What the regulator knows of an agent.

    ``weights`` are those in force with its latest decision, as far as they concern regulation. ``scheduled``: a cycle
    is due. ``offsets`` are what regulation adds to the settings; ``changed_ns`` when a weight was changed last;
    ``moves`` the changes of the last day; ``factors`` what the next change of a weight is multiplied by, where not 1.
    ``consulted_ns`` is when a weight was changed last because of reflection, ``seen_ns`` when anything was last heard
    of the agent.
    """

    slices: Slices = ()
    weights: Map[str, float] = Map()
    scheduled: bool = False
    opinion: Opinion | None = None
    offsets: Map[str, float] = Map()
    trials: tuple[Trial, ...] = ()
    changed_ns: Map[str, int] = Map()
    moves: tuple[Move, ...] = ()
    factors: Map[str, float] = Map()
    consulted_ns: int = 0
    seen_ns: int = 0


def cycle(loop: Loop, now_ns: int, settings: RegulatorSettings) -> tuple[Event, ...]:
    """Return what a cycle comes to: judgements, one change of a weight at most, and its summary, which comes last."""
    counts = seen(loop, now_ns, settings)
    enough = counts.decisions >= settings.decisions_needed
    judged = judge(loop.trials, counts, loop.opinion, now_ns, settings)
    confirmed = [_confirmed(loop, each) for each in judged if each.verdict is None]
    failed = [each for each in judged if each.verdict is not None and _is_ours(loop, each.trial.parameter)]
    pressures = _pressures(loop, counts, now_ns, settings) if enough else ()
    change = _change(loop, failed, pressures, [each.parameter for each in confirmed], now_ns, settings)
    summary = CycleCompleted(
        decisions=counts.decisions,
        pressures=pressures,
        outcome=_outcome(counts, enough, pressures, change),
        wake_after_ms=settings.period_ms if counts.decisions else 0,
    )
    return (*confirmed, *([change] if change is not None else []), summary)


def _pressures(loop: Loop, counts: Counts, now_ns: int, settings: RegulatorSettings) -> tuple[Pressure, ...]:
    return pressures_of(counts, _heard(loop, now_ns, settings), settings, reads=READING in loop.weights)


def seen(loop: Loop, now_ns: int, settings: RegulatorSettings) -> Counts:
    """Return what the window holds."""
    return total(within(loop.slices, now_ns, settings.window_ms * _NS_PER_MS, width_ns(settings)))


def width_ns(settings: RegulatorSettings) -> int:
    """Return how long a slice of the window is, in nanoseconds."""
    return max(1, settings.window_ms * _NS_PER_MS // settings.slices)


def limits(parameter: str, weights: Mapping[str, float]) -> tuple[float, float]:
    """Return the least and the greatest value that a weight may be led to."""
    least, most = BOUNDS[parameter]
    floor = weights.get(FLOORS.get(parameter, ""))
    return (least if floor is None else max(least, floor)), most


def adjusted(loop: Loop, event: Adjusted, now_ns: int, settings: RegulatorSettings) -> Loop:
    """Return the loop with an adjustment on trial."""
    trial = Trial(event.parameter, event.delta, event.pressure, event.metric_before, now_ns)
    moved = _moved(loop, event, now_ns, settings)
    return msgspec.structs.replace(moved, trials=(*_without(loop, event.parameter), trial))


def reverted(loop: Loop, event: Reverted, now_ns: int, settings: RegulatorSettings) -> Loop:
    """Return the loop with an adjustment undone; where it had made things worse, the next one is half as large."""
    moved = _moved(loop, event, now_ns, settings)
    factors = loop.factors
    if event.verdict == "worse":
        factors = factors.set(event.parameter, loop.factors.get(event.parameter, 1.0) / 2)
    return msgspec.structs.replace(moved, trials=_without(loop, event.parameter), factors=factors)


def confirmed(loop: Loop, event: Confirmed) -> Loop:
    """Return the loop with an adjustment that stays: the next one of its weight is whole again."""
    factors = loop.factors.delete(event.parameter) if event.parameter in loop.factors else loop.factors
    return msgspec.structs.replace(loop, trials=_without(loop, event.parameter), factors=factors)


def _heard(loop: Loop, now_ns: int, settings: RegulatorSettings) -> Opinion | None:
    """Return a fresh opinion, of the time since it last led to a change: what was wrong before may be mended."""
    opinion = loop.opinion
    if opinion is None or now_ns - opinion.at_ns > settings.window_ms * _NS_PER_MS:
        return None
    return since(opinion, loop.consulted_ns, settings.opinions_needed) if loop.consulted_ns else opinion


def _confirmed(loop: Loop, judged: Judged) -> Confirmed:
    trial = judged.trial
    assert judged.metric is not None
    return Confirmed(
        parameter=trial.parameter,
        delta=trial.delta,
        offset=loop.offsets.get(trial.parameter, 0.0),
        pressure=trial.pressure,
        metric_before=trial.metric_before,
        metric_after=judged.metric,
    )


def _change(
    loop: Loop,
    failed: list[Judged],
    pressures: tuple[Pressure, ...],
    freed: list[str],
    now_ns: int,
    settings: RegulatorSettings,
) -> Adjusted | Reverted | None:
    """Return the one change of a cycle: the worst failure undone, else the worst pressure answered that can be."""
    spent = _spent(loop, now_ns, settings)
    room = settings.per_day - spent
    for each in failed:
        # One that is larger than the allowance, which was lowered since, is undone on a day of its own.
        fits = not spent or abs(each.trial.delta) <= room + _DECIMAL / 2
        if fits and not _cooling(loop, each.trial.parameter, now_ns, settings):
            return _revert(loop, each)
    if failed:
        return None
    for pressure in pressures:
        change = _adjust(loop, pressure, room, freed, now_ns, settings)
        if change is not None:
            return change
    return None


def _revert(loop: Loop, judged: Judged) -> Reverted:
    trial, verdict = judged.trial, judged.verdict
    assert verdict is not None
    before, (least, most) = loop.weights.get(trial.parameter, 0.0), limits(trial.parameter, loop.weights)
    after, delta = _rounded(before - trial.delta), -trial.delta
    if not least <= after <= most:
        # Another setting has brought the weight nearer to its bound since.
        after = min(max(after, least), most)
        delta = _rounded(after - before)
    return Reverted(
        parameter=trial.parameter,
        before=before,
        after=after,
        delta=delta,
        offset=_rounded(loop.offsets.get(trial.parameter, 0.0) + delta),
        pressure=trial.pressure,
        metric_before=trial.metric_before,
        metric_after=judged.metric,
        verdict=verdict,
    )


def _adjust(
    loop: Loop, pressure: Pressure, room: float, freed: list[str], now_ns: int, settings: RegulatorSettings
) -> Adjusted | None:
    parameter = pressure.parameter
    before = loop.weights.get(parameter)
    on_trial = any(trial.parameter == parameter for trial in loop.trials) and parameter not in freed
    if before is None or on_trial or _cooling(loop, parameter, now_ns, settings):
        return None
    if not _is_ours(loop, parameter):
        return None
    least, most = limits(parameter, loop.weights)
    whole = min(settings.gain * pressure.severity, settings.per_day)
    factor = 1.0 if parameter in freed else loop.factors.get(parameter, 1.0)
    # Halving ends at the least step, or a weight that went wrong a few times would never be moved again.
    size = max(whole * factor, min(whole, settings.least_step))
    requested = _rounded(pressure.sign * size)
    allowed = min(size, room, most - before if pressure.sign > 0 else before - least)
    delta = _towards_zero(pressure.sign * allowed)
    if abs(delta) < max(settings.least_step, _DECIMAL):
        return None
    return Adjusted(
        parameter=parameter,
        before=before,
        after=_rounded(before + delta),
        delta=delta,
        requested=requested,
        offset=_rounded(loop.offsets.get(parameter, 0.0) + delta),
        pressure=pressure.name,
        metric_before=pressure.metric,
    )


def _outcome(
    counts: Counts, enough: bool, pressures: tuple[Pressure, ...], change: Adjusted | Reverted | None
) -> Outcome:
    if change is not None:
        return "adjusted" if isinstance(change, Adjusted) else "reverted"
    if not enough:
        return "too_few_decisions" if counts.decisions else "idle"
    return "held" if pressures else "no_pressure"


def _is_ours(loop: Loop, parameter: str) -> bool:
    # Beyond its limits an operator has set a weight, and it is left alone: what is to be undone waits until it is back.
    least, most = limits(parameter, loop.weights)
    return least <= loop.weights.get(parameter, least) <= most


def _cooling(loop: Loop, parameter: str, now_ns: int, settings: RegulatorSettings) -> bool:
    changed_ns = loop.changed_ns.get(parameter)
    return changed_ns is not None and now_ns - changed_ns < settings.cooldown_ms * _NS_PER_MS


def _spent(loop: Loop, now_ns: int, settings: RegulatorSettings) -> float:
    return sum(move.size for move in loop.moves if now_ns - move.at_ns < settings.day_ms * _NS_PER_MS)


def _moved(loop: Loop, event: Adjusted | Reverted, now_ns: int, settings: RegulatorSettings) -> Loop:
    kept = tuple(move for move in loop.moves if now_ns - move.at_ns < settings.day_ms * _NS_PER_MS)
    offsets = loop.offsets
    if event.offset:
        offsets = offsets.set(event.parameter, event.offset)
    elif event.parameter in offsets:
        offsets = offsets.delete(event.parameter)
    return msgspec.structs.replace(
        loop,
        # Until the next decision tells: two cycles may follow each other without one.
        weights=loop.weights.set(event.parameter, event.after),
        offsets=offsets,
        changed_ns=loop.changed_ns.set(event.parameter, now_ns),
        moves=(*kept, Move(now_ns, abs(event.delta))),
        consulted_ns=now_ns if event.pressure == "reflection" else loop.consulted_ns,
    )


def _without(loop: Loop, parameter: str) -> tuple[Trial, ...]:
    return tuple(trial for trial in loop.trials if trial.parameter != parameter)


def _rounded(value: float) -> float:
    return round(value, 6) + 0.0


def _towards_zero(value: float) -> float:
    """Return the value to 6 decimals, never larger than it is: rounding must not lead beyond a bound."""
    rounded = _rounded(value)
    if abs(rounded) <= abs(value) + 1e-9:
        return rounded
    return _rounded(rounded - 1e-6 if value > 0 else rounded + 1e-6)
