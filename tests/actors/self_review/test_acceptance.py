"""The source's acceptance tests 1 to 6 (S), by name."""

import random
import re
from importlib.resources import files
from statistics import median

import msgspec
import pytest

from actors.self_review.agent_state import SIGNALS, AgentState, TickScores, with_tick
from actors.self_review.gate import events_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import tick_of
from actors.self_review.working_memory import Identity
from schemas.vocabulary.loops import ObservedEntity, TickObserved
from schemas.vocabulary.self_review import Resolved, SeatAdded, SelfReviewTriggered
from tests.actors.self_review.builders import FELIX, citizen, mind, reasons, result, see
from tests.each import each

SETTINGS = SelfReviewSettings()
STILL = tick_of(TickObserved(), 0.0)


def reviews(seed: int, ticks: int, cooldown: int = 3) -> list[int]:
    """Return the ticks that fire when six independent signals are drawn; the gate opens again after a cooldown."""
    drawn, found = random.Random(seed), []
    self, opens = AgentState(), 0
    for number in range(ticks):
        signals = tuple(round(drawn.betavariate(2, 5), 6) for _ in SIGNALS)
        seen = TickScores(signals=signals, grade=None, swap=None, criticality=0.0, memory=None, identity=Identity())
        if number >= opens and events_of("felix", 0, self, STILL, seen, SETTINGS):
            found.append(number)
            opens = number + 1 + cooldown
        self = with_tick(self, STILL, seen, SETTINGS)
    return found


def test_1_rare_firing_about_one_in_a_hundred_ticks():
    after = SETTINGS.warm_up
    counts = [len([fired for fired in reviews(seed, after + 1_000) if fired >= after]) for seed in range(20)]
    assert set(counts) <= set(range(1, 12))
    assert 5 <= median(counts) <= 9


def test_1_it_does_not_go_blind_with_time():
    counts = [len([fired for fired in reviews(seed, 5_000) if fired >= 4_000]) for seed in range(6)]
    assert set(counts) <= set(range(1, 15))


def test_2_affect_shock_triggers_review():
    led_to = see(citizen(), arousal=0.9, valence=-0.8)
    assert reasons(led_to) == ("affect_record",)
    (triggered,) = [event for event in led_to if isinstance(event, SelfReviewTriggered)]
    assert triggered.metrics.affect == 0.72


def test_2_an_affect_shock_fires_where_no_prompt_is_known_too():
    felix = citizen(ticks=0)
    for _ in range(SETTINGS.warm_up):
        felix.when(TickObserved(), FELIX)
    assert reasons(felix.when(TickObserved(arousal=0.9, valence=-0.8), FELIX)) == ("affect_record",)


def test_3_mode_conflict_triggers_review():
    led_to = see(citizen(), modes={"guardian": 1.0, "explorer": 1.0})
    assert reasons(led_to) == ("mode_conflict_record",)
    (triggered,) = [event for event in led_to if isinstance(event, SelfReviewTriggered)]
    assert triggered.metrics.mode_conflict == 1.6, "twice 0.8: the pair counts in both orders"


def test_4_counterfactual_regret_applies_seats():
    architect = ObservedEntity(id="architect", energy=0.5, tokens=100, terms=("layers",))
    docs = ObservedEntity(id="docs", energy=0.5, tokens=100, terms=("docs",))
    validator = ObservedEntity(id="validator", energy=0.5, tokens=100, terms=("tests",))
    led_to = see(citizen(), chosen=(architect, docs), candidates=(validator,))
    found = result(led_to)
    assert (found.counterfactual.swapped_out, found.counterfactual.swapped_in) == ("architect", "validator")
    assert found.regret > 0.05
    seats = {(event.entity, event.seat_type): event.value for event in led_to if isinstance(event, SeatAdded)}
    assert seats["architect", "metacog_negative"] == -found.regret
    assert seats["validator", "metacog_positive"] == found.regret
    for seat in ("architect", "docs"):
        assert seats[seat, "metacog_quality"] == pytest.approx(found.score - 0.7, abs=1e-9)
    assert len(seats) == 4
    assert found.seats_applied.negative == ("architect",)
    assert found.seats_applied.positive == ("validator",)


def test_5_resolution_disarms_gate():
    felix = citizen()
    see(felix, modes={"guardian": 1.0, "explorer": 1.0})
    assert mind(felix).armed
    assert [see(felix), see(felix)] == [[], []], "two good scores are not three"
    _, resolved = see(felix)
    assert isinstance(resolved, Resolved)
    assert [score > 0.7 for score in resolved.recent_scores] == [True] * 3
    assert resolved.criticality < 0.3
    assert not mind(felix).armed


@each("hint", ["percentile", "quantile", "p70", "p90", "p95"])
def test_6_no_percentile_constants(hint: str):
    for source in files("actors.self_review").iterdir():
        if source.name.endswith(".py"):
            assert not re.search(rf"\b{hint}s?\b|_{hint}s?\b", source.read_text(encoding="utf-8").lower()), source.name


def test_6_no_threshold_on_a_signal_is_a_setting():
    settings = msgspec.structs.asdict(SETTINGS)
    assert not {name for name in settings if any(signal in name for signal in (*SIGNALS, "drift", "churn"))}
