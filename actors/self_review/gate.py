"""The gate: which ticks are reviewed, what a review records, and when the next review is possible. Pure.

A *tick* is one finished exchange, or one step of an external engine; a signal is a number of it, such as its affect
(how exciting and unpleasant it is). A *seat* is a review's verdict on an entity (a memory in a prompt). In events an
agent is a ``citizen``. A signal fires if it exceeds its record (its highest value in the window) by more than one
median absolute deviation. A review arms the gate: no other review fires until it is resolved, which is when the latest
scores since are all good and the agent is calm (its criticality, that is how tense it is, is low). An agent whose
prompts are never that good would stay armed for ever. So a review also lapses, once all ticks that it was measured
against have left the window.
"""

from collections.abc import Iterable

from actors.self_review.agent_state import PARTS, SIGNALS, AgentState, TickScores, record_of, scores_since_review
from actors.self_review.modes import active_modes, weight_of
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

LEAST_MARGIN = 1e-6
"""Least margin above a record; it is also added to deviations, so that nothing is divided by zero."""


def events_of(
    agent: str, time_ns: int, state: AgentState, tick: Tick, tick_scores: TickScores, settings: SelfReviewSettings
) -> tuple[Event, ...]:
    """Return the events of a tick: those of a review, those of a resolution, or none."""
    if state.armed:
        return _resolution(agent, state, tick_scores, settings)
    if len(state.past) < settings.warm_up:
        return ()
    # Few values exceed their record. Only for these is the deviation computed.
    if not any(_fires(state, index, value, settings) for index, value in enumerate(tick_scores.signals)):
        return ()
    return tuple(_review(agent, time_ns, state, tick, tick_scores, settings))


def _fires(state: AgentState, index: int, value: float, settings: SelfReviewSettings) -> bool:
    record = record_of(state, index, settings)
    return value > record and value > record + max(deviation(state.ordered[index]), LEAST_MARGIN)


def _resolution(
    agent: str, state: AgentState, tick_scores: TickScores, settings: SelfReviewSettings
) -> tuple[Event, ...]:
    scores = scores_since_review(state, tick_scores, settings)
    good = len(scores) >= settings.scores_needed and all(score > settings.good_above for score in scores)
    # If no prompt of the agent is known, nothing can be scored, and calm alone decides.
    unscored = not scores and state.unscored + 1 >= settings.scores_needed
    number = state.ticks + 1
    if not (good or unscored) or tick_scores.criticality >= settings.calm_below:
        if state.waited + 1 < settings.lapse_ticks:
            return ()
        return (SelfReviewDisarmed(citizen=agent, tick=number, reason="lapsed"),)
    return (
        SelfReviewDisarmed(citizen=agent, tick=number),
        Resolved(citizen=agent, tick=number, recent_scores=scores, criticality=tick_scores.criticality),
    )


def _reading(
    state: AgentState, index: int, tick: Tick, tick_scores: TickScores, settings: SelfReviewSettings
) -> SignalReading:
    value, ordered, record = tick_scores.signals[index], state.ordered[index], record_of(state, index, settings)
    middle, spread = median(ordered), deviation(ordered)
    margin = max(spread, LEAST_MARGIN)
    return SignalReading(
        value=value,
        record=record,
        guard=round(margin, 6),
        median=round(middle, 6),
        mad=round(spread, 6),
        normalised=round(normalised(value, middle, spread, LEAST_MARGIN), 6),
        weight=weight_of(SIGNALS[index], active_modes(tick.modes, settings), settings),
        fired=_fires(state, index, value, settings),
    )


def _review(
    agent: str, time_ns: int, state: AgentState, tick: Tick, tick_scores: TickScores, settings: SelfReviewSettings
) -> Iterable[Event]:
    number = state.ticks + 1
    readings: dict[Signal, SignalReading] = {
        signal: _reading(state, index, tick, tick_scores, settings) for index, signal in enumerate(SIGNALS)
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
    if tick_scores.grade is not None:
        yield _result(agent, number, tick_scores, tick_scores.grade)
    yield SelfReviewMeasured(
        citizen=agent,
        tick=number,
        signals=readings,
        parts=_parts(state, tick_scores.grade),
        modes={mode: round(activation, 6) for mode, activation in tick.modes.items()},
        criticality=tick_scores.criticality,
    )
    if tick_scores.grade is not None:
        yield from _seats(agent, number, tick, tick_scores, tick_scores.grade, settings)


def _result(agent: str, number: int, tick_scores: TickScores, grade: Grade) -> SelfReviewResult:
    swap = tick_scores.swap
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
    agent: str, number: int, tick: Tick, tick_scores: TickScores, grade: Grade, settings: SelfReviewSettings
) -> Iterable[SeatAdded]:
    """Yield the seats of a review. A swap lowers the worth of one entity as much as it raises that of the other."""
    context = tuple(sorted(tick.stimulus_compared) or tick.stimulus_terms)[: settings.seat_terms]

    def seat(entity: str, kind: SeatType, value: float) -> SeatAdded:
        return SeatAdded(citizen=agent, tick=number, entity=entity, seat_type=kind, value=value, context=context)

    if tick_scores.swap is not None:
        yield seat(tick_scores.swap.out, "metacog_negative", -tick_scores.swap.gain / MICRO)
        yield seat(tick_scores.swap.into, "metacog_positive", tick_scores.swap.gain / MICRO)
    quality = round(grade.score / MICRO - settings.good_above, 6)
    for each in tick.chosen:
        yield seat(each.id, "metacog_quality", quality)


def _parts(state: AgentState, grade: Grade | None) -> dict[str, Reading]:
    """Return the parts of a score, each compared with those of the latest scored ticks."""
    if grade is None:
        return {}
    rows = [each.parts for each in state.past if each.parts]
    found = {}
    for index, name in enumerate(PARTS):
        ordered = tuple(sorted(row[index] for row in rows))
        value, middle, spread = getattr(grade, name) / MICRO, median(ordered), deviation(ordered)
        found[name] = Reading(
            value=value,
            median=round(middle, 6),
            mad=round(spread, 6),
            normalised=round(normalised(value, middle, spread, LEAST_MARGIN), 6),
        )
    return found
