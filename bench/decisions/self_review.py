"""Self-review: the cost of a tick for an agent with full statistics, with and without the counterfactual.

A tick is one reviewed exchange; it is decided and folded: six signals, the score, the windows of 128 ticks. With
candidates, every swap of one entity (a memory in the prompt) is scored, too: that is the counterfactual. ``statistics``
is a tick that already has its numbers: only which signals fire, and the windows. ``6 chosen`` adds the score.

Run it with ``python -m bench.decisions.self_review``.
"""

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from actors.self_review import ACTOR
from actors.self_review.agent_state import TickScores, score_tick, with_tick
from actors.self_review.decider import State, agent_state_of
from actors.self_review.gate import events_of
from actors.self_review.tick import tick_of
from bench.harness.table import percentiles, record
from schemas.actor import Message
from schemas.vocabulary.loops import ObservedEntity, TickObserved

SECONDS_PER_CASE = 1.0
SIZES = {"nothing chosen": (0, 0), "6 chosen": (6, 0), "6 chosen, 6 more": (6, 6), "64 chosen, 256 more": (64, 256)}
"""Name -> number of entities in the prompt, and of those that could have been in it."""

_WORDS = ("test", "layer", "docs", "parser", "ferry", "ticket", "harbour", "violin", "boiler", "orchard", "canoe")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case; times are microseconds."""

    case: str
    decide_p50_us: float
    fold_p50_us: float
    tick_p99_us: float


def _entity(name: str, rng: random.Random) -> ObservedEntity:
    terms = tuple(rng.sample(_WORDS, 4))
    return ObservedEntity(id=name, energy=round(rng.random(), 6), tokens=rng.randint(5, 60), terms=terms)


def _tick(rng: random.Random, chosen: int, candidates: int) -> TickObserved:
    return TickObserved(
        arousal=round(rng.random() / 4, 6),
        valence=-0.2,
        novelty=round(rng.random() / 2, 6),
        uncertainty=0.3,
        modes={"guardian": 0.2, "explorer": 0.4, "translator": 1.0},
        working_memory=tuple(rng.sample(_WORDS, 8)),
        stimulus_terms=tuple(rng.sample(_WORDS, 5)),
        chosen=tuple(_entity(f"c{number}", rng) for number in range(chosen)),
        candidates=tuple(_entity(f"k{number}", rng) for number in range(candidates)),
    )


def _message(event: TickObserved, seq: int) -> Message:
    return Message(event=event, seq=seq, id=f"{seq:032x}", time_ns=seq * 1_000_000, agent="felix")


def _full_state(rng: random.Random) -> State:
    """Return a state with an agent whose windows are full."""
    state = ACTOR.initial()
    for number in range(160):
        state = ACTOR.evolve(state, _message(_tick(rng, 4, 0), number + 1))
    return state


def _in_turn(work: Callable[[Any], object], items: Iterable[Any]) -> tuple[float, float]:
    turn = itertools.cycle(items)
    return percentiles(lambda: work(next(turn)), SECONDS_PER_CASE)


def _row(case: str, decided: tuple[float, float], folded: tuple[float, float]) -> Row:
    return Row(
        case=case,
        decide_p50_us=round(decided[0], 1),
        fold_p50_us=round(folded[0], 1),
        tick_p99_us=round(decided[1] + folded[1], 1),
    )


def _ticks(case: str, chosen: int, candidates: int, state: State, rng: random.Random) -> Row:
    messages = [_message(_tick(rng, chosen, candidates), 1_000 + number) for number in range(32)]
    decided = _in_turn(lambda message: tuple(ACTOR.decide(state, message)), messages)
    return _row(case, decided, _in_turn(lambda message: ACTOR.evolve(state, message), messages))


def _statistics(state: State, rng: random.Random) -> Row:
    """Measure ticks with given numbers, so that nothing is scored; ``grade`` is a score and its parts."""
    agent_state, settings = agent_state_of(state, "felix"), state.settings
    tick = tick_of(_tick(rng, 6, 0), 0.0)
    grade = score_tick(agent_state, tick, 1.0, settings).grade
    tick_scores = [
        TickScores(
            signals=rng.choice(agent_state.past).signals,
            grade=grade,
            swap=None,
            criticality=0.1,
            memory=agent_state.memory,
            identity=agent_state.identity,
        )
        for _ in range(64)
    ]
    decided = _in_turn(lambda scores: events_of("felix", 0, agent_state, tick, scores, settings), tick_scores)
    folded = _in_turn(lambda scores: with_tick(agent_state, tick, scores, settings), tick_scores)
    return _row("statistics", decided, folded)


def run() -> list[Row]:
    """Measure every case; two seconds each at most."""
    rng = random.Random(7)
    state = _full_state(rng)
    return [_statistics(state, rng), *(_ticks(case, *size, state, rng) for case, size in SIZES.items())]


def main() -> None:
    """Print the rows as a table."""
    print(f"{'case':20} {'decide p50 us':>14} {'fold p50 us':>12} {'tick p99 us':>12}")
    rows = run()
    record(rows)
    for row in rows:
        print(f"{row.case:20} {row.decide_p50_us:14.1f} {row.fold_p50_us:12.1f} {row.tick_p99_us:12.1f}")


if __name__ == "__main__":
    main()
