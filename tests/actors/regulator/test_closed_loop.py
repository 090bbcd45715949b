"""Source M, "Routing Stability Regulator": steps 4 and 5, limits on change and the closed loop; and its schedule."""

from collections.abc import Mapping

import pytest

from actors.regulator.settings import RegulatorSettings
from schemas.event import topic_of
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.regulator import Adjusted, Confirmed, CycleCompleted, RegulatorScheduled, Reverted
from schemas.vocabulary.router import Mode
from tests.actors.regulator.builders import DAY_MS, HEALTHY, WEIGHTS, Regulated, only
from tests.actors.scenario import MS
from tests.each import each


def responding(share: int) -> Mapping[Mode, int]:
    """Return a hundred decisions of which so many were RESPOND."""
    rest = 100 - share
    return {"RESPOND": share, "CLARIFY": rest // 2, "ACKNOWLEDGE": rest // 4, "ACT": rest - rest // 2 - rest // 4}


def judged(before: int, after: int) -> tuple[Regulated, list[object]]:
    """Return an agent whose RESPOND share was ``before`` when it was adjusted, and its cycle two days later."""
    agent = Regulated(RegulatorSettings(series_steps=1))
    only(Adjusted, agent.day(responding(before)))
    agent.day(responding(after))
    return agent, list(agent.day(responding(after)))


def test_the_first_decision_of_an_agent_schedules_a_cycle_a_day_later():
    """mode-router: Routing Stability Regulator, 24h cycle."""
    assert Regulated().decide({"RESPOND": 1}) == [RegulatorScheduled(wake_after_ms=DAY_MS)]


def test_later_decisions_schedule_nothing():
    assert len(Regulated().decide({"RESPOND": 30})) == 1


def test_what_is_scheduled_and_done_is_no_part_of_an_exchange():
    partition = Regulated().partition
    agent = Regulated()
    agent.day(responding(90))
    assert partition.emitted == []
    assert {(each.session, each.exchange) for each in agent.partition.emitted} == {("", "")}


def test_a_cycle_schedules_the_next_one_and_comes_to_one_change_at_most():
    led_to = Regulated().day(responding(90))
    assert [type(event) for event in led_to] == [Adjusted, CycleCompleted]
    assert only(CycleCompleted, led_to).wake_after_ms == DAY_MS


def test_an_idle_agent_has_no_next_cycle_until_it_decides_again():
    agent = Regulated()
    agent.day()
    summary = only(CycleCompleted, agent.cycle(after_ms=5 * DAY_MS))
    assert (summary.outcome, summary.wake_after_ms) == ("idle", 0)
    assert agent.decide({"RESPOND": 1}) == [RegulatorScheduled(wake_after_ms=DAY_MS)]


def test_after_days_without_a_process_one_cycle_runs_and_not_many():
    agent = Regulated()
    agent.day(responding(90))
    only(CycleCompleted, agent.cycle(after_ms=10 * DAY_MS))
    assert agent.cycle(after_ms=0) == []


def test_another_actors_timer_starts_no_cycle():
    agent = Regulated()
    agent.decide()
    assert agent.hear(ClockFired(set_by="forged_id.breaker.tripped", due_ns=0)) == []


def test_the_period_is_a_setting():
    minute = RegulatorSettings(period_ms=60_000, window_ms=60_000, judge_after_ms=120_000)
    agent = Regulated(minute)
    assert agent.decide({"RESPOND": 1}) == [RegulatorScheduled(wake_after_ms=60_000)]
    assert only(CycleCompleted, agent.cycle(after_ms=60_000)).wake_after_ms == 60_000


def test_an_adjustment_is_not_judged_before_two_days():
    agent = Regulated()
    agent.day(responding(90))
    led_to = agent.day(responding(60))
    assert [type(event) for event in led_to] == [CycleCompleted]


def test_an_adjustment_that_helped_is_confirmed():
    """mode-router: Routing Stability Regulator, 5 evaluates whether adjustments improved metrics."""
    agent, led_to = judged(before=90, after=70)
    kept = only(Confirmed, led_to)
    assert (kept.metric_before, kept.metric_after, kept.offset) == (0.15, 0.0, -0.02)
    assert dict(agent.record.offsets) == {"RESPOND.base": -0.02}
    assert agent.record.trials == ()


@each(
    ("after", "verdict"),
    [(89, "no_improvement"), (90, "no_improvement"), (95, "worse")],
    named=["little", "none", "worse"],
)
def test_an_adjustment_that_did_not_help_is_undone(after: int, verdict: str):
    """mode-router: Routing Stability Regulator, 5 reverts if no improvement or degradation."""
    agent, led_to = judged(before=90, after=after)
    undone = only(Reverted, led_to)
    assert (undone.verdict, undone.delta, undone.offset) == (verdict, 0.02, 0.0)
    assert (undone.before, undone.after) == (0.38, 0.4)
    assert dict(agent.record.offsets) == {}


def test_a_cycle_that_undoes_makes_no_new_adjustment():
    _, led_to = judged(before=90, after=95)
    assert [type(event) for event in led_to] == [Reverted, CycleCompleted]


@each(("after", "size"), [(90, 0.02), (95, 0.01)], named=["no_improvement", "worse"])
def test_only_what_made_things_worse_is_halved_the_next_time(after: int, size: float):
    agent, _ = judged(before=90, after=after)
    agent.day(HEALTHY)
    moved = only(Adjusted, agent.day(responding(95)))
    assert moved.delta == -size


def test_an_adjustment_that_helps_ends_the_halving():
    agent, _ = judged(before=90, after=95)
    agent.day(HEALTHY)
    assert only(Adjusted, agent.day(responding(95))).delta == -0.01
    agent.day(HEALTHY)
    led_to = agent.day(responding(80))
    only(Confirmed, led_to)
    assert only(Adjusted, led_to).delta == -0.01  # of a severity of .2, whole again
    assert dict(agent.record.factors) == {}


def test_halving_goes_on_to_the_least_step():
    agent, sizes = Regulated(), []
    for _ in range(7):
        sizes.append(-only(Adjusted, agent.day(responding(90))).delta)
        agent.day(responding(99))
        only(Reverted, agent.day(responding(99)))
        agent.day(HEALTHY)
    assert sizes == [0.02, 0.01, 0.005, 0.0025, 0.00125, 0.001, 0.001]


def test_a_weight_is_left_alone_for_two_days_after_it_was_undone():
    agent, _ = judged(before=90, after=95)
    summary = only(CycleCompleted, agent.day(responding(95)))
    assert summary.outcome == "held"
    assert only(CycleCompleted, agent.day(responding(95))).outcome == "adjusted"


def test_while_one_weight_is_on_trial_another_may_be_moved():
    agent = Regulated()
    agent.day(responding(90))
    moved = only(Adjusted, agent.day(responding(90), ambiguous=60))
    assert moved.parameter == "tiebreaker_base_margin"
    assert len(agent.record.trials) == 2


def test_a_change_is_clipped_at_its_bound_and_undone_by_what_was_applied():
    agent = Regulated()
    low = {**WEIGHTS, "RESPOND.base": 0.305}
    moved = only(Adjusted, agent.day(responding(90), weights=low))
    assert (moved.requested, moved.delta, moved.after) == (-0.02, -0.005, 0.3)
    agent.day(responding(95), weights=low)
    undone = only(Reverted, agent.day(responding(95), weights=low))
    assert (undone.delta, undone.before, undone.after, undone.offset) == (0.005, 0.3, 0.305, 0.0)


def test_the_tie_breakers_margin_stays_above_the_minimum_one_in_force():
    weights = {**WEIGHTS, "tiebreaker_base_margin": 0.16, "tiebreaker_min_margin": 0.15}
    moved = only(Adjusted, Regulated().day(ambiguous=100, weights=weights))
    assert (moved.requested, moved.after) == (-0.02, 0.15)


@each("weight", [0.30, 0.75, 0.20], named=["at_its_bound", "set_above_it", "set_below_it"])
def test_a_weight_that_cannot_be_led_within_its_bounds_is_left_alone(weight: float):
    summary = only(CycleCompleted, Regulated().day(responding(90), weights={**WEIGHTS, "RESPOND.base": weight}))
    assert summary.outcome == "held"


def test_an_adjustment_waits_for_decisions_enough_to_judge_it_by():
    agent = Regulated()
    agent.day(responding(90))
    agent.day(responding(60))
    agent.day({"RESPOND": 1})
    assert len(agent.record.trials) == 1
    only(Confirmed, agent.day(responding(60)))


def test_an_adjustment_that_nothing_can_be_measured_of_is_undone_after_a_week():
    agent = Regulated()
    agent.day(responding(90))
    outcomes = [agent.day({"RESPOND": 1}) for _ in range(7)]
    assert [only(CycleCompleted, each).outcome for each in outcomes] == [*["too_few_decisions"] * 6, "reverted"]
    undone = only(Reverted, outcomes[-1])
    assert (undone.verdict, undone.metric_after) == ("unmeasured", None)


@each(("percent", "outcome"), [(75.4, "held"), (77, "adjusted")], named=["below_the_least_step", "above_it"])
def test_a_step_that_is_too_small_to_tell_from_chance_is_not_made(percent: float, outcome: str):
    share = round(percent * 10)
    mix: Mapping[Mode, int] = {"RESPOND": share, "CLARIFY": 100, "ACT": 50, "ACKNOWLEDGE": 850 - share}
    assert only(CycleCompleted, Regulated().day(mix)).outcome == outcome


def test_an_allowance_without_room_for_the_least_step_is_refused_but_none_at_all_is_not():
    with pytest.raises(ValueError, match="least_step"):
        RegulatorSettings(per_day=0.0005)
    assert only(CycleCompleted, Regulated(RegulatorSettings(per_day=0.0)).day(responding(90))).outcome == "held"


def test_agents_are_regulated_each_for_itself():
    ann = Regulated(agent="ann")
    bob = Regulated(agent="bob")
    bob.partition = ann.partition
    bob.decide(HEALTHY)
    only(Adjusted, ann.day(responding(90)))
    assert only(CycleCompleted, bob.cycle(after_ms=0)).pressures == ()
    assert dict(bob.record.offsets) == {}


def test_a_judgement_that_would_look_back_before_the_adjustment_is_refused():
    with pytest.raises(ValueError, match="judge_after_ms"):
        RegulatorSettings(judge_after_ms=DAY_MS)


def test_the_cycle_is_the_one_that_its_own_timer_set():
    agent = Regulated()
    agent.decide()
    fired = ClockFired(set_by=topic_of(RegulatorScheduled), due_ns=agent.partition.now_ns + DAY_MS * MS)
    only(CycleCompleted, agent.hear(fired, after_ms=DAY_MS))
