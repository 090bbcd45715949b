"""A confirmed correction fades once its cause is gone, and is found again where it is not."""

from collections.abc import Mapping

import msgspec

from actors.regulator.settings import RegulatorSettings
from schemas.vocabulary.reflection import ReflectionConcluded
from schemas.vocabulary.regulator import Adjusted, Confirmed, Reverted
from schemas.vocabulary.router import Mode
from tests.actors.regulator.builders import DAY_MS, HEALTHY, WEIGHTS, Regulated, concluded, decision, span
from tests.each import each

RESPONDING: Mapping[Mode, int] = {"RESPOND": 90, "CLARIFY": 5, "ACKNOWLEDGE": 2, "ACT": 3}


def corrected(**settings: int) -> Regulated:
    """Return an agent whose ``RESPOND.base`` was lowered by two steps, which helped."""
    agent = Regulated(RegulatorSettings(**settings))
    agent.day(RESPONDING)
    agent.day(HEALTHY)
    agent.day({**RESPONDING, "RESPOND": 85, "CLARIFY": 10})
    agent.day(HEALTHY)
    agent.day(HEALTHY)
    assert dict(agent.record.offsets) == {"RESPOND.base": -0.04}
    assert agent.record.trials == ()
    return agent


def fadings(agent: Regulated) -> list[Adjusted]:
    return [event for _, event in agent.events if isinstance(event, Adjusted) and event.fading]


def test_a_correction_whose_cause_is_gone_fades_to_nothing_step_by_step():
    agent = corrected()
    for _ in range(12):
        agent.day(HEALTHY)
    assert [(event.delta, event.offset) for event in fadings(agent)] == [(0.02, -0.02), (0.02, 0.0)]
    assert dict(agent.record.offsets) == {}
    kept = [event for _, event in agent.events if isinstance(event, Confirmed) and event.fading]
    assert len(kept) == 2


def test_nothing_fades_before_a_week_without_its_pressure():
    agent = corrected()
    for _ in range(4):
        agent.day(HEALTHY)
    assert fadings(agent) == []


def test_a_pressure_begins_the_week_anew():
    agent = corrected()
    for _ in range(4):
        agent.day(HEALTHY)
    agent.day({**HEALTHY, "RESPOND": 77, "CLARIFY": 4, "ACT": 7})
    for _ in range(4):
        agent.day(HEALTHY)
    assert fadings(agent) == []


def test_a_fading_that_brings_the_pressure_back_is_undone_and_tried_again_after_twice_the_time():
    agent = corrected()
    days = 0
    while not fadings(agent):
        agent.day(HEALTHY)
        days += 1
    agent.day(RESPONDING)
    agent.day(RESPONDING)
    undone = [event for _, event in agent.events if isinstance(event, Reverted)]
    assert [(event.parameter, event.verdict, event.offset) for event in undone] == [("RESPOND.base", "worse", -0.04)]
    for _ in range(13):
        agent.day(HEALTHY)
    assert len(fadings(agent)) == 1
    for _ in range(2):
        agent.day(HEALTHY)
    assert len(fadings(agent)) == 2


@each("decisions", [5, 100])
def test_nothing_fades_while_too_little_is_decided_to_tell_by(decisions: int):
    agent = corrected()
    few: Mapping[Mode, int] = {"RESPOND": decisions} if decisions < 10 else HEALTHY
    for _ in range(12):
        agent.day(few)
    assert bool(fadings(agent)) is (decisions > 10)


def test_what_a_bound_has_left_nothing_of_has_nothing_to_fade():
    """An operator has set the weight to its bound since: a step back would lead it away from where it belongs."""
    agent = corrected()
    at_bound = {**WEIGHTS, "RESPOND.base": 0.30}
    for _ in range(12):
        agent.partition.now_ns += DAY_MS // 2 * 1_000_000
        for mode, count in HEALTHY.items():
            for _ in range(count):
                agent.hear(decision(mode, weights=at_bound, regulated={}))
        agent.cycle()
    assert fadings(agent) == []


def test_a_fading_takes_its_turn_behind_whatever_presses():
    agent = corrected()
    for _ in range(12):
        agent.day(HEALTHY, ambiguous=60)
    changed = [event.parameter for _, event in agent.events if isinstance(event, Adjusted) and not event.fading]
    assert changed.count("tiebreaker_base_margin") >= 3
    assert agent.record.offsets.get("RESPOND.base", 0.0) > -0.04


def test_a_correction_that_second_opinions_asked_for_fades_once_none_speaks_any_more():
    agent = Regulated(RegulatorSettings(judge_after_ms=2 * DAY_MS, evidence_within_ms=3 * DAY_MS))
    agent.decide()
    agent.hear(concluded(0.4, "intent_clarity"))
    agent.cycle()
    agent.hear(msgspec.structs.replace(concluded(0.1, "intent_clarity"), spans=()))
    agent.day()
    agent.hear(concluded_since(agent, 0.05))
    agent.day()
    assert agent.record.trials == ()
    assert agent.record.offsets["clarify.cold_boost"] > 0.0
    for _ in range(16):
        agent.day(HEALTHY)
    assert dict(agent.record.offsets) == {}


def concluded_since(agent: Regulated, disagreement: float) -> ReflectionConcluded:
    """Return a conclusion on decisions made since the latest change."""
    told = span(agent.record.consulted_ns + 1, disagreement, counted=20)
    return msgspec.structs.replace(concluded(disagreement, "intent_clarity", pressure=False), spans=(told,))
