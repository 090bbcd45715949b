"""Which modes conflict, and how their opposition is learned from what is decided under each (S, trigger 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.self_review.modes import Decisions, activations_of, conflict, opposition, with_decision
from actors.self_review.settings import SelfReviewSettings
from schemas.persistent import Map
from tests.each import each

SETTINGS = SelfReviewSettings()
NAMES = ("guardian", "explorer", "validator", "translator", "architect", "poet")


def after(**decisions: dict[str, int]) -> Decisions:
    return Map({mode: Map(counts) for mode, counts in decisions.items()})


@each(
    ("one", "other", "assumed"),
    [("guardian", "explorer", 0.8), ("validator", "translator", 0.1), ("architect", "guardian", 0.3)],
)
def test_opposition_starts_from_an_assumption_that_does_not_depend_on_the_order(one: str, other: str, assumed: float):
    assert opposition(one, other, Map(), SETTINGS) == opposition(other, one, Map(), SETTINGS) == assumed


def test_modes_under_which_the_same_is_decided_lose_their_opposition():
    known = after(guardian={"RESPOND": 300, "CLARIFY": 100}, explorer={"RESPOND": 600, "CLARIFY": 200})
    assert opposition("guardian", "explorer", known, SETTINGS) == round(32 * 0.8 / 432, 6)


def test_modes_under_which_nothing_is_decided_alike_gain_it():
    known = after(validator={"RESPOND": 96}, translator={"CLARIFY": 500})
    assert opposition("validator", "translator", known, SETTINGS) == (32 * 0.1 + 96 * 1.0) / 128


def test_divergence_is_the_total_variation_distance_weighed_by_the_rarer_mode():
    known = after(guardian={"RESPOND": 8, "ACT": 24}, explorer={"RESPOND": 32, "ACT": 32})
    assert opposition("guardian", "explorer", known, SETTINGS) == (32 * 0.8 + 32 * 0.25) / 64


def test_decisions_are_counted_under_every_active_mode():
    found = with_decision(with_decision(Map(), ("guardian", "explorer"), "ACT"), ("guardian",), "RESPOND")
    assert found == after(guardian={"ACT": 1, "RESPOND": 1}, explorer={"ACT": 1})


def test_conflict_sums_both_orders_of_every_pair():
    modes = {"guardian": 0.5, "explorer": 1.0, "architect": 0.5}
    wanted = 2 * (0.5 * 1.0 * 0.8 + 0.5 * 0.5 * 0.3 + 1.0 * 0.5 * 0.3)
    assert conflict(modes, Map(), SETTINGS) == pytest.approx(wanted, abs=1e-6)


def test_one_mode_alone_is_in_no_conflict():
    assert conflict({"guardian": 1.0}, Map(), SETTINGS) == 0.0


def test_no_more_than_the_most_active_modes_are_looked_at():
    assert len(activations_of({f"mode_{number}": 0.5 for number in range(1_000)})) == 32
    assert list(activations_of({"mode_poet": 0.4, "guardian": 0.9, "idle": 0.0})) == ["guardian", "poet"]


counts = st.dictionaries(st.sampled_from(["ACT", "RESPOND", "BLOCKED"]), st.integers(1, 10**6), min_size=1)


@given(st.dictionaries(st.sampled_from(NAMES), counts), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_opposition_is_between_0_and_1_whatever_was_decided(known: dict[str, dict[str, int]], one: str, other: str):
    assert 0.0 <= opposition(one, other, after(**known), SETTINGS) <= 1.0
