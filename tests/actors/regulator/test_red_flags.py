"""Whatever the monitor may flag red has a pressure that answers it, or says why nothing is moved for it."""

from collections.abc import Mapping
from typing import get_args

import msgspec

from actors.monitor.settings import HEALTHY as RANGES
from actors.monitor.settings import MonitorSettings
from actors.regulator.decision_window import MODES, Counts
from actors.regulator.pressures import REMEDIES, pressures_of
from actors.regulator.settings import RegulatorSettings
from schemas.vocabulary.monitor import Rate
from schemas.vocabulary.regulator import BOUNDS, Adjusted, CycleCompleted, PressureName
from schemas.vocabulary.router import SAMPLE_SIGNALS, Mode
from tests.actors.regulator.builders import HEALTHY, READING_WEIGHTS, WEIGHTS, Regulated, decision, only
from tests.each import each

SOCIAL = msgspec.structs.replace(SAMPLE_SIGNALS, greeting_pattern=True, has_question_mark=False)


def counts(shares: Mapping[Mode, int]) -> Counts:
    """Return decisions by mode, in which nobody missed a question and nobody greeted."""
    return Counts(0, tuple(shares.get(mode, 0) for mode in MODES))


def named(found: Counts) -> dict[PressureName, str]:
    """Return the pressures of some decisions, each with why it is held."""
    return {each.name: each.held for each in pressures_of(found, None, RegulatorSettings(), WEIGHTS)}


@each(
    ("mode", "side", "pressure"),
    [
        ("RESPOND", "above", "respond_over_use"),
        ("RESPOND", "below", "respond_under_use"),
        ("CLARIFY", "above", "clarify_over_use"),
        ("CLARIFY", "below", "clarify_under_use"),
        ("ACT", "above", "act_over_use"),
        ("ACT", "below", "act_under_use"),
        ("ACKNOWLEDGE", "above", "acknowledge_over_use"),
        ("ACKNOWLEDGE", "below", "acknowledge_under_use"),
        ("IGNORE", "above", "ignore_over_use"),
    ],
)
def test_every_red_flag_of_a_mode_has_a_pressure_at_its_own_limit(mode: Mode, side: str, pressure: PressureName):
    healthy = RANGES[mode]
    red = round((healthy.red_above if side == "above" else healthy.red_below) * 1000)
    share = red + 5 if side == "above" else red - 5
    others: list[Mode] = [other for other in MODES if other != mode]
    rest, shares = 1000 - share, {mode: share}
    for place, other in enumerate(others):
        shares[other] = rest // len(others) + (place < rest % len(others))
    assert pressure in named(counts(shares))


@each("rate", sorted(get_args(Rate)))
def test_every_rate_of_the_monitor_has_a_pressure(rate: Rate):
    answers: dict[Rate, tuple[PressureName, ...]] = {
        "tie_breaker": ("tie_breaker",),
        "misroute": ("missed_clarify", "missed_act", "under_engagement"),
        "missed_act": ("missed_act",),
        "mode_entropy": ("mode_entropy",),
    }
    assert set(answers[rate]) <= {*REMEDIES, "mode_entropy"}
    assert RegulatorSettings().missed_act_above == MonitorSettings().missed_act_above


def test_a_share_between_its_range_and_its_red_flag_is_reported_and_not_corrected():
    """Such a share may be the talk's own: the source corrects RESPOND above its range alone."""
    shares: Mapping[Mode, int] = {"RESPOND": 60, "CLARIFY": 25, "ACT": 11, "ACKNOWLEDGE": 2, "IGNORE": 2}
    assert named(counts(shares)) == {}


def test_over_questioning_lowers_the_base_of_clarify():
    moved = only(Adjusted, Regulated().day({"RESPOND": 45, "CLARIFY": 45, "ACT": 5, "ACKNOWLEDGE": 5}))
    assert (moved.pressure, moved.parameter, moved.delta) == ("clarify_over_use", "CLARIFY.base", -0.02)


def test_where_the_first_weight_is_at_its_bound_the_next_one_of_the_table_answers():
    low = {**WEIGHTS, "CLARIFY.base": BOUNDS["CLARIFY.base"][0]}
    modes: Mapping[Mode, int] = {"RESPOND": 45, "CLARIFY": 45, "ACT": 5, "ACKNOWLEDGE": 5}
    moved = only(Adjusted, Regulated().day(modes, weights=low))
    assert (moved.pressure, moved.parameter) == ("clarify_over_use", "clarify.cold_boost")


@each(("mode", "weight"), [("CLARIFY", "clarify.underspecified"), ("ACKNOWLEDGE", "acknowledge.social")])
def test_too_much_of_a_mode_is_answered_by_the_weight_of_the_reading_once_its_base_is_down(mode: Mode, weight: str):
    low = {**READING_WEIGHTS, f"{mode}.base": BOUNDS[f"{mode}.base"][0]}
    moved = only(Adjusted, Regulated().day({"RESPOND": 50, mode: 45, "ACT": 5}, weights=low))
    assert (moved.pressure, moved.parameter) == (f"{mode.lower()}_over_use", weight)
    assert moved.after < moved.before


def test_a_pressure_whose_weights_are_all_at_their_bounds_says_so():
    low = {**WEIGHTS, "CLARIFY.base": 0.1, "clarify.cold_boost": 0.1}
    summary = only(CycleCompleted, Regulated().day({"RESPOND": 60, "CLARIFY": 35, "ACKNOWLEDGE": 5}, weights=low))
    [pressure] = [each for each in summary.pressures if each.name == "clarify_over_use"]
    assert pressure.held == "behind_a_worse_one" or pressure.held == "at_bound"


def test_a_weight_that_the_profile_does_not_have_is_passed_over():
    """``acknowledge.social`` is a weight of some profiles; without it the greeting's weight answers."""
    without = {name: weight for name, weight in WEIGHTS.items() if name != "acknowledge.social"}
    without["acknowledge.greeting"] = 0.5
    agent = Regulated()
    moved = only(Adjusted, greeted_in_vain(agent, without))
    assert (moved.pressure, moved.parameter, moved.delta) == ("acknowledge_under_use", "acknowledge.greeting", 0.02)


def test_greetings_that_are_not_acknowledged_press_though_some_share_of_them_is():
    agent = Regulated()
    agent.partition.now_ns += 43_200_000_000_000
    for _ in range(20):
        agent.hear(decision("RESPOND", signals=SOCIAL))
    agent.decide({"RESPOND": 40, "CLARIFY": 20, "ACT": 14, "ACKNOWLEDGE": 6})
    [pressure] = only(CycleCompleted, agent.cycle()).pressures
    assert (pressure.name, pressure.threshold) == ("acknowledge_under_use", 0.1)


def test_without_greetings_or_thanks_a_lack_of_acknowledging_moves_nothing_and_says_why():
    summary = only(CycleCompleted, Regulated().day({"RESPOND": 70, "CLARIFY": 15, "ACT": 15}))
    assert [(each.name, each.held) for each in summary.pressures] == [("acknowledge_under_use", "no_cue")]
    assert summary.outcome == "held"


def test_where_nobody_missed_a_question_a_lack_of_them_moves_nothing_and_says_why():
    summary = only(CycleCompleted, Regulated().day({"RESPOND": 75, "ACT": 15, "ACKNOWLEDGE": 10}))
    assert [(each.name, each.held) for each in summary.pressures] == [("clarify_under_use", "no_evidence")]


def test_where_somebody_missed_a_question_more_are_asked():
    day = Regulated().day({"RESPOND": 75, "ACT": 15, "ACKNOWLEDGE": 10}, feedbacks=["missed_clarify"] * 2)
    assert (only(Adjusted, day).pressure, only(Adjusted, day).delta > 0) == ("clarify_under_use", True)


def test_a_few_missed_memories_of_a_day_are_told_and_move_nothing():
    summary = only(CycleCompleted, Regulated().day(HEALTHY, feedbacks=["missed_act"] * 7))
    assert [(each.name, each.held) for each in summary.pressures] == [("missed_act", "within_chance")]


def greeted_in_vain(agent: Regulated, weights: Mapping[str, float]) -> list[object]:
    """Return what a day comes to whose greetings were answered at length."""
    agent.partition.now_ns += 43_200_000_000_000
    for _ in range(10):
        agent.hear(decision("RESPOND", signals=SOCIAL, weights=weights))
    agent.decide({"RESPOND": 60, "CLARIFY": 15, "ACT": 15}, weights=weights)
    return list(agent.cycle())


def test_no_pressure_names_a_weight_that_the_profile_lacks():
    for weights in (WEIGHTS, READING_WEIGHTS):
        agent = Regulated()
        agent.decide({"RESPOND": 20, "CLARIFY": 80}, feedbacks=["missed_act"] * 30, weights=weights)
        pressures = only(CycleCompleted, agent.cycle()).pressures
        assert {each.name for each in pressures} >= {"respond_under_use", "clarify_over_use", "missed_act"}
        assert all(each.parameter in weights for each in pressures if each.parameter)
