"""Source M, "Routing Stability Regulator": steps 1 to 3, the pressures of a cycle and the weight that answers each."""

from collections.abc import Mapping

import pytest

from actors.regulator.pressures import DIMENSIONS
from schemas.vocabulary.reflection import Dimension
from schemas.vocabulary.regulator import BOUNDS, Adjusted, CycleCompleted, PressureName
from schemas.vocabulary.router import Feedback, Mode
from tests.actors.regulator.builders import HEALTHY, READING_WEIGHTS, WEIGHTS, Regulated, concluded, decision, only
from tests.each import each

OVERCONFIDENT: Mapping[Mode, int] = {"RESPOND": 90, "CLARIFY": 4, "ACT": 3, "ACKNOWLEDGE": 3}


def test_a_healthy_day_has_no_pressure():
    summary = only(CycleCompleted, Regulated().day())
    assert (summary.pressures, summary.outcome, summary.decisions) == ((), "no_pressure", 100)


@each(("ambiguous", "severity"), [(20, None), (30, 0.125), (60, 0.5), (100, 1.0)], named=["at", "above", "half", "all"])
def test_the_tie_breaker_rate_presses_above_a_fifth(ambiguous: int, severity: float | None):
    """mode-router: Routing Stability Regulator, 2 tie-breaker rate."""
    summary = only(CycleCompleted, Regulated().day(ambiguous=ambiguous))
    assert [(each.name, each.severity) for each in summary.pressures] == (
        [] if severity is None else [("tie_breaker", severity)]
    )


def test_an_ambiguous_day_narrows_the_tie_breakers_margin():
    moved = only(Adjusted, Regulated().day(ambiguous=30))
    assert (moved.parameter, moved.delta, moved.before, moved.after) == (
        "tiebreaker_base_margin",
        -0.00625,
        0.2,
        0.19375,
    )


def test_a_day_without_act_raises_its_base():
    moved = only(Adjusted, Regulated().day({"RESPOND": 70, "CLARIFY": 15, "ACKNOWLEDGE": 15}))
    assert (moved.pressure, moved.parameter, moved.delta, moved.metric_before) == (
        "act_under_use",
        "ACT.base",
        0.02,
        1.0,
    )


@each(("acts", "presses"), [(1, True), (2, False)])
def test_act_is_under_used_below_two_percent(acts: int, presses: bool):
    """mode-router: Routing Stability Regulator, 2 ACT opportunity miss rate."""
    modes: Mapping[Mode, int] = {"RESPOND": 70, "CLARIFY": 15, "ACKNOWLEDGE": 15 - acts, "ACT": acts}
    summary = only(CycleCompleted, Regulated().day(modes))
    assert ("act_under_use" in {each.name for each in summary.pressures}) is presses


def test_too_much_responding_lowers_its_base():
    moved = only(Adjusted, Regulated().day(OVERCONFIDENT))
    assert (moved.pressure, moved.parameter, moved.delta, moved.metric_before) == (
        "respond_over_use",
        "RESPOND.base",
        -0.02,
        0.15,
    )


@each(
    ("kind", "parameter"),
    [
        ("missed_clarify", "clarify.cold_boost"),
        ("missed_act", "act.question_moderate_context"),
        ("under_engagement", "acknowledge.question_penalty"),
    ],
)
def test_misroutes_are_answered_by_their_commonest_kind(kind: Feedback, parameter: str):
    """mode-router: Routing Stability Regulator, 2 misroute rate."""
    kinds: list[Feedback] = [kind] * 20 + ["missed_clarify", "missed_act", "under_engagement"]
    moved = only(Adjusted, Regulated().day(feedbacks=kinds))
    assert (moved.pressure, moved.parameter) == (kind, parameter)
    assert moved.delta == pytest.approx(0.05 * (0.23 - 0.1) / 0.9, abs=1e-6)
    assert moved.metric_before == 0.21


@each(
    ("kind", "parameter", "raised"),
    [
        ("missed_clarify", "clarify.underspecified", True),
        ("missed_act", "act.recall", True),
        ("under_engagement", "acknowledge.social", False),
    ],
)
def test_where_what_a_text_is_decides_the_weights_of_that_answer(kind: Feedback, parameter: str, raised: bool):
    moved = only(Adjusted, Regulated().day(feedbacks=[kind] * 20, weights=READING_WEIGHTS))
    assert (moved.pressure, moved.parameter, moved.delta > 0) == (kind, parameter, raised)


@each("dimension", sorted(DIMENSIONS))
def test_there_an_opinion_moves_a_weight_that_has_a_say(dimension: Dimension):
    agent = Regulated()
    agent.decide(weights=READING_WEIGHTS)
    agent.hear(concluded(0.4, dimension))
    moved = only(Adjusted, agent.cycle())
    assert (moved.parameter, 1 if moved.delta > 0 else -1) == DIMENSIONS[dimension][0]
    assert READING_WEIGHTS[moved.parameter] > 0


def test_one_in_ten_misrouted_is_no_pressure():
    summary = only(CycleCompleted, Regulated().day(feedbacks=["missed_clarify"] * 10))
    assert summary.pressures == ()


def test_what_was_routed_well_is_no_misroute():
    summary = only(CycleCompleted, Regulated().day(feedbacks=["correct_route"] * 50))
    assert summary.pressures == ()


@each(
    ("dimension", "parameter", "sign"),
    [
        ("memory_availability", "act.question_moderate_context", 1),
        ("intent_clarity", "clarify.cold_boost", 1),
        ("tone_ambiguity", "acknowledge.greeting", -1),
        ("context_sufficiency", "respond.cold_penalty", 1),
        ("social_cue", "ACKNOWLEDGE.base", 1),
        ("reference_ambiguity", "act.implicit_reference", 1),
    ],
)
def test_a_sustained_disagreement_is_answered_by_its_dimension(dimension: Dimension, parameter: str, sign: int):
    """mode-router: Routing Stability Regulator, 2 reflection disagreement."""
    agent = Regulated()
    agent.decide()
    agent.hear(concluded(0.4, dimension))
    moved = only(Adjusted, agent.cycle())
    assert (moved.pressure, moved.parameter, moved.delta) == ("reflection", parameter, sign * 0.0125)


@each(
    ("disagreement", "share", "pressure"),
    [(0.2, 0.5, True), (0.4, 0.5, False), (0.4, 0.3, True)],
    named=["no_more_than_a_fifth", "not_sustained", "of_no_one_dimension"],
)
def test_a_lesser_disagreement_moves_nothing(disagreement: float, share: float, pressure: bool):
    agent = Regulated()
    agent.decide()
    agent.hear(concluded(disagreement, "intent_clarity", share, pressure=pressure))
    assert not [event for event in agent.cycle() if isinstance(event, Adjusted)]


def test_an_old_disagreement_is_none():
    agent = Regulated()
    agent.hear(concluded(0.4, "intent_clarity"))
    agent.cycle()
    assert only(CycleCompleted, agent.day()).pressures == ()
    assert only(CycleCompleted, agent.day()).pressures == ()


def test_one_mode_alone_is_answered_at_its_base():
    """mode-router: Routing Stability Regulator, 2 mode entropy."""
    modes: Mapping[Mode, int] = {"RESPOND": 92, "CLARIFY": 4, "ACT": 4}
    led_to = Regulated().day(modes, weights={**WEIGHTS, "tiebreaker_base_margin": 0.08})
    [pressure] = [each for each in only(CycleCompleted, led_to).pressures if each.name == "mode_entropy"]
    assert (pressure.parameter, pressure.sign) == ("RESPOND.base", -1)
    assert only(Adjusted, led_to).parameter == "RESPOND.base"


def test_an_agent_that_ignores_everything_has_no_weight_to_move_for_that():
    """Blank inputs are ignored before anything is scored: no weight could change it, and the cycle says so."""
    summary = only(CycleCompleted, Regulated().day({"IGNORE": 50, "ACT": 2}))
    told = {each.name: each for each in summary.pressures}
    assert (told["ignore_over_use"].parameter, told["ignore_over_use"].held) == ("", "no_weight")
    assert (told["mode_entropy"].parameter, told["mode_entropy"].held) == ("", "no_weight")


def test_the_worst_pressure_is_answered_and_no_other():
    """mode-router: Routing Stability Regulator, 3 worst pressure -> a single parameter."""
    led_to = Regulated().day(OVERCONFIDENT, ambiguous=100, feedbacks=["missed_act"] * 15)
    summary, moved = only(CycleCompleted, led_to), only(Adjusted, led_to)
    names: list[PressureName] = [each.name for each in summary.pressures]
    assert names == ["tie_breaker", "respond_over_use", "mode_entropy", "missed_act"]
    severities = [each.severity for each in summary.pressures]
    assert severities == sorted(severities, reverse=True)
    assert moved.pressure == "tie_breaker"


def test_where_the_worst_cannot_be_answered_the_next_one_is():
    weights = {**WEIGHTS, "tiebreaker_base_margin": 0.08}
    moved = only(Adjusted, Regulated().day(OVERCONFIDENT, ambiguous=100, weights=weights))
    assert moved.pressure == "respond_over_use"


@each("severity", [0.1, 0.4, 1.0])
def test_a_change_is_a_twentieth_of_the_severity_and_two_hundredths_at_most(severity: float):
    ambiguous = round((0.2 + severity * 0.8) * 100)
    moved = only(Adjusted, Regulated().day(ambiguous=ambiguous))
    assert -moved.delta == pytest.approx(min(0.05 * severity, 0.02), abs=1e-6)


@each("decisions", [9, 10])
def test_fewer_than_ten_decisions_are_not_judged(decisions: int):
    summary = only(CycleCompleted, Regulated().day({"RESPOND": decisions}))
    assert (summary.outcome == "too_few_decisions") is (decisions < 10)
    assert bool(summary.pressures) is (decisions >= 10)


def test_the_choice_after_an_act_loop_is_no_decision_of_its_own():
    agent = Regulated()
    agent.decide({"ACT": 10})
    before = agent.record
    agent.hear(decision("RESPOND", rerouted=True))
    assert agent.record == before


def test_only_the_last_day_counts():
    """mode-router: Routing Stability Regulator, 1 pressure signals of the last 24h."""
    agent = Regulated()
    agent.day(OVERCONFIDENT)
    agent.partition.now_ns += 60 * 60 * 1_000_000_000
    assert only(CycleCompleted, agent.day(HEALTHY)).pressures == ()


def test_every_weight_of_the_contract_has_its_hard_bounds():
    """mode-router: Routing Stability Regulator, 4 hard bounds on all weights."""
    assert dict(BOUNDS) == {
        "respond.answerable": (0.10, 0.50),
        "respond.task": (0.10, 0.50),
        "clarify.underspecified": (0.60, 1.80),
        "act.recall": (0.45, 1.35),
        "acknowledge.social": (0.45, 1.35),
        "RESPOND.base": (0.30, 0.70),
        "CLARIFY.base": (0.10, 0.50),
        "ACT.base": (0.05, 0.40),
        "ACKNOWLEDGE.base": (0.0, 0.30),
        "respond.warmth_boost": (0.05, 0.40),
        "respond.cold_penalty": (0.05, 0.30),
        "clarify.cold_boost": (0.10, 0.40),
        "clarify.warm_penalty": (0.05, 0.35),
        "act.question_moderate_context": (0.05, 0.35),
        "act.implicit_reference": (0.05, 0.30),
        "acknowledge.greeting": (0.30, 0.80),
        "acknowledge.question_penalty": (0.10, 0.50),
        "tiebreaker_base_margin": (0.08, 0.30),
    }
