"""Every row of the source's section on routing reflection, and its safeguards."""

from typing import Any

import msgspec

from actors.reflection import ACTOR
from actors.reflection.settings import ReflectionSettings
from actors.registry import ACTORS
from schemas.catalogue import owned_by
from schemas.event import Failed
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflection import ReflectionConcluded, ReflectionRequested
from tests.actors.reflection.builders import ON, Reflecting, answer, content, opinion, selection
from tests.actors.scenario import Address, Partition
from tests.each import each

COUNTS = opinion(1)


def lone(selected: Any, said: dict[str, Any]) -> tuple[bool, str]:
    [insight] = Reflecting().look_back((selected, said)).insights
    return insight.counts, insight.ignored


def test_it_asks_only_while_no_exchange_of_the_agent_is_open():
    """mode-router: Routing Reflection, 1 during idle periods."""
    agent = Reflecting()
    agent.exchange()
    agent.partition.hear(InputReceived(text="Wait"), Address(exchange="open"))
    assert agent.wake() == []


def test_it_dequeues_what_it_has_looked_at():
    """mode-router: Routing Reflection, 1 dequeues."""
    agent = Reflecting()
    asked = agent.request(selection(), selection())
    agent.says(asked, answer(opinion(1), opinion(2)))
    assert agent.partition.state.minds["agent"].queue == ()
    assert agent.wake() == []


@each(
    ("dimension", "signals", "bare"),
    [
        ("memory_availability", {"context_warmth": 0.3, "fact_count": 9}, {"context_warmth": 0.4, "fact_count": 3}),
        ("memory_availability", {"context_warmth": 0.9, "fact_count": 2}, {"context_warmth": 0.9, "fact_count": 3}),
        ("intent_clarity", {"information_density": 0.2}, {"information_density": 0.3}),
        ("tone_ambiguity", {"explicit_feedback": "negative"}, {}),
        ("tone_ambiguity", {"greeting_pattern": True}, {}),
        ("context_sufficiency", {"context_warmth": 0.9, "is_new_topic": True}, {"context_warmth": 0.9}),
        ("context_sufficiency", {"context_warmth": 0.9, "working_memory_turns": 0}, {"context_warmth": 0.9}),
        ("social_cue", {"greeting_pattern": True}, {}),
        ("social_cue", {"prompt_token_count": 3, "has_question_mark": False, "interrogative_words": False}, {}),
        ("reference_ambiguity", {"implicit_reference": True}, {}),
    ],
)
def test_a_dimension_counts_only_where_the_signals_bear_it_out(
    dimension: str, signals: dict[str, Any], bare: dict[str, Any]
):
    """mode-router: Routing Reflection, 2 and safeguards, dimensional causality check."""
    said = opinion(1, dimension=dimension)
    assert lone(selection(0.19, is_new_topic=signals.get("is_new_topic", False), **without(signals)), said) == (
        True,
        "",
    )
    assert lone(selection(0.19, **{"is_new_topic": False, **bare}), said) == (False, "dimension_without_signal")


def without(signals: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in signals.items() if name != "is_new_topic"}


def test_a_margin_below_the_ambiguous_one_bears_out_unclear_intent():
    said = opinion(1, dimension="intent_clarity")
    assert lone(selection(0.16), said) == (True, "")
    assert lone(selection(0.17), said) == (False, "dimension_without_signal")


def test_an_opinion_says_where_a_decision_was_ambiguous_and_not_only_what_to_select():
    """mode-router: Routing Reflection, 3 insight about WHERE ambiguity exists."""
    [insight] = Reflecting().look_back((selection(), {**COUNTS, "rationale": "Nothing was known."})).insights
    assert (insight.dimension, insight.suggested_mode, insight.agrees) == ("memory_availability", "CLARIFY", False)
    assert insight.rationale == "Nothing was known."


def test_a_batch_is_half_low_confidence_a_fifth_high_and_the_rest_tie_breaks():
    """mode-router: Routing Reflection, 4 sampling 50% low, 20% high, 30% tie-breaker."""
    every = [selection(0.1), selection(0.9), selection(0.05, tied=True)] * 6
    event = Reflecting().request(*every).event
    assert isinstance(event, ReflectionRequested)
    strata = [each.stratum for each in event.batch]
    assert strata == ["low_confidence"] * 3 + ["high_confidence"] + ["tie_break"]


@each(("confidence", "counts"), [(0.70, False), (0.701, True)])
def test_an_opinion_counts_only_above_a_confidence_of_70_percent(confidence: float, counts: bool):
    """mode-router: Routing Reflection, safeguards, confidence gate > 0.70."""
    assert lone(selection(), opinion(1, confidence=confidence)) == (counts, "" if counts else "low_confidence")


def test_a_person_who_was_content_outweighs_a_disagreement():
    """mode-router: Routing Reflection, safeguards, user override."""
    agent = Reflecting()
    asked = agent.request(selection())
    agent.partition.hear(content("x1"), Address(exchange="x2"))
    [insight] = agent.says(asked, answer(COUNTS)).insights
    assert (insight.counts, insight.ignored) == (False, "user_satisfied")


def test_a_person_who_was_content_does_not_outweigh_an_agreement():
    agent = Reflecting()
    asked = agent.request(selection())
    agent.partition.hear(content("x1"), Address(exchange="x2"))
    [insight] = agent.says(asked, answer(opinion(1, "RESPOND"))).insights
    assert insight.counts


def test_content_that_is_heard_later_takes_the_disagreement_out_of_the_window():
    agent = Reflecting()
    assert agent.look_back((selection(), COUNTS)).disagreement == 1.0
    agent.partition.hear(content("x1"), Address(exchange="x9"))
    assert agent.look_back((selection(), opinion(1, "RESPOND"))).disagreement == 0.0


@each(("disagreeing", "pressure"), [(3, False), (4, True)])
def test_a_pressure_needs_more_than_a_quarter_of_disagreement(disagreeing: int, pressure: bool):
    """mode-router: Routing Reflection, safeguards, >25% disagreement."""
    said = [COUNTS] * disagreeing + [opinion(1, "RESPOND")] * (12 - disagreeing)
    concluded = Reflecting().look_back(*((selection(), each) for each in said))
    assert (concluded.counted, concluded.disagreement) == (12, round(disagreeing / 12, 6))
    assert concluded.pressure is pressure


@each(("opinions", "pressure"), [(9, False), (10, True)])
def test_a_pressure_needs_a_pattern_that_is_sustained(opinions: int, pressure: bool):
    concluded = Reflecting().look_back(*[(selection(), COUNTS)] * opinions)
    assert (concluded.disagreement, concluded.pressure) == (1.0, pressure)


def test_what_is_older_than_seven_days_counts_no_more():
    """mode-router: Routing Reflection, safeguards, over 7 days."""
    agent = Reflecting()
    assert agent.look_back(*[(selection(), COUNTS)] * 10).pressure
    agent.partition.now_ns += ON.window_ms * 1_000_000
    concluded = agent.look_back((selection(), opinion(1, "RESPOND")))
    assert (concluded.counted, concluded.disagreement, concluded.pressure) == (1, 0.0, False)


def test_the_dominant_dimension_has_its_share_of_the_disagreements():
    memory, context = COUNTS, opinion(1, dimension="context_sufficiency")
    agree = opinion(1, "RESPOND", dimension="social_cue")
    concluded = Reflecting().look_back(*((selection(), each) for each in (memory, memory, context, agree, agree)))
    assert (concluded.dominant, concluded.dominant_share) == ("memory_availability", 0.666667)


def test_a_mode_that_was_not_on_offer_counts_for_nothing():
    selected = msgspec.structs.replace(selection(), scores={"RESPOND": 0.5, "CLARIFY": 0.4}, rerouted=True)
    assert lone(selected, opinion(1, "ACT")) == (False, "invalid")


def test_it_is_a_consultant_whose_events_hold_no_weight_and_move_none_by_themselves():
    """mode-router: Routing Reflection, consultant, not authority."""
    own = {entry.event for entry in owned_by("reflection") if not issubclass(entry.event, Failed)}
    readers = {name for name, actor in ACTORS.items() if own.intersection(actor.consumes)}
    assert readers <= {"regulator", "clock", "swarm"}, "the clock reads when to wake it, swarm who waits for a model"
    assert not any("weight" in name for event in own for name in event.__struct_fields__)
    router = ACTORS["router"]
    concluded = ReflectionConcluded(
        insights=(), counted=20, disagreement=1.0, dominant=None, dominant_share=0.0, pressure=True, wake_after_ms=0
    )
    partition = Partition(router)
    before = partition.state_hash()
    partition.fold(partition.own(concluded))
    assert partition.state_hash() == before


def test_the_model_sees_no_word_of_any_person():
    selected = msgspec.structs.replace(selection(fact_keys=("ann's secret",)), conversation_topic="secret topic")
    event = Reflecting().request(selected).event
    assert isinstance(event, ReflectionRequested)
    assert event.call.purpose == "reflect"
    assert "secret" not in str(event).lower()
    assert "context_warmth=0.3" in event.call.messages[1].content


def test_off_is_the_default_and_keeps_nothing():
    agent = Reflecting(ReflectionSettings())
    agent.exchange()
    assert agent.partition.emitted == []
    assert agent.partition.state == ACTOR.initial()
