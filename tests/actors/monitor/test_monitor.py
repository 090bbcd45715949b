"""Source M, "Mode Entropy Monitoring": every row of its table, the rates beside it, and hysteresis."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from actors.monitor import ACTOR
from actors.monitor.hysteresis import Condition, condition_of
from actors.monitor.settings import HEALTHY, MonitorSettings, Range
from schemas.catalogue import entry_of
from schemas.entry import Severity
from schemas.event import Event
from schemas.vocabulary.monitor import ModeInRange, ModeOutOfRange, ModeRedFlag, RateExceeded, RateRecovered
from schemas.vocabulary.router import Feedback, Mode
from tests.actors.regulator.builders import DAY_MS, decision, feedback
from tests.actors.scenario import Address, Partition
from tests.each import each

HEALTHY_MIX: Mapping[Mode, int] = {"RESPOND": 124, "CLARIFY": 28, "ACT": 24, "ACKNOWLEDGE": 22, "IGNORE": 2}
AT_ONCE = MonitorSettings(decisions_needed=200)
"""Judges nothing before a window is full, so that a test's mix counts as a whole."""


def watching(settings: MonitorSettings = AT_ONCE) -> Partition:
    return Partition(ACTOR).configure(settings)


def decide(monitor: Partition, modes: Mapping[Mode, int], *, ambiguous: int = 0) -> list[Event]:
    """Let decisions be made, the first ``ambiguous`` of them close ones; return what they led to."""
    kinds = [mode for mode, count in modes.items() for _ in range(count)]
    led_to: list[Event] = []
    for place, mode in enumerate(kinds):
        led_to += monitor.when(decision(mode, ambiguous=place < ambiguous))
    return led_to


def told(monitor: Partition, kinds: Iterable[Feedback]) -> list[Event]:
    return [event for kind in kinds for event in monitor.when(feedback(kind))]


def with_share(mode: Mode, percent: float) -> dict[Mode, int]:
    """Return two hundred decisions, the share of one mode as given, the rest spread as it is healthy."""
    count = round(percent * 2)
    others = {each: number for each, number in HEALTHY_MIX.items() if each != mode}
    whole = sum(others.values())
    mix = {each: (200 - count) * number // whole for each, number in others.items()}
    mix["RESPOND" if mode != "RESPOND" else "CLARIFY"] += 200 - count - sum(mix.values())
    return {**mix, mode: count}


def of(mode: Mode, events: Iterable[Event]) -> list[Event]:
    return [event for event in events if getattr(event, "mode", None) == mode]


def test_a_healthy_mix_is_reported_by_nothing():
    assert decide(watching(), HEALTHY_MIX) == []


@each(
    ("mode", "healthy", "red"),
    [
        ("RESPOND", (50, 75), (40, 85)),
        ("CLARIFY", (8, 20), (3, 30)),
        ("ACT", (5, 15), (2, 25)),
        ("ACKNOWLEDGE", (3, 12), (1, 20)),
        ("IGNORE", (0, 2), (0, 5)),
    ],
)
def test_the_table_of_healthy_ranges_and_red_flags(mode: Mode, healthy: tuple[int, int], red: tuple[int, int]):
    """mode-router: Mode Entropy Monitoring, RESPOND, CLARIFY, ACT, ACKNOWLEDGE and IGNORE."""
    (low, high), (red_low, red_high) = healthy, red
    for percent in (low, high):
        assert of(mode, decide(watching(), with_share(mode, percent))) == []
    cases: list[tuple[float, type[Event]]] = [(high + 0.5, ModeOutOfRange), (red_high + 0.5, ModeRedFlag)]
    if low:
        cases += [(low - 0.5, ModeOutOfRange), (red_low - 0.5, ModeRedFlag)]
    for percent, kind in cases:
        [event] = of(mode, decide(watching(), with_share(mode, percent)))
        assert type(event) is kind
        assert event.share == round(percent / 100, 6)  # type: ignore[attr-defined]


@each(
    ("mode", "percent", "sign"),
    [
        ("RESPOND", 86, "overconfident"),
        ("RESPOND", 39, "under-committing"),
        ("CLARIFY", 31, "over-questioning"),
        ("CLARIFY", 2, "never clarifying"),
        ("ACT", 1, "ACT death"),
        ("ACT", 26, "over-processing"),
        ("ACKNOWLEDGE", 0.5, "ignoring social cues"),
        ("ACKNOWLEDGE", 21, "trivializing"),
        ("IGNORE", 6, "dropping messages"),
    ],
)
def test_a_red_flag_says_what_it_is_a_sign_of(mode: Mode, percent: float, sign: str):
    """mode-router: Mode Entropy Monitoring, what each red flag means."""
    [event] = of(mode, decide(watching(), with_share(mode, percent)))
    assert isinstance(event, ModeRedFlag)
    assert event.sign == sign


def test_what_is_out_of_range_warns_and_what_is_red_is_critical():
    assert entry_of(ModeOutOfRange).severity is Severity.WARNING
    assert entry_of(ModeRedFlag).severity is Severity.CRITICAL
    assert entry_of(RateExceeded).severity is Severity.WARNING
    assert entry_of(ModeInRange).severity is entry_of(RateRecovered).severity is None


def test_fewer_than_thirty_decisions_are_not_judged():
    monitor = watching(MonitorSettings())
    assert decide(monitor, {"RESPOND": 29}) == []
    assert decide(monitor, {"RESPOND": 1}) != []


def test_a_change_is_reported_once():
    monitor = watching()
    assert of("RESPOND", decide(monitor, with_share("RESPOND", 90))) != []
    assert of("RESPOND", decide(monitor, {"RESPOND": 9})) == []


def test_a_mode_comes_back_in_range_and_that_ends_it():
    monitor = watching()
    decide(monitor, with_share("RESPOND", 80))
    assert [type(each) for each in of("RESPOND", decide(monitor, HEALTHY_MIX))][-1] is ModeInRange


def test_a_mode_that_hovers_at_its_limit_is_reported_once():
    monitor = watching(MonitorSettings(decisions=101, decisions_needed=101))
    events = of("RESPOND", [event for _ in range(60) for event in decide(monitor, {"RESPOND": 3, "ACT": 1})])
    shares_reached = {round(count / 101, 3) for count in (75, 76)}
    assert min(shares_reached) < 0.75 < max(shares_reached)
    assert [type(event) for event in events] == [ModeOutOfRange]


def test_a_red_flag_that_comes_down_leaves_a_warning():
    healthy = HEALTHY["RESPOND"]
    red = Condition("red", "above")
    assert condition_of(0.84, healthy, red, 0.02) == red
    assert condition_of(0.82, healthy, red, 0.02) == Condition("out", "above")
    assert condition_of(0.74, healthy, Condition("out", "above"), 0.02) == Condition("out", "above")
    assert condition_of(0.72, healthy, Condition("out", "above"), 0.02) is None


def test_a_mode_may_cross_from_one_side_to_the_other():
    assert condition_of(0.1, HEALTHY["RESPOND"], Condition("red", "above"), 0.02) == Condition("red", "below")


@given(
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    mode=st.sampled_from(sorted(HEALTHY)),
    hysteresis=st.floats(0, 1),
)
@hypothesis_settings(deadline=None)
def test_what_lies_beyond_a_limit_is_never_called_healthy(shares: list[float], mode: Mode, hysteresis: float):
    healthy, condition = HEALTHY[mode], None
    for share in shares:
        condition = condition_of(share, healthy, condition, hysteresis)
        if share > healthy.red_above or share < healthy.red_below:
            assert condition is not None
            assert condition.level == "red"
        if not healthy.low <= share <= healthy.high:
            assert condition is not None
        middle = (healthy.low + healthy.high) / 2
        assert condition_of(middle, healthy, condition, hysteresis) is None


@each(("ambiguous", "exceeded"), [(40, False), (41, True)])
def test_the_tie_breaker_rate_is_reported_above_a_fifth(ambiguous: int, exceeded: bool):
    events = decide(watching(), HEALTHY_MIX, ambiguous=ambiguous)
    assert [each.rate for each in events if isinstance(each, RateExceeded)] == (["tie_breaker"] if exceeded else [])


@each(("misrouted", "exceeded"), [(20, False), (21, True)])
def test_the_misroute_rate_is_reported_above_a_tenth(misrouted: int, exceeded: bool):
    monitor = watching()
    decide(monitor, HEALTHY_MIX)
    events = told(monitor, ["missed_clarify"] * misrouted)
    assert [each.rate for each in events if isinstance(each, RateExceeded)] == (["misroute"] if exceeded else [])


def test_missed_chances_to_act_are_reported_by_themselves():
    monitor = watching()
    decide(monitor, HEALTHY_MIX)
    [event] = told(monitor, ["missed_act"] * 11)
    assert isinstance(event, RateExceeded)
    assert (event.rate, event.value, event.side) == ("missed_act", 0.055, "above")


def test_a_low_mode_entropy_is_reported():
    events = decide(watching(), {"RESPOND": 190, "CLARIFY": 10})
    [event] = [each for each in events if isinstance(each, RateExceeded)]
    assert (event.rate, event.side) == ("mode_entropy", "below")
    assert event.value == pytest.approx(0.123, abs=0.001)


def test_praise_is_no_misroute():
    monitor = watching()
    decide(monitor, HEALTHY_MIX)
    assert told(monitor, ["correct_route"] * 100) == []


def test_a_rate_recovers_when_its_misroutes_have_left_the_window():
    monitor = watching()
    decide(monitor, HEALTHY_MIX)
    told(monitor, ["missed_clarify"] * 30)
    monitor.now_ns += 1
    events = decide(monitor, HEALTHY_MIX)
    assert [each.rate for each in events if isinstance(each, RateRecovered)] == ["misroute"]


def test_decisions_older_than_a_day_are_forgotten():
    monitor = watching(MonitorSettings())
    decide(monitor, {"RESPOND": 30})
    assert monitor.when(decision("CLARIFY"), after_ms=DAY_MS + 1) == []
    [watch] = monitor.state.watches.values()
    assert len(watch.window.decisions) == 1


def test_act_counts_by_the_first_choice_of_an_exchange():
    monitor = watching()
    decide(monitor, {"ACT": 3})
    monitor.hear(decision("RESPOND", rerouted=True))
    [watch] = monitor.state.watches.values()
    assert [each.mode for each in watch.window.decisions] == ["ACT"] * 3


def test_agents_are_watched_each_for_itself():
    monitor = watching(MonitorSettings(decisions_needed=3))
    for agent in ("ann", "bob"):
        led_to = [monitor.hear(decision("RESPOND"), Address(agent=agent)) for _ in range(3)]
        assert {message.agent for messages in led_to for message in messages} == {agent}


def test_what_is_reported_is_no_part_of_an_exchange():
    monitor = watching(MonitorSettings(decisions_needed=3))
    decide(monitor, {"RESPOND": 3})
    assert {(message.session, message.exchange) for message in monitor.emitted} == {("", "")}


def test_limits_that_cross_are_refused():
    with pytest.raises(ValueError, match="red_below"):
        Range(low=0.5, high=0.4)
