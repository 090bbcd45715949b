"""The circuit breaker, against a plain account of what it owes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm.circuit import Circuit, CircuitOpen

FAILURES, WAIT_S = 3, 10.0


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Time) -> Circuit:
    circuit = Circuit(FAILURES, WAIT_S, clock)
    for _ in range(FAILURES):
        circuit.failed(circuit.enter())
    return circuit


def test_it_opens_after_failures_in_a_row_and_a_success_starts_the_count_again() -> None:
    circuit = Circuit(FAILURES, WAIT_S, Time())
    for _ in range(3):
        circuit.failed(circuit.enter())
        circuit.failed(circuit.enter())
        assert not circuit.is_open
        circuit.enter()
        circuit.succeeded()
    assert opened(Time()).is_open


def test_after_the_wait_one_call_tries_and_no_other() -> None:
    clock = Time()
    circuit = opened(clock)
    clock.now += WAIT_S
    assert circuit.enter()
    with pytest.raises(CircuitOpen):
        circuit.enter()
    circuit.succeeded()
    assert not circuit.enter()


def test_a_try_that_fails_opens_it_for_as_long_again() -> None:
    clock = Time()
    circuit = opened(clock)
    clock.now += WAIT_S
    circuit.failed(circuit.enter())
    clock.now += WAIT_S - 0.1
    assert circuit.is_open
    clock.now += 0.1
    assert circuit.enter()


def test_a_try_that_was_given_up_leaves_the_next_to_try() -> None:
    clock = Time()
    circuit = opened(clock)
    clock.now += WAIT_S
    circuit.abandoned(circuit.enter())
    assert circuit.enter()


def test_a_call_from_before_it_opened_neither_ends_a_try_nor_prolongs_the_wait() -> None:
    clock = Time()
    circuit = Circuit(1, WAIT_S, clock)
    early, other = circuit.enter(), circuit.enter()
    circuit.failed(early)
    clock.now += WAIT_S
    trying = circuit.enter()
    circuit.failed(other)
    assert circuit.is_open, "the one that tries is still at it"
    circuit.abandoned(trying)
    assert not circuit.is_open


@given(st.lists(st.tuples(st.sampled_from(["succeeded", "failed", "left"]), st.floats(0, 8)), max_size=40))
def test_it_never_refuses_longer_than_the_wait_and_always_after_enough_failures(steps: list[tuple[str, float]]) -> None:
    clock = Time()
    circuit = Circuit(FAILURES, WAIT_S, clock)
    in_a_row, last_failure = 0, 0.0
    for how, pause in steps:
        clock.now += pause
        try:
            trying = circuit.enter()
        except CircuitOpen:
            assert in_a_row >= FAILURES
            assert clock.now < last_failure + WAIT_S
            continue
        assert in_a_row < FAILURES or clock.now >= last_failure + WAIT_S
        if how == "succeeded":
            circuit.succeeded()
            in_a_row = 0
        elif how == "failed":
            circuit.failed(trying)
            in_a_row, last_failure = in_a_row + 1, clock.now
        else:
            circuit.abandoned(trying)
