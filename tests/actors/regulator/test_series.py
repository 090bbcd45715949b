"""A gap wider than one step is crossed in steps that are judged as one, and undone as they were made."""

from collections.abc import Mapping
from itertools import pairwise

from actors.regulator.settings import RegulatorSettings
from schemas.event import Event
from schemas.vocabulary.regulator import Adjusted, Confirmed, CycleCompleted, Reverted
from schemas.vocabulary.router import Mode
from tests.actors.regulator.builders import DAY_MS, HEALTHY, Regulated, only
from tests.actors.scenario import MS

ASKING: Mapping[Mode, int] = {"RESPOND": 47, "CLARIFY": 42, "ACT": 6, "ACKNOWLEDGE": 5}
CONTENT: Mapping[Mode, int] = {"RESPOND": 62, "CLARIFY": 20, "ACT": 10, "ACKNOWLEDGE": 8}


def changes(agent: Regulated) -> list[tuple[int, Adjusted | Reverted]]:
    return [(at_ns, event) for at_ns, event in agent.events if isinstance(event, Adjusted | Reverted)]


def of_clarify(agent: Regulated) -> list[Adjusted | Reverted]:
    return [event for _, event in changes(agent) if event.parameter == "CLARIFY.base"]


def lived(agent: Regulated, days: int, until_offset: float = -9.0) -> list[list[Event]]:
    """Let days pass on which too much is asked back, until the weight has gone so far that it no longer is."""
    led_to = []
    for _ in range(days):
        crossed = agent.record.offsets.get("CLARIFY.base", 0.0) <= until_offset
        led_to.append(agent.day(CONTENT if crossed else ASKING))
    return led_to


def test_steps_that_change_nothing_go_on_until_the_gap_is_crossed_and_stay_together():
    agent = Regulated()
    led_to = lived(agent, 12, until_offset=-0.06)
    steps = [event for event in of_clarify(agent) if isinstance(event, Adjusted) and not event.fading]
    assert [step.step for step in steps] == [1, 2, 3]
    assert {step.metric_before for step in steps} == {0.12}
    [kept] = [
        each for day in led_to for each in day if isinstance(each, Confirmed) and each.parameter == "CLARIFY.base"
    ]
    assert (kept.delta, kept.metric_before, kept.metric_after) == (-0.06, 0.12, 0.0)
    assert kept.offset == -0.06


def test_a_small_step_that_changes_nothing_is_followed_by_larger_ones():
    agent = Regulated()
    for _ in range(7):
        agent.day({"RESPOND": 79, "CLARIFY": 10, "ACT": 6, "ACKNOWLEDGE": 5})
    sizes = [-event.delta for _, event in changes(agent)]
    assert sizes[:3] == [0.008, 0.016, 0.02]


def test_a_series_that_has_helped_nothing_is_undone_step_by_step_within_the_limits_of_a_day():
    agent = Regulated(RegulatorSettings(series_steps=3))
    lived(agent, 20)
    moved = of_clarify(agent)
    made, undone = moved[:3], moved[3:6]
    assert [type(event) for event in moved[:6]] == [Adjusted] * 3 + [Reverted] * 3
    assert [event.delta for event in undone] == [-event.delta for event in reversed(made)]
    assert [event.steps_left for event in undone if isinstance(event, Reverted)] == [2, 1, 0]
    assert undone[-1].offset == 0.0
    of_the_weight = [at_ns for at_ns, event in changes(agent) if event.parameter == "CLARIFY.base"]
    assert all(later - earlier >= 2 * DAY_MS * MS for earlier, later in pairwise(of_the_weight))
    for at_ns, _ in changes(agent):
        assert sum(abs(each.delta) for other, each in changes(agent) if 0 <= other - at_ns < DAY_MS * MS) <= 0.020001


def test_while_a_series_is_undone_other_weights_may_be_moved():
    agent = Regulated(RegulatorSettings(series_steps=2))
    lived(agent, 9)
    names = [event.parameter for _, event in changes(agent)]
    assert "clarify.cold_boost" in names


def test_a_weight_that_a_whole_series_did_not_help_is_left_alone_for_a_while_and_the_cycle_says_so():
    agent = Regulated(RegulatorSettings(series_steps=2))
    for _ in range(13):
        agent.day(ASKING)
    assert [type(event) for event in of_clarify(agent)] == [Adjusted] * 2 + [Reverted] * 2
    [pressure] = [each for each in only(CycleCompleted, agent.day(ASKING)).pressures if each.name == "clarify_over_use"]
    assert (pressure.parameter, pressure.held) in [("CLARIFY.base", "resting"), ("clarify.cold_boost", "")]
    for _ in range(16):
        agent.day(ASKING)
    assert len([event for event in of_clarify(agent) if isinstance(event, Adjusted)]) > 2


def test_a_series_that_makes_things_worse_ends_at_once():
    agent = Regulated()
    for _ in range(3):
        agent.day(ASKING)
    assert [type(event) for event in of_clarify(agent)] == [Adjusted] * 2
    for _ in range(4):
        agent.day({"RESPOND": 30, "CLARIFY": 60, "ACT": 6, "ACKNOWLEDGE": 4})
    undone = [event for event in of_clarify(agent) if isinstance(event, Reverted)]
    assert [event.verdict for event in undone] == ["worse", "worse"]
    assert agent.record.factors["CLARIFY.base"] == 0.5


def test_a_series_ends_where_its_pressure_does():
    agent = Regulated()
    agent.day(ASKING)
    for _ in range(2):
        agent.day(HEALTHY)
    assert [type(event) for event in of_clarify(agent)] == [Adjusted]
