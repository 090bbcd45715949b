"""The sliding window, against a list of everything that was ever counted."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from actors.swarm.sliding_window import Window

additions = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 5), st.integers(0, 8)), max_size=60)


@given(additions)
def test_the_window_holds_what_was_counted_within_its_slices(steps: list[tuple[str, int, int]]):
    window, now = Window(), 0
    everything: list[tuple[int, str, int]] = []
    for name, count, wait in steps:
        now += wait
        window = window.move_to(now, 2, 5).add(name, count)
        everything.append((now, name, count))
        expected: Counter[str] = Counter()
        for time, counted, number in everything:
            expected[counted] += number if time // 2 > now // 2 - 5 else 0
        assert {each: window.count_of(each) for each in "abc"} == {each: expected[each] for each in "abc"}
        assert all(window.closed_sum.values())
        assert len(window.closed) < 5


def test_a_window_that_has_passed_is_empty():
    window = Window().move_to(10, 2, 5).add("a", 3)
    assert window.move_to(18, 2, 5).count_of("a") == 3
    assert window.move_to(20, 2, 5) == Window().move_to(20, 2, 5)


def test_a_time_before_the_slice_under_way_changes_nothing():
    window = Window().move_to(10, 2, 5).add("a")
    assert window.move_to(3, 2, 5) is window
