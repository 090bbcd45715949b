"""Counting outcomes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.feeding import Outcome, Tally


def outcome(latency_ms: float = 1.0, stage: str = "DELIBERATIVE", mode: str | None = "RESPOND") -> Outcome:
    return Outcome(
        id=1,
        exchange="x",
        stage=stage,
        action="EXECUTED",
        reason="",
        mode=mode,
        response="",
        latency_ms=latency_ms,
    )


def tally_of(*outcomes: Outcome) -> Tally:
    tally = Tally()
    for each in outcomes:
        tally.ended(each)
    return tally


def test_outcomes_are_counted_by_what_came_of_them() -> None:
    tally = tally_of(outcome(), outcome(), outcome(stage="REFLEX", mode=None))
    tally.failed("not_json")
    summary = tally.summary(2.0)
    assert (summary.ended, summary.bad, summary.rate) == (3, 1, 1.5)
    assert summary.stages == {"DELIBERATIVE": 2, "REFLEX": 1}
    assert summary.modes == {"RESPOND": 2}
    assert summary.failures == {"not_json": 1}


def test_nothing_counted_is_no_error() -> None:
    summary = Tally().summary(0.0)
    assert (summary.ended, summary.rate, summary.p50_ms, summary.p99_ms) == (0, 0.0, 0.0, 0.0)


@given(st.lists(st.floats(0.01, 1e6), min_size=1), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_percentile_is_right_to_within_a_hundredth(latencies: list[float], share: float) -> None:
    exact = sorted(latencies)[math.ceil(share * len(latencies)) - 1]
    found = tally_of(*map(outcome, latencies)).percentile(share)
    assert exact * 0.999 <= found <= exact * 1.011


def test_memory_does_not_grow_with_the_number_of_outcomes() -> None:
    tally = tally_of(*(outcome(0.5 + number % 997) for number in range(20_000)))
    assert len(tally._latencies) < 800
    assert tally.summary(1.0).ended == 20_000


@pytest.mark.parametrize("latency", [0.0, -1.0])
def test_a_clock_that_stood_still_is_counted(latency: float) -> None:
    assert tally_of(outcome(latency)).summary(1.0).p50_ms == 0.0
