"""What self-review keeps of an agent, and how a tick changes it. Pure.

A *tick* is one finished exchange, or one step of an external engine. Statistics, records (the highest value of each
signal), scores and the working memory are updated by every tick, whether the gate (which decides what is reviewed) may
fire or not.

A *seat* is a review's verdict on an entity (a memory in a prompt); it changes the entity's worth (``pog`` in settings).
Every tick knows its session. When a session is forgotten, its ticks are removed from records and statistics, and so are
the working memory and each seat whose context was said in that session. When a fact is forgotten, all seats with a
context are removed, since it is not known here which of them hold the fact's words. Numbers that are sums over many
ticks stay: criticality, other seats, scores since a review, and the decisions counted under a mode.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from actors.self_review.counterfactual import Swap, best_swap
from actors.self_review.modes import Decisions, active_modes, conflict, with_decision
from actors.self_review.rolling_median import Ordered, replaced_in_order
from actors.self_review.score import Grade, grade_of, tick_numbers_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.similarity import MICRO
from actors.self_review.tick import Tick, hash_name, hash_names
from actors.self_review.working_memory import (
    Identity,
    WorkingMemory,
    churn_of,
    content_after,
    drift_of,
    identity_after,
    working_memory_of,
)
from schemas.persistent import Map
from schemas.vocabulary.self_review import SeatAdded, Signal

SIGNALS: tuple[Signal, ...] = ("affect", "mode_conflict", "wm_churn", "novel_uncertain", "identity_drift", "regret")
"""The six signals, in the order in which their values are kept.

How exciting and unpleasant the tick is; how opposed the agent's active modes are; how much of its working memory has
changed; novelty times uncertainty; how far it is from its identity; the gain in score of the best swap.
"""

PARTS = ("relevance", "energy_consistency", "redundancy", "diversity", "outcome_prior", "score")
"""The parts of a prompt's score (see the module ``score``), then the score, in the order in which they are kept."""

_MOST_FAMILIES = 64
"""Most loop families whose fatigue is kept until the next tick."""

_MOST_CONTEXTS = 4
"""Most contexts for which an entity's worth is kept; the oldest are dropped."""

Numbers = tuple[float, ...]
"""A value for each of ``SIGNALS``, or for each of ``PARTS``."""


class PastTick(msgspec.Struct, frozen=True, gc=False):
    """A past tick: its six signals, and the parts of its score with the score; empty if it had no prompt to score."""

    session: str
    signals: Numbers
    parts: Numbers


class Seat(msgspec.Struct, frozen=True, gc=False):
    """An entity's worth so far in one context, with the tick and session of its last seat there.

    ``context`` are the hashes of the terms of that context; empty: the worth holds in any context.
    """

    worth: float
    tick: int
    session: str = ""
    context: tuple[int, ...] = ()


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an agent.

    Attributes:
        ticks: The number of ticks so far.
        past: The latest ticks, oldest first. ``ordered``: the values of each signal within the window, in ascending
            order. ``highest``: the highest value of each signal ever.
        armed: Whether a review has fired and is not resolved. ``scores``: the latest scores since. ``unscored``: the
            number of ticks since without a score. ``waited``: the number of all ticks since.
        criticality: How tense the agent is, from 0 to 1, as a moving average.
        memory: The working memory at the last tick; None before the first.
        identity: How it uses its identity.
        fatigue: Fatigue by loop family (a deliberation and its reruns), as guardrails recorded it since the last tick.
        found: Whether guardrails rejected an answer since the last tick.
        seats: By entity, its worth in the contexts of its latest seats, oldest first.
        decisions: Counts of decisions under each mode.
        seen_ns: The time of the last event that changed this state.
    """

    ticks: int = 0
    past: tuple[PastTick, ...] = ()
    ordered: tuple[Ordered, ...] = ((),) * len(SIGNALS)
    highest: Numbers = ()
    armed: bool = False
    scores: Numbers = ()
    unscored: int = 0
    waited: int = 0
    criticality: float = 0.0
    memory: WorkingMemory | None = None
    identity: Identity = Identity()
    fatigue: Map[str, float] = Map()
    found: bool = False
    seats: Map[str, tuple[Seat, ...]] = Map()
    decisions: Decisions = Map()
    seen_ns: int = 0


class TickScores(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a tick; ``grade`` is None if it has no prompt to score.

    ``swap`` is the best swap of one entity for another, if any would raise the score; ``criticality``, ``memory``
    (working memory) and ``identity`` are those of the agent after the tick.
    """

    signals: Numbers
    grade: Grade | None
    swap: Swap | None
    criticality: float
    memory: WorkingMemory | None
    identity: Identity


def score_tick(state: AgentState, tick: Tick, sci: float, settings: SelfReviewSettings) -> TickScores:
    """Return a tick's six signals, the score of its prompt and the best swap, given the agent's state before it.

    ``sci`` is the coherence index of the swarm (all actors and agents together), from 0 to 1.
    """
    grade, swap = _graded(state, tick, settings)
    affect = tick.arousal * max(0.0, -tick.valence)
    memory, identity, drift = state.memory, state.identity, tick.identity_drift
    churn = 0.0
    if tick.memory is not None:
        before = None if state.memory is None else dict(state.memory)
        content = content_after(tick.memory, before, tick.carry)
        memory, churn = working_memory_of(content), churn_of(content, before)
    if drift is None:
        identity = identity_after(state.identity, tick.identity, tick.modes, tick.decision)
        drift = drift_of(identity)
    signals = (
        affect,
        conflict(tick.modes, state.decisions, settings),
        churn,
        tick.novelty * tick.uncertainty,
        drift,
        swap.gain / MICRO if swap is not None else 0.0,
    )
    level, alpha = max(affect, 1.0 - sci, tick.fatigue), settings.criticality_alpha
    return TickScores(
        signals=tuple(round(value, 6) for value in signals),
        grade=grade,
        swap=swap,
        criticality=round(alpha * level + (1.0 - alpha) * state.criticality, 6),
        memory=memory,
        identity=identity,
    )


def scores_since_review(state: AgentState, tick_scores: TickScores, settings: SelfReviewSettings) -> Numbers:
    """Return the latest scores since the review that armed the gate, a tick's own included; empty if not armed."""
    if not state.armed:
        return ()
    own = (tick_scores.grade.score / MICRO,) if tick_scores.grade is not None else ()
    return (*state.scores, *own)[-settings.scores_needed :]


def record_of(state: AgentState, index: int, settings: SelfReviewSettings) -> float:
    """Return a signal's record, its highest value: within the latest ticks or among all, as set; 0 without a tick.

    ``index`` is the signal's in ``SIGNALS``.
    """
    window = settings.record_window
    if not window:
        return state.highest[index] if state.highest else 0.0
    if window == settings.window:
        return state.ordered[index][-1] if state.ordered[index] else 0.0
    return max((each.signals[index] for each in state.past[-window:]), default=0.0)


def with_tick(state: AgentState, tick: Tick, tick_scores: TickScores, settings: SelfReviewSettings) -> AgentState:
    """Return the agent's state after a tick."""
    grade = tick_scores.grade
    parts = tuple(part / MICRO for part in msgspec.structs.astuple(grade)) if grade is not None else ()
    past = (*state.past, PastTick(tick.session, tick_scores.signals, parts))
    active = active_modes(tick.modes, settings) if tick.decision else ()
    return msgspec.structs.replace(
        state,
        ticks=state.ticks + 1,
        past=past[-max(settings.window, settings.record_window) :],
        ordered=_ordered(state, past, settings.window),
        highest=tuple(map(max, state.highest or tick_scores.signals, tick_scores.signals)),
        scores=scores_since_review(state, tick_scores, settings),
        unscored=state.unscored + (state.armed and grade is None),
        criticality=tick_scores.criticality,
        waited=state.waited + state.armed,
        memory=tick_scores.memory,
        identity=tick_scores.identity,
        fatigue=Map(),
        found=False,
        decisions=with_decision(state.decisions, active, tick.decision),
    )


def mean_fatigue(state: AgentState) -> float:
    """Return the mean fatigue of the loop families judged since the last tick; 0 if there are none."""
    families = sorted(state.fatigue)
    return sum(state.fatigue[family] for family in families) / len(families) if families else 0.0


def with_judgement(state: AgentState, family: str, fatigue: float, was_rejected: bool) -> AgentState:
    """Return the agent's state after guardrails judged a loop; ``was_rejected``: whether they rejected its answer."""
    fatigue_by_family = state.fatigue
    if family in fatigue_by_family or len(fatigue_by_family) < _MOST_FAMILIES:
        fatigue_by_family = fatigue_by_family.set(family, fatigue)
    return msgspec.structs.replace(state, fatigue=fatigue_by_family, found=state.found or was_rejected)


def with_seat(state: AgentState, seat: SeatAdded, session: str, settings: SelfReviewSettings) -> AgentState:
    """Return the agent's state after a seat: its entity's worth in that context moves towards what the seat says.

    A seat's value is the distance from a good score. The worth in other contexts stays as it is.
    """
    context, known = hash_names(seat.context), state.seats.get(seat.entity, ())
    previous = next((each for each in reversed(known) if _is_about(each, context)), None)
    before = settings.pog_start if previous is None else worth_of((previous,), state.ticks, None, settings)
    target = min(1.0, max(0.0, settings.good_above + seat.value))
    worth = round(before + settings.pog_alpha * (target - before), 6)
    others = (each for each in known if each is not previous)
    latest = (*others, Seat(worth, state.ticks, session, context))[-_MOST_CONTEXTS:]
    seats = state.seats.set(seat.entity, latest)
    while len(seats) > settings.seats:
        seats = seats.delete(min(seats, key=lambda entity: (seats[entity][-1].tick, entity)))
    return msgspec.structs.replace(state, seats=seats)


def _is_about(seat: Seat, context: tuple[int, ...]) -> bool:
    return not frozenset(context).isdisjoint(seat.context) if context else not seat.context


def worth_of(seats: Sequence[Seat], tick: int, stimulus: frozenset[int] | None, settings: SelfReviewSettings) -> float:
    """Return an entity's worth at a tick: that of its last seat whose context shares a term with the tick.

    A seat fades with time. ``stimulus`` holds the hashes of the tick's terms; None: every context counts.
    """
    for seat in reversed(seats):
        if stimulus is None or not seat.context or not stimulus.isdisjoint(seat.context):
            remaining = max(0, settings.fade_ticks - max(0, tick - seat.tick)) / settings.fade_ticks
            return round(settings.pog_start + (seat.worth - settings.pog_start) * remaining, 6)
    return settings.pog_start


def without_session(state: AgentState, session: str, settings: SelfReviewSettings) -> AgentState:
    """Return the agent's state without the ticks of a session, and without the seats whose context was said there."""
    state = _without_seats(state, lambda seat: bool(session) and seat.session == session)
    past = tuple(each for each in state.past if each.session != session)
    if len(past) == len(state.past):
        return state
    highest = tuple(map(max, *(each.signals for each in past))) if len(past) > 1 else past[0].signals if past else ()
    ordered = _sorted(past[-settings.window :])
    return msgspec.structs.replace(state, past=past, ordered=ordered, highest=highest)


def without_words(state: AgentState) -> AgentState:
    """Return the agent's state without working memory and contexts: hashes of words can be found by guessing."""
    return _without_seats(state, lambda seat: bool(seat.context))


def _without_seats(state: AgentState, is_removed: Callable[[Seat], bool]) -> AgentState:
    """Return the agent's state without the seats that ``is_removed`` accepts, and without its working memory."""
    seats = state.seats
    for entity, known in state.seats.items():
        remaining = tuple(seat for seat in known if not is_removed(seat))
        if len(remaining) < len(known):
            seats = seats.set(entity, remaining) if remaining else seats.delete(entity)
    return msgspec.structs.replace(state, memory=None, seats=seats)


def _graded(state: AgentState, tick: Tick, settings: SelfReviewSettings) -> tuple[Grade | None, Swap | None]:
    if not tick.chosen:
        return None, None
    stimulus = frozenset(map(hash_name, tick.stimulus_terms))
    known = ((each.id, state.seats.get(each.id)) for each in (*tick.chosen, *tick.candidates))
    worth = {entity: worth_of(seats, state.ticks, stimulus, settings) for entity, seats in known if seats is not None}
    numbers = tick_numbers_of(tick, worth, settings.pog_start)
    grade = grade_of(numbers)
    return grade, best_swap(numbers, grade, tick.budget) if tick.candidates else None


def _ordered(state: AgentState, past: tuple[PastTick, ...], window: int) -> tuple[Ordered, ...]:
    """Return the ordered values of the window: one is added and one removed, unless the window's size has changed."""
    newest = past[-1].signals
    kept, before = len(state.ordered[0]), len(past) - 1
    if kept != min(window, before):
        return _sorted(past[-window:])
    gone = past[-window - 1].signals if before >= window else None
    return tuple(
        replaced_in_order(ordered, None if gone is None else gone[index], newest[index])
        for index, ordered in enumerate(state.ordered)
    )


def _sorted(past: Iterable[PastTick]) -> tuple[Ordered, ...]:
    rows = [each.signals for each in past]
    return tuple(tuple(sorted(row[index] for row in rows)) for index in range(len(SIGNALS)))
