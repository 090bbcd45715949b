"""One cycle of an agent's feedback loop: judge the adjustments on trial, then change one weight at most. Pure.

A cycle, once a day, looks at the routing decisions of the last day. A *pressure* is a fault of theirs that a weight of
the router may correct; a *series* is several steps of one weight that are judged together; *fading* takes a correction
back. ``parameter`` is always the name of a weight.

A cycle undoes an adjustment that did not help before it makes another (``weight_changes``). These invariants hold for
every history of decisions: by the settings, all changes within any ``day_ms`` add up to ``per_day`` at most, and
``cooldown_ms`` lie between two changes of a weight; weights stay within the ``BOUNDS`` and ``FLOORS`` of
``schemas.vocabulary.regulator``. A revert takes back exactly what was applied, unless a setting that has changed since
leaves no room for it. A series of adjustments is undone step by step, the latest first.
"""

import msgspec

from actors.regulator.agent_record import AgentRecord, Move, direction, is_within_limits, rest_key, trial_of
from actors.regulator.decision_window import Counts, total, within
from actors.regulator.pressures import Opinion, opinion_since, pressures_of, remedies_for
from actors.regulator.settings import RegulatorSettings
from actors.regulator.trial_outcome import Judged, Trial, judge
from actors.regulator.weight_changes import correct_pressure, fade_correction, is_blocked, next_step, revert_failed
from schemas.event import Event
from schemas.vocabulary.regulator import Adjusted, Confirmed, CycleCompleted, Held, Outcome, Pressure, Reverted

NO_CHANGE_NEEDED: frozenset[Held] = frozenset(("no_cue", "no_evidence", "within_chance"))
"""Reasons why a pressure needs no change of any weight: no input gave occasion for the missing mode, nobody missed it,
or it may be chance. The other reasons only hold a change back."""

_NS_PER_MS = 1_000_000


class _Change(msgspec.Struct, frozen=True):
    """The change of a cycle, if any, and the pressures, each with the reason why it was not corrected."""

    event: Adjusted | Reverted | None
    pressures: tuple[Pressure, ...]


def cycle_events(record: AgentRecord, now_ns: int, settings: RegulatorSettings) -> tuple[Event, ...]:
    """Return the events of a cycle: judgements, at most one change of a weight, and last the cycle's summary."""
    counts = counts_in_window(record, now_ns, settings)
    enough = counts.decisions >= settings.decisions_needed
    pressures = (
        pressures_of(counts, fresh_opinion(record, now_ns, settings), settings, record.weights) if enough else ()
    )
    present = {each.name for each in pressures if each.held not in NO_CHANGE_NEEDED}
    judged = judge(record.trials, counts, record.opinion, present, now_ns, settings)
    helped = [each for each in judged if each.outcome == "helped"]
    change = _change(record, counts, judged, pressures, enough, now_ns, settings)
    summary = CycleCompleted(
        decisions=counts.decisions,
        pressures=change.pressures,
        outcome=_outcome(counts, enough, pressures, change.event),
        wake_after_ms=settings.period_ms if counts.decisions else 0,
    )
    return (
        *(_confirmation(record, each) for each in helped),
        *([change.event] if change.event is not None else []),
        summary,
    )


def counts_in_window(record: AgentRecord, now_ns: int, settings: RegulatorSettings) -> Counts:
    """Return the counts within the window."""
    return total(within(record.slices, now_ns, settings.window_ms * _NS_PER_MS, slice_width_ns(settings)))


def slice_width_ns(settings: RegulatorSettings) -> int:
    """Return how long a slice of the window is, in nanoseconds."""
    return max(1, settings.window_ms * _NS_PER_MS // settings.slices)


def fresh_opinion(record: AgentRecord, now_ns: int, settings: RegulatorSettings) -> Opinion | None:
    """Return reflection's opinion if it is no older than the window; else None. It sums up a model's second opinions.

    Decisions before the last change that an opinion led to are left out, since that change may have helped.
    """
    opinion = record.opinion
    if opinion is None or now_ns - opinion.at_ns > settings.window_ms * _NS_PER_MS:
        return None
    return opinion_since(opinion, record.consulted_ns, settings.opinions_needed) if record.consulted_ns else opinion


def with_adjustment(record: AgentRecord, event: Adjusted, now_ns: int, settings: RegulatorSettings) -> AgentRecord:
    """Return the record with an adjustment on trial, or with one more step of a series."""
    series = trial_of(record, event.parameter) if event.step > 1 else None
    earlier = series.deltas if series is not None else ()
    trial = Trial(
        event.parameter, (*earlier, event.delta), event.pressure, event.metric_before, now_ns, fading=event.fading
    )
    moved = _with_change(record, event, now_ns, settings)
    if not event.fading:
        # Fading takes back part of an earlier correction, whose cause is kept.
        away_from_zero = event.offset * event.delta > 0
        causes = moved.causes.set(event.parameter, event.pressure) if away_from_zero else moved.causes
        moved = msgspec.structs.replace(moved, causes=causes, led_ns=moved.led_ns.set(event.parameter, now_ns))
    return msgspec.structs.replace(moved, trials=(*_without_trial(record, event.parameter), trial))


def with_reversion(record: AgentRecord, event: Reverted, now_ns: int, settings: RegulatorSettings) -> AgentRecord:
    """Return the record with an adjustment undone, or the latest step of a series.

    If the adjustment had made things worse, the next one is half as large. If a whole series did not help, its pressure
    leaves the weight alone for a while. If fading brought the pressure back, the weight fades later.
    """
    trial = trial_of(record, event.parameter)
    moved = _with_change(record, event, now_ns, settings)
    moved = msgspec.structs.replace(moved, led_ns=moved.led_ns.set(event.parameter, now_ns))
    others = _without_trial(record, event.parameter)
    if trial is not None and event.steps_left:
        left = msgspec.structs.replace(
            trial, deltas=trial.deltas[: event.steps_left], at_ns=now_ns, verdict=event.verdict
        )
        return msgspec.structs.replace(moved, trials=(*others, left))
    factors, returned, resting_ns = record.factors, record.returned, record.resting_ns
    if trial is not None and trial.fading:
        returned = returned.set(event.parameter, returned.get(event.parameter, 0) + 1)
    elif event.verdict == "worse":
        factors = factors.set(event.parameter, factors.get(event.parameter, 1.0) / 2)
    if trial is not None and trial.verdict is not None and event.verdict == "no_improvement":
        resting_ns = resting_ns.set(rest_key(event.pressure, event.parameter), now_ns)
    return msgspec.structs.replace(moved, trials=others, factors=factors, returned=returned, resting_ns=resting_ns)


def with_confirmation(record: AgentRecord, event: Confirmed) -> AgentRecord:
    """Return the record with a confirmed adjustment; the next one of its weight has full size again."""
    trials = _without_trial(record, event.parameter)
    if event.fading:
        returned = record.returned.delete(event.parameter) if event.parameter in record.returned else record.returned
        return msgspec.structs.replace(record, trials=trials, returned=returned)
    factors = record.factors.delete(event.parameter) if event.parameter in record.factors else record.factors
    return msgspec.structs.replace(record, trials=trials, factors=factors)


def with_cycle(record: AgentRecord, event: CycleCompleted, now_ns: int) -> AgentRecord:
    """Return the record after a cycle: which weights were called for, and in which direction."""
    pressed = record.pressed_ns
    for pressure in event.pressures:
        if pressure.held in NO_CHANGE_NEEDED:
            continue
        for remedy in {*remedies_for(pressure), *([(pressure.parameter, pressure.sign)] if pressure.parameter else [])}:
            pressed = pressed.set(direction(remedy), now_ns)
    return msgspec.structs.replace(record, pressed_ns=pressed, scheduled=event.wake_after_ms > 0)


def _change(
    record: AgentRecord,
    counts: Counts,
    judged: list[Judged],
    pressures: tuple[Pressure, ...],
    enough: bool,
    now_ns: int,
    settings: RegulatorSettings,
) -> _Change:
    """Return the one change of a cycle; ``enough``: there were enough decisions to judge anything."""
    failed = [each for each in judged if each.failed and is_within_limits(record, each.trial.parameter)]
    by_name = {each.name: each for each in pressures}
    next_of_series: Adjusted | None = None
    for each in judged:
        if each.outcome != "onward" or each.trial.pressure not in by_name:
            continue
        step = next_step(record, each, by_name[each.trial.pressure], now_ns, settings)
        if isinstance(step, Adjusted):
            next_of_series = next_of_series or step
        elif step == "at_bound":
            # No further step is possible, and the steps made did not help.
            failed.append(each._replace(outcome="no_improvement"))
    event: Adjusted | Reverted | None = revert_failed(record, failed, now_ns, settings)
    if event is None and is_blocked(record, failed, now_ns, settings):
        return _Change(None, _all_held(pressures, "day_spent"))
    event = event or next_of_series
    if event is not None:
        return _Change(event, _all_held(pressures, "behind_a_worse_one", event))
    confirmed = [each.trial.parameter for each in judged if each.outcome == "helped"]
    handled: list[Pressure] = []
    for pressure in pressures:
        found: Adjusted | Held = "behind_a_worse_one"
        if event is None:
            found = correct_pressure(record, pressure, confirmed, now_ns, settings)
        if isinstance(found, Adjusted):
            event = found
            handled.append(_with_weight_moved(pressure, found))
        else:
            handled.append(msgspec.structs.replace(pressure, held=pressure.held or found))
    if event is None and enough:
        event = fade_correction(record, counts, now_ns, settings)
    return _Change(event, tuple(handled))


def _confirmation(record: AgentRecord, judged: Judged) -> Confirmed:
    trial = judged.trial
    return Confirmed(
        parameter=trial.parameter,
        delta=trial.delta,
        offset=record.offsets.get(trial.parameter, 0.0),
        pressure=trial.pressure,
        metric_before=trial.metric_before,
        # No second opinion mentions the faded correction: then nothing was measured of it, and it counts as no worse.
        metric_after=trial.metric_before if judged.metric is None else judged.metric,
        fading=trial.fading,
    )


def _all_held(
    pressures: tuple[Pressure, ...], held: Held, event: Adjusted | Reverted | None = None
) -> tuple[Pressure, ...]:
    """Return the pressures with the reason why they are not corrected, except the one that ``event`` corrects."""
    return tuple(
        _with_weight_moved(each, event)
        if isinstance(event, Adjusted) and event.pressure == each.name
        else msgspec.structs.replace(each, held=each.held or held)
        for each in pressures
    )


def _with_weight_moved(pressure: Pressure, event: Adjusted) -> Pressure:
    return msgspec.structs.replace(pressure, parameter=event.parameter, sign=1 if event.delta > 0 else -1, held="")


def _outcome(
    counts: Counts, enough: bool, pressures: tuple[Pressure, ...], change: Adjusted | Reverted | None
) -> Outcome:
    if change is not None:
        return "adjusted" if isinstance(change, Adjusted) else "reverted"
    if not enough:
        return "too_few_decisions" if counts.decisions else "idle"
    return "held" if pressures else "no_pressure"


def _with_change(
    record: AgentRecord, event: Adjusted | Reverted, now_ns: int, settings: RegulatorSettings
) -> AgentRecord:
    kept = tuple(move for move in record.moves if now_ns - move.at_ns < settings.day_ms * _NS_PER_MS)
    offsets, causes, returned = record.offsets, record.causes, record.returned
    if event.offset:
        offsets = offsets.set(event.parameter, event.offset)
    elif event.parameter in offsets:
        # The correction is gone, so what was kept about it is dropped.
        offsets = offsets.delete(event.parameter)
        causes = causes.delete(event.parameter) if event.parameter in causes else causes
        returned = returned.delete(event.parameter) if event.parameter in returned else returned
    return msgspec.structs.replace(
        record,
        # The next decision will record the weights. Two cycles may follow each other without a decision between them.
        weights=record.weights.set(event.parameter, event.after),
        offsets=offsets,
        in_force=None,
        causes=causes,
        returned=returned,
        changed_ns=record.changed_ns.set(event.parameter, now_ns),
        moves=(*kept, Move(now_ns, abs(event.delta))),
        consulted_ns=now_ns if event.pressure == "reflection" else record.consulted_ns,
    )


def _without_trial(record: AgentRecord, parameter: str) -> tuple[Trial, ...]:
    return tuple(trial for trial in record.trials if trial.parameter != parameter)
