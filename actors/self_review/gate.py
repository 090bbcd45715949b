"""The gate: which ticks are reviewed, what a review records, and when the gate opens again. Pure.

A signal fires if it exceeds its record by more than one median absolute deviation. A review arms the gate: no other
review fires until it is resolved, which is when the latest scores since are all good and the agent is calm. An agent
whose prompts are never that good would stay armed for ever. So a review also lapses, once all ticks that it was
measured against have left the window.
"""

from collections.abc import Iterable

from actors.self_review.agent_state import PARTS, SIGNALS, AgentState, TickScores, record_of, scores_with
from actors.self_review.modes import active_of, weight_of
from actors.self_review.rolling_median import deviation, median, normalised
from actors.self_review.score import Grade
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.similarity import MICRO
from actors.self_review.tick import Tick
from schemas.event import Event
from schemas.intake.timestamps import to_milliseconds
from schemas.vocabulary.self_review import (
    Counterfactual,
    Dimensions,
    Reading,
    Resolved,
    SeatAdded,
    SeatsApplied,
    SeatType,
    SelfReviewDisarmed,
    SelfReviewMeasured,
    SelfReviewResult,
    SelfReviewTriggered,
    Signal,
    SignalReading,
    Signals,
)

GUARD_FLOOR = 1e-6
"""Least margin above a record, and least deviation, so that nothing is divided by zero."""


def events_of(
    agent: str, time_ns: int, mind: AgentState, tick: Tick, seen: TickScores, settings: SelfReviewSettings
) -> tuple[Event, ...]:
    """Return the events of a tick: those of a review, those of a resolution, or none."""
    if mind.armed:
        return _resolution(agent, mind, seen, settings)
    if len(mind.past) < settings.warm_up:
        return ()
    # Few values exceed their record. Only for these is the deviation computed.
    if not any(_fires(mind, place, value, settings) for place, value in enumerate(seen.signals)):
        return ()
    return tuple(_review(agent, time_ns, mind, tick, seen, settings))


def _fires(mind: AgentState, place: int, value: float, settings: SelfReviewSettings) -> bool:
    record = record_of(mind, place, settings)
    return value > record and value > record + max(deviation(mind.ordered[place]), GUARD_FLOOR)


def _resolution(agent: str, mind: AgentState, seen: TickScores, settings: SelfReviewSettings) -> tuple[Event, ...]:
    scores = scores_with(mind, seen, settings)
    good = len(scores) >= settings.scores_needed and all(score > settings.good_above for score in scores)
    # If no prompt of the agent is known, nothing can be scored, and calm alone decides.
    unseen = not scores and mind.unscored + 1 >= settings.scores_needed
    number = mind.ticks + 1
    if not (good or unseen) or seen.criticality >= settings.calm_below:
        if mind.waited + 1 < settings.lapse_ticks:
            return ()
        return (SelfReviewDisarmed(citizen=agent, tick=number, reason="lapsed"),)
    return (
        SelfReviewDisarmed(citizen=agent, tick=number),
        Resolved(citizen=agent, tick=number, recent_scores=scores, criticality=seen.criticality),
    )


def _reading(mind: AgentState, place: int, tick: Tick, seen: TickScores, settings: SelfReviewSettings) -> SignalReading:
    value, ordered, record = seen.signals[place], mind.ordered[place], record_of(mind, place, settings)
    middle, spread = median(ordered), deviation(ordered)
    guard = max(spread, GUARD_FLOOR)
    return SignalReading(
        value=value,
        record=record,
        guard=round(guard, 6),
        median=round(middle, 6),
        mad=round(spread, 6),
        normalised=round(normalised(value, middle, spread, GUARD_FLOOR), 6),
        weight=weight_of(SIGNALS[place], active_of(tick.modes, settings), settings),
        fired=_fires(mind, place, value, settings),
    )


def _review(
    agent: str,
    time_ns: int,
    mind: AgentState,
    tick: Tick,
    seen: TickScores,
    settings: SelfReviewSettings,
) -> Iterable[Event]:
    number = mind.ticks + 1
    readings: dict[Signal, SignalReading] = {
        signal: _reading(mind, place, tick, seen, settings) for place, signal in enumerate(SIGNALS)
    }
    fired = [signal for signal in SIGNALS if readings[signal].fired]
    fired.sort(key=lambda signal: -readings[signal].weight * readings[signal].value)
    yield SelfReviewTriggered(
        citizen=agent,
        tick=number,
        reasons=tuple(f"{signal}_record" for signal in fired),
        metrics=Signals(**{signal: readings[signal].value for signal in SIGNALS}),
        timestamp=to_milliseconds(time_ns),
    )
    if seen.grade is not None:
        yield _result(agent, number, seen, seen.grade)
    yield SelfReviewMeasured(
        citizen=agent,
        tick=number,
        signals=readings,
        parts=_parts(mind, seen.grade),
        modes={mode: round(activation, 6) for mode, activation in tick.modes.items()},
        criticality=seen.criticality,
    )
    if seen.grade is not None:
        yield from _seats(agent, number, tick, seen, seen.grade, settings)


def _result(agent: str, number: int, seen: TickScores, grade: Grade) -> SelfReviewResult:
    swap = seen.swap
    gain = swap.gain / MICRO if swap is not None else 0.0
    return SelfReviewResult(
        citizen=agent,
        tick=number,
        score=grade.score / MICRO,
        dimensions=Dimensions(
            relevance=grade.relevance / MICRO,
            energy_consistency=grade.energy_consistency / MICRO,
            redundancy=grade.redundancy / MICRO,
            diversity=grade.diversity / MICRO,
            outcome_prior=grade.outcome_prior / MICRO,
        ),
        regret=gain,
        counterfactual=Counterfactual(
            swapped_out=swap.out if swap is not None else "",
            swapped_in=swap.into if swap is not None else "",
            score_improvement=gain,
        ),
        seats_applied=SeatsApplied(
            negative=(swap.out,) if swap is not None else (), positive=(swap.into,) if swap is not None else ()
        ),
    )


def _seats(
    agent: str, number: int, tick: Tick, seen: TickScores, grade: Grade, settings: SelfReviewSettings
) -> Iterable[SeatAdded]:
    """Yield the seats of a review. A swap lowers the worth of one entity and raises that of the other alike."""

    context = tuple(sorted(tick.stimulus_telling) or tick.stimulus_terms)[: settings.seat_terms]

    def seat(entity: str, kind: SeatType, value: float) -> SeatAdded:
        return SeatAdded(citizen=agent, tick=number, entity=entity, seat_type=kind, value=value, context=context)

    if seen.swap is not None:
        yield seat(seen.swap.out, "metacog_negative", -seen.swap.gain / MICRO)
        yield seat(seen.swap.into, "metacog_positive", seen.swap.gain / MICRO)
    quality = round(grade.score / MICRO - settings.good_above, 6)
    for each in tick.chosen:
        yield seat(each.id, "metacog_quality", quality)


def _parts(mind: AgentState, grade: Grade | None) -> dict[str, Reading]:
    """Return the parts of a score, each compared with those of the latest scored ticks."""
    if grade is None:
        return {}
    rows = [each.parts for each in mind.past if each.parts]
    found = {}
    for place, name in enumerate(PARTS):
        ordered = tuple(sorted(row[place] for row in rows))
        value, middle, spread = getattr(grade, name) / MICRO, median(ordered), deviation(ordered)
        found[name] = Reading(
            value=value,
            median=round(middle, 6),
            mad=round(spread, 6),
            normalised=round(normalised(value, middle, spread, GUARD_FLOOR), 6),
        )
    return found
