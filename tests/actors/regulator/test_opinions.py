"""Second opinions move a weight, and are asked about the decisions after that: not about those that led to it."""

from collections.abc import Mapping, Sequence

import msgspec

from actors.regulator.pressures import DIMENSIONS
from schemas.vocabulary.reflection import Dimension, Span
from schemas.vocabulary.regulator import BOUNDS, Adjusted, Confirmed, CycleCompleted, Reverted
from tests.actors.regulator.builders import DAY_MS, READING_WEIGHTS, WEIGHTS, Regulated, concluded, only, span
from tests.actors.scenario import MS
from tests.each import each

HOUR_NS = 3_600_000 * MS


class Consulted(Regulated):
    """An agent that was adjusted because of a disagreement of .5 over a week."""

    def __init__(self) -> None:
        super().__init__()
        self.week = span(self.partition.now_ns - 7 * DAY_MS * MS, 0.5, counted=40)
        self.decide()
        self.opine([self.week])
        self.adjusted = only(Adjusted, self.cycle())
        self.at_ns = self.partition.now_ns

    def opine(self, spans: Sequence[Span]) -> None:
        """Let reflection conclude on these decisions."""
        counted = sum(each.counted for each in spans)
        disagreeing = sum(sum(each.disagree.values()) for each in spans)
        event = concluded(round(disagreeing / counted, 6), "intent_clarity", 1.0)
        self.hear(msgspec.structs.replace(event, spans=tuple(spans)))


def test_an_adjustment_is_judged_by_the_decisions_after_it_though_the_week_still_disagrees():
    agent = Consulted()
    agent.day()
    later = span(agent.at_ns + HOUR_NS, 0.3)
    agent.opine([agent.week, later])
    led_to = agent.day()
    assert only(Confirmed, led_to).metric_after == 0.3
    assert agent.adjusted.metric_before == 0.5


def test_an_adjustment_that_changed_nothing_after_it_is_undone_though_the_week_has_improved():
    agent = Consulted()
    agent.day()
    before = span(agent.at_ns - HOUR_NS, 0.0, counted=60)
    agent.opine([agent.week, before, span(agent.at_ns + HOUR_NS, 0.5)])
    undone = only(Reverted, agent.day())
    assert (undone.metric_after, undone.verdict) == (0.5, "no_improvement")


def test_too_few_opinions_on_later_decisions_judge_nothing_and_without_more_it_is_undone_after_a_week():
    agent = Consulted()
    agent.day()
    agent.opine([agent.week, span(agent.at_ns + HOUR_NS, 0.0, counted=9)])
    days = [agent.day() for _ in range(6)]
    assert all(not isinstance(event, Confirmed | Reverted) for day in days[:-1] for event in day)
    undone = only(Reverted, days[-1])
    assert (undone.verdict, undone.metric_after) == ("unmeasured", None)


def test_a_span_that_the_adjustment_falls_into_is_of_neither_side():
    agent = Consulted()
    agent.day()
    agent.opine([agent.week, span(agent.at_ns - 1, 0.0, counted=40)])
    agent.day()
    assert len(agent.record.trials) == 1


def test_opinions_on_decisions_from_before_a_change_lead_to_no_other_change():
    agent = Consulted()
    agent.day()
    agent.opine([agent.week, span(agent.at_ns + HOUR_NS, 0.1)])
    led_to = agent.day()
    only(Confirmed, led_to)
    assert [each.name for each in only(CycleCompleted, led_to).pressures] == []


def test_what_opinions_on_later_decisions_mostly_differ_in_says_what_to_change_next():
    agent = Consulted()
    agent.day()
    agent.opine([agent.week, span(agent.at_ns + HOUR_NS, 0.4, "social_cue")])
    moved = only(Adjusted, agent.day())
    assert (moved.parameter, moved.metric_before) == ("ACKNOWLEDGE.base", 0.4)


def test_where_the_first_answer_to_an_opinion_is_at_its_bound_the_next_one_is_moved():
    agent = Regulated()
    agent.decide(weights={**READING_WEIGHTS, "acknowledge.social": BOUNDS["acknowledge.social"][0]})
    agent.hear(concluded(0.5, "tone_ambiguity", 1.0))
    adjusted = only(Adjusted, agent.cycle())
    assert (adjusted.parameter, adjusted.delta < 0) == ("acknowledge.greeting", True)


@each("dimension", sorted(DIMENSIONS))
@each("weights", [WEIGHTS, READING_WEIGHTS], named=["calibrated", "standard"])
def test_what_an_opinion_presses_for_is_a_weight_that_the_profile_has(
    dimension: Dimension, weights: Mapping[str, float]
):
    agent = Regulated()
    agent.decide(weights=weights)
    agent.hear(concluded(0.5, dimension, 1.0))
    adjusted = only(Adjusted, agent.cycle())
    assert (adjusted.parameter, 1 if adjusted.delta > 0 else -1) in DIMENSIONS[dimension]
    assert adjusted.parameter in weights


def test_an_answer_tells_its_dimension():
    answers = [answer for each in DIMENSIONS.values() for answer in each]
    assert len(set(answers)) == len(answers)
