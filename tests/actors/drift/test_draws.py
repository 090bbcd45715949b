"""What is left to chance keeps its bounds and its shares, and is drawn again the same."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from actors.drift.draws import KINDS, STRATEGIES, draw, draw_drift, draw_pause, pause_of
from actors.drift.settings import DriftSettings

SETTINGS = DriftSettings()
IDS = [f"{number:032x}" for number in range(2_000)]

units = st.floats(0.0, 1.0, exclude_max=True)


@given(draws=st.tuples(units, units, units))
def test_a_pause_lasts_210_to_390_seconds_or_in_a_long_gap_up_to_two_and_a_half_times_that(draws: tuple[float, ...]):
    """mode-router: Drift Safeguards, stochastic jitter 210-390s."""
    found = pause_of(draws, SETTINGS)
    assert found.long_gap == (draws[1] < 0.1)
    least, most = (1.8, 2.5) if found.long_gap else (1.0, 1.0)
    assert 210_000 * least - 1 <= found.wake_after_ms <= 390_000 * most + 1


def test_the_ends_of_the_jitter_are_210_and_390_seconds():
    assert pause_of((0.0, 0.5, 0.5), SETTINGS).wake_after_ms == 210_000
    assert pause_of((0.5, 0.5, 0.5), SETTINGS).wake_after_ms == 300_000
    assert pause_of((1.0, 0.5, 0.5), SETTINGS).wake_after_ms == 390_000


def test_a_long_gap_stretches_the_interval_by_1_8_to_2_5():
    """mode-router: Drift Safeguards, extended silence 1.8-2.5x."""
    assert pause_of((0.5, 0.0, 0.0), SETTINGS).wake_after_ms == 540_000
    assert pause_of((0.5, 0.0, 1.0), SETTINGS).wake_after_ms == 750_000


def test_one_gap_in_ten_is_a_long_one():
    """mode-router: Drift Safeguards, long gap probability (10%)."""
    # Of 2,000 fixed ids: six standard deviations are 80.
    assert abs(sum(draw_pause(each, SETTINGS).long_gap for each in IDS) - 200) < 80


def test_strategies_come_first_by_their_weights_and_kinds_alike():
    """mode-router: Seed Selection Strategies, weights 40, 30, 20 and 10%."""
    drawn = [draw_drift(each, SETTINGS) for each in IDS]
    first = Counter(each.strategies[0] for each in drawn)
    for strategy, share in zip(STRATEGIES, (0.4, 0.3, 0.2, 0.1), strict=True):
        assert abs(first[strategy] / len(IDS) - share) < 0.06, strategy
    kinds = Counter(each.kind for each in drawn)
    assert all(abs(kinds[kind] / len(IDS) - 1 / 3) < 0.06 for kind in KINDS)


@given(message_id=st.text(max_size=40))
def test_every_strategy_is_asked_once(message_id: str):
    assert sorted(draw_drift(message_id, SETTINGS).strategies) == sorted(STRATEGIES)


@given(message_id=st.text(max_size=40))
def test_a_strategy_without_weight_is_never_asked(message_id: str):
    settings = DriftSettings(decaying=0.0, random=0.0)
    assert sorted(draw_drift(message_id, settings).strategies) == ["recent", "salient"]


@given(message_id=st.text(max_size=40))
def test_the_same_message_draws_the_same(message_id: str):
    assert draw_drift(message_id, SETTINGS) == draw_drift(message_id, SETTINGS)
    assert draw_pause(message_id, SETTINGS) == draw_pause(message_id, SETTINGS)


@given(message_id=st.text(max_size=40))
def test_a_pause_and_a_course_follow_from_the_draws_on_record(message_id: str):
    found = draw_pause(message_id, SETTINGS)
    assert pause_of(found.draws, SETTINGS) == found
    drawn = draw_drift(message_id, SETTINGS)
    assert drawn.pick == drawn.draws[-2]
    assert drawn.kind == KINDS[int(drawn.draws[-1] * 3)]


@given(message_id=st.text(max_size=40), count=st.integers(1, 8))
def test_draws_are_in_the_unit_interval_and_differ_by_purpose(message_id: str, count: int):
    drawn = draw(message_id, "pause", count)
    assert all(0.0 <= each < 1.0 for each in drawn)
    assert drawn != draw(message_id, "course", count)


def test_draws_are_those_that_earlier_releases_made():
    # Of the generator's raw words, which are fixed for good.
    assert draw("0" * 32, "pause", 2) == (0.20480809860157345, 0.9996279574120023)
