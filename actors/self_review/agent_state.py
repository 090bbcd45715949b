"""What self-review keeps of an agent, and how a tick changes it. Pure.

Statistics, records, scores and the working memory are updated by every tick, whether the gate may fire or not.

Every tick knows its session. When a session is forgotten, its ticks are removed from records and statistics, and so are
the working memory and each seat whose context was said in that session. When a fact is forgotten, all seats with a
context are removed, since it is not known here which of them hold the fact's words. Numbers that earlier ticks changed
stay: criticality, other seats, scores since a review, and the decisions counted under a mode.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from actors.self_review.counterfactual import Swap, best_swap
from actors.self_review.modes import Decisions, active_of, conflict, with_decision
from actors.self_review.rolling_median import Ordered, replaced_in_order
from actors.self_review.score import Grade, grade_of, scene_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.similarity import MICRO
from actors.self_review.tick import Tick, hash_names
from actors.self_review.working_memory import Held, Identity, carried_over, churn_of, drift_of, held_of, identity_after
from schemas.persistent import Map
from schemas.vocabulary.self_review import SeatAdded, Signal

SIGNALS: tuple[Signal, ...] = ("affect", "mode_conflict", "wm_churn", "novel_uncertain", "identity_drift", "regret")
"""The six signals, in the order of the source."""

PARTS = ("relevance", "energy_consistency", "redundancy", "diversity", "outcome_prior", "score")
"""The parts of a score, and the score, in the order in which they are kept."""

_MOST_FAMILIES = 64
_MOST_CONTEXTS = 4
"""Largest number of contexts for which an entity's worth is kept; the oldest are dropped."""

Numbers = tuple[float, ...]


class PastTick(msgspec.Struct, frozen=True):
    """A past tick: its six signals, and the parts of its score with the score; empty if it had no prompt to score."""

    session: str
    signals: Numbers
    parts: Numbers


class Seat(msgspec.Struct, frozen=True):
    """An entity's worth so far (PoG) in one context, with the tick and session of its last seat there.

    ``context`` are hashes of the terms of that context; empty: it holds in any context.
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
        criticality: How tense the agent is, as a moving average.
        memory: The working memory at the last tick; None before the first.
        identity: How it uses its identity.
        fatigue: Fatigue by loop family, as guardrails recorded it since the last tick; ``found``: whether they found
            something.
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
    memory: Held | None = None
    identity: Identity = Identity()
    fatigue: Map[str, float] = Map()
    found: bool = False
    seats: Map[str, tuple[Seat, ...]] = Map()
    decisions: Decisions = Map()
    seen_ns: int = 0


class TickScores(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a tick; ``grade`` is None if it has no prompt to score."""

    signals: Numbers
    grade: Grade | None
    swap: Swap | None
    criticality: float
    memory: Held | None
    identity: Identity


def score_tick(mind: AgentState, tick: Tick, sci: float, settings: SelfReviewSettings) -> TickScores:
    """Return a tick's six signals, the score of its prompt and the best swap, given the agent's state before it."""
    found, swap = _graded(mind, tick, settings)
    affect = tick.arousal * max(0.0, -tick.valence)
    held, identity, drift = mind.memory, mind.identity, tick.identity_drift
    if tick.memory is not None:
        held = carried_over(held_of(tick.memory), mind.memory, tick.carry)
    if drift is None:
        identity = identity_after(mind.identity, tick.identity, tick.modes, tick.decision)
        drift = drift_of(identity)
    signals = (
        affect,
        conflict(tick.modes, mind.decisions, settings),
        churn_of(held, mind.memory) if held is not None and tick.memory is not None else 0.0,
        tick.novelty * tick.uncertainty,
        drift,
        swap.gain / MICRO if swap is not None else 0.0,
    )
    level, alpha = max(affect, 1.0 - sci, tick.fatigue), settings.criticality_alpha
    return TickScores(
        signals=tuple(round(value, 6) for value in signals),
        grade=found,
        swap=swap,
        criticality=round(alpha * level + (1.0 - alpha) * mind.criticality, 6),
        memory=held,
        identity=identity,
    )


def scores_with(mind: AgentState, seen: TickScores, settings: SelfReviewSettings) -> Numbers:
    """Return the latest scores since the review that armed the gate, a tick's own included; empty if not armed."""
    if not mind.armed:
        return ()
    own = (seen.grade.score / MICRO,) if seen.grade is not None else ()
    return (*mind.scores, *own)[-settings.scores_needed :]


def record_of(mind: AgentState, place: int, settings: SelfReviewSettings) -> float:
    """Return a signal's record: its highest value of the latest ticks, or of all; 0 before the first."""
    most = settings.record_window
    if not most:
        return mind.highest[place] if mind.highest else 0.0
    if most == settings.window:
        return mind.ordered[place][-1] if mind.ordered[place] else 0.0
    return max((each.signals[place] for each in mind.past[-most:]), default=0.0)


def with_tick(mind: AgentState, tick: Tick, seen: TickScores, settings: SelfReviewSettings) -> AgentState:
    """Return the agent's state after a tick."""
    parts = tuple(part / MICRO for part in msgspec.structs.astuple(seen.grade)) if seen.grade is not None else ()
    past = (*mind.past, PastTick(tick.session, seen.signals, parts))
    active = active_of(tick.modes, settings) if tick.decision else ()
    return msgspec.structs.replace(
        mind,
        ticks=mind.ticks + 1,
        past=past[-max(settings.window, settings.record_window) :],
        ordered=_ordered(mind, past, settings.window),
        highest=tuple(map(max, mind.highest or seen.signals, seen.signals)),
        scores=scores_with(mind, seen, settings),
        unscored=mind.unscored + (mind.armed and seen.grade is None),
        criticality=seen.criticality,
        waited=mind.waited + mind.armed,
        memory=seen.memory,
        identity=seen.identity,
        fatigue=Map(),
        found=False,
        decisions=with_decision(mind.decisions, active, tick.decision),
    )


def mean_fatigue(mind: AgentState) -> float:
    """Return the mean fatigue of the loop families judged since the last tick; 0 if there are none."""
    families = sorted(mind.fatigue)
    return sum(mind.fatigue[family] for family in families) / len(families) if families else 0.0


def with_judgement(mind: AgentState, family: str, fatigue: float, found: bool) -> AgentState:
    """Return the agent's state after guardrails judged a loop; ``found``: whether they found something."""
    tired = mind.fatigue
    if family in tired or len(tired) < _MOST_FAMILIES:
        tired = tired.set(family, fatigue)
    return msgspec.structs.replace(mind, fatigue=tired, found=mind.found or found)


def with_seat(mind: AgentState, seat: SeatAdded, session: str, settings: SelfReviewSettings) -> AgentState:
    """Return the agent's state after a seat: its entity's worth moves towards the seat's value, centred on a good one.

    It moves from its worth in that context; its worth in other contexts stays as it is.
    """
    context, known = hash_names(seat.context), mind.seats.get(seat.entity, ())
    there = next((each for each in reversed(known) if _is_about(each, context)), None)
    before = settings.pog_start if there is None else worth_of((there,), mind.ticks, None, settings)
    said = min(1.0, max(0.0, settings.good_above + seat.value))
    worth = round(before + settings.pog_alpha * (said - before), 6)
    others = (each for each in known if each is not there)
    latest = (*others, Seat(worth, mind.ticks, session, context))[-_MOST_CONTEXTS:]
    seats = mind.seats.set(seat.entity, latest)
    while len(seats) > settings.seats:
        seats = seats.delete(min(seats, key=lambda entity: (seats[entity][-1].tick, entity)))
    return msgspec.structs.replace(mind, seats=seats)


def _is_about(seat: Seat, context: tuple[int, ...]) -> bool:
    return not frozenset(context).isdisjoint(seat.context) if context else not seat.context


def worth_of(seats: Sequence[Seat], tick: int, stimulus: frozenset[int] | None, settings: SelfReviewSettings) -> float:
    """Return an entity's worth at a tick. A seat fades with time, and counts if the tick shares a term of its context.

    Of several such seats the last one counts. ``stimulus`` holds the hashes of the tick's terms; None: in any context.
    """
    for seat in reversed(seats):
        if stimulus is None or not seat.context or not stimulus.isdisjoint(seat.context):
            left = max(0, settings.fade_ticks - max(0, tick - seat.tick)) / settings.fade_ticks
            return round(settings.pog_start + (seat.worth - settings.pog_start) * left, 6)
    return settings.pog_start


def without_session(mind: AgentState, session: str, settings: SelfReviewSettings) -> AgentState:
    """Return the agent's state without the ticks of a session, and without the seats whose context was said there."""
    mind = _without_seats(mind, lambda seat: bool(session) and seat.session == session)
    past = tuple(each for each in mind.past if each.session != session)
    if len(past) == len(mind.past):
        return mind
    highest = tuple(map(max, *(each.signals for each in past))) if len(past) > 1 else past[0].signals if past else ()
    ordered = _sorted(past[-settings.window :])
    return msgspec.structs.replace(mind, past=past, ordered=ordered, highest=highest)


def without_words(mind: AgentState) -> AgentState:
    """Return the agent's state without working memory and contexts: hashes of words can be found by guessing."""
    return _without_seats(mind, lambda seat: bool(seat.context))


def _without_seats(mind: AgentState, is_gone: Callable[[Seat], bool]) -> AgentState:
    """Return the agent's state without the seats that ``is_gone`` accepts, and without its working memory."""
    seats = mind.seats
    for entity, known in mind.seats.items():
        left = tuple(seat for seat in known if not is_gone(seat))
        if len(left) < len(known):
            seats = seats.set(entity, left) if left else seats.delete(entity)
    return msgspec.structs.replace(mind, memory=None, seats=seats)


def _graded(mind: AgentState, tick: Tick, settings: SelfReviewSettings) -> tuple[Grade | None, Swap | None]:
    if not tick.chosen:
        return None, None
    stimulus = frozenset(hash_names(tick.stimulus_terms))
    worth = {
        each.id: worth_of(mind.seats[each.id], mind.ticks, stimulus, settings)
        for each in (*tick.chosen, *tick.candidates)
        if each.id in mind.seats
    }
    scene = scene_of(tick, worth, settings.pog_start)
    found = grade_of(scene)
    return found, best_swap(scene, found, tick.budget) if tick.candidates else None


def _ordered(mind: AgentState, past: tuple[PastTick, ...], window: int) -> tuple[Ordered, ...]:
    """Return the ordered values of the window: one is added and one removed, unless the window's size has changed."""
    newest = past[-1].signals
    held, before = len(mind.ordered[0]), len(past) - 1
    if held != min(window, before):
        return _sorted(past[-window:])
    gone = past[-window - 1].signals if before >= window else None
    return tuple(
        replaced_in_order(ordered, None if gone is None else gone[place], newest[place])
        for place, ordered in enumerate(mind.ordered)
    )


def _sorted(past: Iterable[PastTick]) -> tuple[Ordered, ...]:
    rows = [each.signals for each in past]
    return tuple(tuple(sorted(row[place] for row in rows)) for place in range(len(SIGNALS)))
