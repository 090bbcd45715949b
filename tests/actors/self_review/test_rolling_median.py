"""Median and deviation of a window in order are those of the window, to the bit."""

import statistics

from hypothesis import given
from hypothesis import strategies as st

from actors.self_review.rolling_median import deviation, median, normalised, replaced_in_order

values = st.lists(st.floats(0, 10, allow_nan=False) | st.sampled_from([0.0, 0.5, 1.0]), max_size=40)


@given(values)
def test_the_median_is_the_middle_of_all(found: list[float]):
    assert median(tuple(sorted(found))) == (statistics.median(found) if found else 0.0)


@given(values)
def test_the_deviation_is_the_median_of_all_distances_from_the_median(found: list[float]):
    middle = statistics.median(found) if found else 0.0
    wanted = statistics.median([abs(value - middle) for value in found]) if found else 0.0
    assert deviation(tuple(sorted(found))) == wanted


@given(values, st.data())
def test_a_value_takes_the_place_of_another_in_order(found: list[float], data: st.DataObject):
    gone = data.draw(st.sampled_from(found)) if found else None
    left = list(found)
    if gone is not None:
        left.remove(gone)
    assert replaced_in_order(tuple(sorted(found)), gone, 0.7) == tuple(sorted([*left, 0.7]))


def test_a_value_is_normalised_by_median_and_deviation():
    assert normalised(0.82, 0.1, 0.05, 1e-6) == (0.82 - 0.1) / (0.05 + 1e-6)
    assert normalised(0.5, 0.5, 0.0, 1e-6) == 0.0
