"""The gate: what fires, what a review says, and that no gate stays shut for ever (S, "Six Triggers", "The Gate")."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.self_review import ACTOR
from actors.self_review.agent_state import SIGNALS
from actors.self_review.settings import SelfReviewSettings
from schemas.event import Event, encode_event, topic_of
from schemas.vocabulary.loops import ObservedEntity, TickObserved
from schemas.vocabulary.self_review import (
    SeatAdded,
    SelfReviewDisarmed,
    SelfReviewMeasured,
    SelfReviewResult,
    SelfReviewTriggered,
)
from schemas.vocabulary.swarm import SwarmMeasured
from tests.actors.scenario import Address, Partition
from tests.actors.self_review.builders import BETTER, FELIX, GOOD, SHOCK, WARM_UP, citizen, mind, reasons, see, tick
from tests.actors.self_review.test_score import ticks
from tests.each import each

BAD: dict[str, Any] = {"chosen": (ObservedEntity(id="canoe", energy=0.5, tokens=10, terms=("canoe",)),)}


# --- the six triggers


@each(
    ("signal", "changes", "value"),
    [
        ("affect", SHOCK, 0.72),
        ("mode_conflict", {"modes": {"mode_translator": 1.0, "mode_validator": 1.0}}, 0.2),
        ("wm_churn", {"working_memory": ("docs", "tests")}, 1.0),
        ("novel_uncertain", {"novelty": 0.9, "uncertainty": 0.5}, 0.45),
        ("identity_drift", {"identity_stable": ("a", "b"), "identity_current": ("b", "c")}, 0.666667),
        ("regret", BETTER, None),
    ],
)
def test_each_signal_triggers_a_review_by_a_record(signal: str, changes: Mapping[str, Any], value: float | None):
    led_to = see(citizen(), **changes)
    assert reasons(led_to) == (f"{signal}_record",)
    (triggered,) = [event for event in led_to if isinstance(event, SelfReviewTriggered)]
    metrics = msgspec.structs.asdict(triggered.metrics)
    assert value is None or metrics.pop(signal) == value
    assert value is None or set(metrics.values()) == {0.0}


def test_a_gate_whose_review_is_never_resolved_lapses_with_the_window():
    """A citizen whose prompts are never good was reviewed once, and never again."""
    felix = citizen()
    assert see(felix, **SHOCK, **BAD)
    waited, led_to = 0, list[Event]()
    while not led_to and waited < 200:
        led_to, waited = see(felix, **BAD), waited + 1
    assert [(type(event), event.reason) for event in led_to] == [(SelfReviewDisarmed, "lapsed")]
    assert waited == SelfReviewSettings().lapse_ticks
    assert not mind(felix).armed
    assert see(felix, arousal=1.0, valence=-1.0, **BAD), "and what is out of the ordinary fires again"


@each("lapse", [1, 7])
def test_a_gate_lapses_after_as_many_ticks_as_its_setting_says(lapse: int):
    felix = citizen(SelfReviewSettings(lapse_ticks=lapse))
    see(felix, **SHOCK, **BAD)
    led_to = [see(felix, **BAD) for _ in range(lapse)]
    assert [bool(each) for each in led_to] == [False] * (lapse - 1) + [True]


def test_arousal_without_a_negative_valence_is_no_distress():
    assert see(citizen(), arousal=1.0, valence=0.9) == []


def test_churn_is_against_the_working_memory_of_the_tick_before():
    felix = citizen(ticks=0)
    for number in range(WARM_UP):
        see(felix, working_memory=("a", "b") if number % 2 else ("a",))
    assert reasons(see(felix, working_memory=("c", "d"))) == ("wm_churn_record",)


def test_the_guard_is_one_deviation_and_strict():
    felix = citizen(ticks=0)
    for number in range(WARM_UP):
        see(felix, novelty=0.25 if number % 2 else 0.5, uncertainty=1.0)
    # Half of the values lie on either side of the median of 0.375, at 0.125 from it; the record is 0.5.
    assert see(felix, novelty=0.625, uncertainty=1.0) == []
    felix = citizen(ticks=0)
    for number in range(WARM_UP):
        see(felix, novelty=0.25 if number % 2 else 0.5, uncertainty=1.0)
    assert reasons(see(felix, novelty=0.625001, uncertainty=1.0)) == ("novel_uncertain_record",)


def test_the_warm_up_only_seeds_the_statistics():
    felix = citizen(ticks=WARM_UP - 1)
    assert see(felix, **SHOCK) == []
    assert see(felix, **SHOCK) == [], "by now it is no record any more"
    assert reasons(see(felix, arousal=1.0, valence=-1.0)) == ("affect_record",)


def ages_after(shock: Partition, ticks_since: int) -> tuple[str, ...]:
    for _ in range(ticks_since):
        see(shock)
    assert not mind(shock).armed
    return reasons(see(shock, arousal=0.8, valence=-0.8))


def test_a_record_is_the_highest_of_the_window_and_ages_with_it():
    felix = citizen()
    see(felix, **SHOCK)
    assert ages_after(felix, 60) == ()
    assert ages_after(felix, 128) == ("affect_record",)


def test_with_a_record_window_of_0_a_record_is_for_ever():
    felix = citizen(SelfReviewSettings(record_window=0))
    see(felix, **SHOCK)
    assert ages_after(felix, 300) == ()


def test_a_record_window_of_its_own_is_shorter_or_longer_than_that_of_the_statistics():
    felix = citizen(SelfReviewSettings(record_window=16))
    see(felix, **SHOCK)
    assert ages_after(felix, 20) == ("affect_record",)
    felix = citizen(SelfReviewSettings(window=32, record_window=200))
    see(felix, **SHOCK)
    assert ages_after(felix, 100) == ()


# --- mode-aware prioritisation


def test_the_modes_weigh_the_reasons_but_not_the_records():
    both: dict[str, Any] = {"arousal": 0.9, "valence": -0.5, "novelty": 0.5, "uncertainty": 1.0}
    assert reasons(see(citizen(), **both)) == ("novel_uncertain_record", "affect_record")
    led_to = see(citizen(), **both, modes={"guardian": 1.0})
    assert reasons(led_to) == ("affect_record", "novel_uncertain_record")
    (measured,) = [event for event in led_to if isinstance(event, SelfReviewMeasured)]
    assert (measured.signals["affect"].value, measured.signals["affect"].weight) == (0.45, 1.2)


@each(
    ("mode", "called"),
    [
        ("guardian", {"affect", "mode_conflict"}),
        ("explorer", {"novel_uncertain"}),
        ("validator", {"regret"}),
        ("translator", set()),
    ],
)
def test_each_mode_calls_attention_to_its_signals(mode: str, called: set[str]):
    led_to = see(citizen(), **SHOCK, modes={mode: 0.5})
    (measured,) = [event for event in led_to if isinstance(event, SelfReviewMeasured)]
    assert {signal for signal, reading in measured.signals.items() if reading.weight == 1.2} == called


# --- what a review says (S, "Events Emitted")


def test_a_review_is_one_decision_that_begins_with_the_trigger():
    led_to = see(citizen(), **BETTER)
    kinds = [type(event) for event in led_to]
    assert kinds == [SelfReviewTriggered, SelfReviewResult, SelfReviewMeasured, *[SeatAdded] * 4]


def test_the_triggered_event_has_the_fields_of_the_source_s():
    body = fields_of(see(citizen(), **SHOCK)[0])
    assert set(body) == {"topic", "citizen", "tick", "reasons", "metrics", "timestamp"}
    assert set(body["metrics"]) == set(SIGNALS)
    assert (body["topic"], body["citizen"], body["tick"]) == ("forged_id.self_review.triggered", "felix", WARM_UP + 1)
    assert body["timestamp"] == "2023-11-14T22:13:20.000Z"


def test_the_result_has_the_fields_of_the_source_s():
    body = fields_of(see(citizen(), **BETTER)[1])
    assert set(body) == {
        "topic", "citizen", "tick", "score", "dimensions", "regret", "counterfactual", "seats_applied"
    }  # fmt: skip
    parts = {"relevance", "energy_consistency", "redundancy", "diversity", "outcome_prior"}
    assert set(body["dimensions"]) == parts
    assert set(body["counterfactual"]) == {"swapped_out", "swapped_in", "score_improvement"}
    assert body["seats_applied"] == {"negative": ["worse"], "positive": ["validator"]}
    assert body["topic"] == "forged_id.self_review.result"


def test_the_resolved_event_has_the_fields_of_the_source_s_and_comes_behind_the_disarmed_one():
    felix = citizen()
    see(felix, **SHOCK)
    see(felix), see(felix)
    disarmed, resolved = map(fields_of, see(felix))
    assert disarmed["topic"] == "forged_id.self_review.disarmed"
    assert set(resolved) == {"topic", "citizen", "tick", "recent_scores", "criticality"}
    assert (resolved["topic"], resolved["tick"]) == ("forged_id.resolved", WARM_UP + 4)


def test_the_numbers_beside_a_review_are_against_the_ticks_before_it():
    led_to = see(citizen(), **SHOCK)
    (measured,) = [event for event in led_to if isinstance(event, SelfReviewMeasured)]
    affect = measured.signals["affect"]
    assert (affect.record, affect.median, affect.mad, affect.guard) == (0.0, 0.0, 0.0, 1e-6)
    assert affect.normalised == 720_000.0
    assert measured.parts["score"].normalised == 0.0
    assert measured.criticality == 0.216, "0.3 of 0.72"


def test_a_tick_without_a_prompt_fires_without_a_result_and_without_seats():
    led_to = see(citizen(), **SHOCK, chosen=())
    assert [type(event) for event in led_to] == [SelfReviewTriggered, SelfReviewMeasured]


def fields_of(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_event(event))
    return found


# --- cooldown and resolution


def test_while_armed_nothing_fires_but_statistics_and_records_go_on():
    felix = citizen()
    see(felix, **SHOCK)
    before = mind(felix)
    assert see(felix, **BAD, arousal=1.0, valence=-1.0) == []
    after = mind(felix)
    assert after.past[-1].signals[0] == 1.0
    assert after.ordered[0][-1] == 1.0
    assert after.ticks == before.ticks + 1
    for _ in range(20):
        see(felix)
    assert reasons(see(felix, arousal=0.95, valence=-1.0)) == (), "no record: the highest came during the cooldown"


def test_a_review_s_own_score_does_not_count_for_its_resolution():
    felix = citizen()
    see(felix, **SHOCK)
    assert [len(see(felix)) for _ in range(3)] == [0, 0, 2]


def test_a_bad_score_among_the_last_three_keeps_the_gate_shut():
    felix = citizen()
    see(felix, **SHOCK)
    assert [len(see(felix, **changes)) for changes in ({}, {}, BAD, {}, {}, {})] == [0, 0, 0, 0, 0, 2]


def test_a_tense_citizen_is_not_resolved_however_good_the_scores():
    felix = citizen()
    see(felix, **SHOCK)
    assert [see(felix, fatigue=0.9) for _ in range(10)] == [[]] * 10
    quiet = [len(see(felix)) for _ in range(6)]
    assert quiet[0] == 0
    assert 2 in quiet


def test_an_incoherent_swarm_makes_every_citizen_tense():
    felix = citizen()
    felix.hear(SwarmMeasured(
        sci=0.4, precedent_agreement=0.4, health_alignment=0.4, delivered_share=0.4, decision_consistency=0.4,
        healthy=False,
    ), Address("", "", ""))  # fmt: skip
    see(felix, **SHOCK)
    assert [see(felix) for _ in range(20)] == [[]] * 20


def test_ticks_that_cannot_be_scored_neither_help_nor_harm():
    felix = citizen()
    see(felix, **SHOCK)
    assert [len(see(felix, **changes)) for changes in ({}, {"chosen": ()}, {}, {"chosen": ()}, {})] == [0, 0, 0, 0, 2]


histories = st.lists(ticks | st.builds(TickObserved, arousal=st.floats(0, 1), valence=st.floats(-1, 1)), max_size=12)


@given(before=histories, after=histories)
@settings(max_examples=30, deadline=None)
def test_no_gate_stays_shut_for_ever_calm_and_good_ticks_open_it(before: list[TickObserved], after: list[TickObserved]):
    felix = Partition(citizen(ticks=0).actor)
    for event in (*before, *[GOOD] * WARM_UP, tick(**SHOCK), *after):
        felix.when(event, FELIX)
    worth = mind(felix).seats
    fresh = ObservedEntity(id="fresh", energy=0.5, tokens=100, terms=("tests",))
    assert "fresh" not in worth
    calm = tick(stimulus_terms=("tests",), chosen=(fresh,))
    for _ in range(12):
        felix.when(calm, FELIX)
    assert not mind(felix).armed


KINDS = (
    tick(**SHOCK),
    tick(arousal=0.4, valence=-0.5),
    GOOD,
    tick(chosen=(ObservedEntity(id="beside", energy=0.5, tokens=100, terms=("canoe",)),)),
    TickObserved(arousal=0.1, valence=0.1),
    TickObserved(arousal=0.9, valence=-0.9, novelty=0.9, uncertainty=0.9),
    tick(modes={"guardian": 1.0, "explorer": 1.0}),
)
"""Ticks in distress and calm, with a good prompt, a bad one or none."""


@given(st.lists(st.sampled_from(KINDS), max_size=120))
@settings(max_examples=60, deadline=None)
def test_reviews_and_their_ends_alternate_and_no_review_outlasts_the_lapse_whatever_happens(seen: list[TickObserved]):
    lapse = 9
    felix = Partition(ACTOR).configure(SelfReviewSettings(warm_up=4, window=8, record_window=8, lapse_ticks=lapse))
    since: int | None = None
    for number, event in enumerate(seen):
        topics = [topic_of(each).removeprefix("forged_id.") for each in felix.when(event, FELIX)]
        if since is None:
            assert "self_review.disarmed" not in topics
            since = number if "self_review.triggered" in topics else None
        else:
            assert "self_review.triggered" not in topics
            assert number - since <= lapse
            since = None if "self_review.disarmed" in topics else since
        assert ("resolved" not in topics) or topics == ["self_review.disarmed", "resolved"]
        assert mind(felix).armed is (since is not None)
        assert since is None or number - since < lapse


def test_a_citizen_whose_prompts_nobody_tells_is_reviewed_again_once_it_is_calm():
    felix = Partition(citizen(ticks=0).actor)
    calm = TickObserved(arousal=0.1, valence=0.1)
    for event in (*[calm] * WARM_UP, TickObserved(arousal=0.9, valence=-0.9)):
        felix.when(event, FELIX)
    assert mind(felix).armed
    led_to = [topic_of(event) for _ in range(12) for event in felix.when(calm, FELIX)]
    assert led_to == ["forged_id.self_review.disarmed", "forged_id.resolved"]
    felix.when(TickObserved(arousal=1.0, valence=-1.0), FELIX)
    assert mind(felix).armed


def test_of_too_many_agents_those_seen_least_lately_are_forgotten():
    partition = Partition(ACTOR).configure(SelfReviewSettings(agents=8))
    for number in (*range(8), 0, 8):
        partition.hear(TickObserved(), Address(f"citizen-{number}", "", ""), after_ms=1)
    assert sorted(partition.state.minds) == ["citizen-0", *(f"citizen-{number}" for number in range(2, 9))]
