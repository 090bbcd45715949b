"""Decay halves what it should, never grows, and is the same everywhere."""

from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from actors.memory.layers.decay import decayed
from tests.each import each

strengths = st.integers(0, 10_000_000)
spans = st.integers(0, 2**63)
half_lives = st.integers(10**6, 2**62)


@each(("half_lives_passed", "left"), [(0.0, 1_000_000), (0.5, 707_106), (1.0, 500_000), (2.0, 250_000), (60.0, 0)])
def test_every_half_life_halves(half_lives_passed: float, left: int):
    assert decayed(1_000_000, int(half_lives_passed * 10**15), 10**15) == left


@given(strengths, spans, spans, half_lives)
def test_more_time_never_leaves_more(strength: int, one: int, other: int, half_life: int):
    sooner, later = sorted((one, other))
    assert decayed(strength, later, half_life) <= decayed(strength, sooner, half_life) <= strength


@given(st.integers(10**6, 10**7), st.integers(0, 10**16), st.integers(10**13, 10**16))
def test_it_is_the_exponential_to_five_places(strength: int, span: int, half_life: int):
    left = decayed(strength, span, half_life)
    assert isclose(left, strength * 0.5 ** (span / half_life), rel_tol=2e-5, abs_tol=1.0)


@given(strengths, st.integers(-(2**63), 0), half_lives)
def test_time_that_runs_backwards_takes_nothing(strength: int, span: int, half_life: int):
    assert decayed(strength, span, half_life) == strength
