"""The formula of the coherence index, by its numbers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.swarm.coherence_index import (
    PrecedentDecision,
    agreement_of,
    alignment_of,
    consistency_of,
    has_moved,
    measure,
    share,
    side_of,
)
from actors.swarm.settings import SwarmSettings
from tests.actors.swarm.builders import similar
from tests.each import each

ACTORS = ("reflex", "router")


def counted(counts: Mapping[str, int] = MappingProxyType({})) -> Callable[[str], int]:
    return lambda name: counts.get(name, 0)


def test_where_nothing_happened_the_swarm_is_coherent():
    measured = measure(counted(), ACTORS, 1.0, SwarmSettings())
    assert (measured.sci, measured.healthy) == (1.0, True)


def test_r4_1_the_swarm_s_index_weighs_its_parts_with_30_25_25_and_20_hundredths():
    counts = {
        "precedents": 10, "precedents_agreeing": 5, "delivered": 3, "undelivered": 1,
        "failures": 10, "failed.reflex": 10, "decided.router": 10,
    }  # fmt: skip
    measured = measure(counted(counts), ACTORS, 0.6, SwarmSettings())
    assert (measured.precedent_agreement, measured.delivered_share, measured.decision_consistency) == (0.5, 0.75, 0.6)
    assert measured.health_alignment == 0.75
    assert measured.sci == round(0.30 * 0.5 + 0.25 * 0.75 + 0.25 * 0.75 + 0.20 * 0.6, 6) == 0.645
    assert measured.healthy is False


@each(("sci_of", "healthy"), [(1.0, True), (0.0, False)])
def test_r4_1_the_swarm_is_healthy_from_0_7_on(sci_of: float, healthy: bool):
    only = SwarmSettings(precedent_weight=0.0, health_weight=0.0, delivered_weight=0.0, consistency_weight=1.0)
    assert measure(counted(), ACTORS, sci_of, only).healthy is healthy
    assert measure(counted(), ACTORS, 0.7, only).healthy is True
    assert measure(counted(), ACTORS, 0.699999, only).healthy is False


@each(
    ("action", "outcome", "side"),
    [
        ("answer", "benign", "do"),
        ("act", "benign", "do"),
        ("withhold", "benign", "withhold"),
        ("answer", "harmful", "withhold"),
        ("act", "harmful", "withhold"),
        ("withhold", "harmful", "do"),
    ],
)
def test_a_harmful_outcome_sides_against_what_was_done(action: str, outcome: str, side: str):
    assert side_of(similar(action, outcome)) == side  # type: ignore[arg-type]


def test_agreement_counts_the_majority_of_a_report():
    assert agreement_of([similar(), similar(), similar("answer", "harmful")]) == (2, 3)
    assert agreement_of([similar(), similar("withhold")]) == (1, 2)


def test_a_precedent_alone_agrees_with_nobody_and_is_not_counted():
    assert agreement_of([]) == agreement_of([similar()]) == (0, 0)


def test_alignment_is_one_minus_the_variance_of_health():
    assert alignment_of([]) == alignment_of([1.0]) == alignment_of([0.4, 0.4, 0.4]) == 1.0
    assert alignment_of([0.0, 1.0]) == 0.75
    assert alignment_of([1.0, 1.0, 0.4]) == 0.92


def test_actors_that_decided_nothing_have_no_health():
    counts = {"failures": 1, "failed.reflex": 1, "decided.reflex": 1}
    assert measure(counted(counts), ("reflex", "router"), 1.0, SwarmSettings()).health_alignment == 1.0


def test_consistency_is_1_below_ten_decisions():
    split = [PrecedentDecision("p", number % 2 == 0, 0) for number in range(10)]
    assert consistency_of(split[:9], 10) == 1.0
    assert consistency_of(split, 10) == 0.5


def test_consistency_compares_decisions_on_the_same_precedent_only():
    rulings = (
        [PrecedentDecision("p", True, 0)] * 6
        + [PrecedentDecision("q", False, 0)] * 5
        + [PrecedentDecision("q", True, 0)]
    )
    assert consistency_of(rulings, 10) == round(11 / 12, 6)


def test_a_share_of_nothing_is_whole():
    assert (share(0, 0), share(1, 3)) == (1.0, 0.333333)


@each(("sci", "last", "told"), [(0.95, 1.0, True), (0.950001, 1.0, False), (0.85, 0.8, True)])
def test_an_index_has_moved_from_0_05_on_in_either_direction(sci: float, last: float, told: bool):
    assert has_moved(sci, last, SwarmSettings()) is told


def test_weights_must_add_up_to_one():
    with pytest.raises(ValueError, match=r"they add up to 0\.9"):
        SwarmSettings(precedent_weight=0.2)


counted_names = st.dictionaries(
    st.sampled_from(["failures", "failed.reflex", "failed.router", "decided.reflex", "delivered", "undelivered"]),
    st.integers(1, 10**6),
)


@given(counted_names, st.integers(0, 50), st.integers(0, 50), st.floats(0.0, 1.0))
def test_every_part_is_a_share(counts: dict[str, int], agreeing: int, others: int, consistency: float):
    reported = {"precedents": agreeing + others, "precedents_agreeing": agreeing} if agreeing + others else {}
    measured = measure(counted({**counts, **reported}), ACTORS, consistency, SwarmSettings())
    parts = (measured.precedent_agreement, measured.health_alignment, measured.delivered_share, measured.sci)
    assert all(0.0 <= part <= 1.0 for part in parts)
    assert measured.health_alignment >= 0.75
