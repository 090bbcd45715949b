"""What holds of every batch, every opinion and every run of messages."""

from collections import Counter
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.reflection import ACTOR
from actors.reflection.causality_check import CAUSES
from actors.reflection.opinion_call import Opinion
from actors.reflection.opinion_counting import CountedInsight, conclude, ignored_because
from actors.reflection.sampling import (
    STRATA,
    Case,
    case_of,
    draw_sample,
    places_by_stratum,
    shortfalls_after,
    stratum_of,
)
from actors.reflection.settings import ReflectionSettings
from actors.registry import ACTORS
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.reflection import Dimension, ReflectionConcluded, ReflectionRequested
from schemas.vocabulary.router import Mode
from tests.actors.pipeline import Pipeline
from tests.actors.reflection.builders import ON, Reflecting, answer, opinion, selection
from tests.actors.scenario import Address, Partition
from tests.actors.strategies import view_types
from tests.actors.test_every_actor import steps, take
from tests.each import each

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

units = st.floats(0, 1)
selections = st.builds(
    selection,
    units,
    tied=st.booleans(),
    context_warmth=units,
    fact_count=st.integers(0, 10),
    implicit_reference=st.booleans(),
    greeting_pattern=st.booleans(),
    is_new_topic=st.booleans(),
)
opinions = st.builds(Opinion, st.just(1), st.sampled_from(get_args(Mode)), st.sampled_from(get_args(Dimension)), units)


@given(selected=selections, said=opinions, satisfied=st.booleans())
@few
def test_below_any_gate_a_disagreement_never_counts(selected: Any, said: Opinion, satisfied: bool):
    case = msgspec.structs.replace(case_of("x", selected, 0), satisfied=satisfied)
    if ignored_because(case, said, ON) == "":
        assert said.confidence > 0.70
        assert said.mode == "RESPOND" or (not satisfied and CAUSES[said.dimension](selected))


@given(counts=st.tuples(*[st.integers(0, 9)] * 3), batch=st.integers(1, 20))
@few
def test_a_batch_is_as_full_as_it_can_be_and_no_stratum_gives_more_than_it_has(counts: tuple[int, ...], batch: int):
    available = dict(zip(STRATA, counts, strict=True))
    given_places = places_by_stratum(available, ReflectionSettings(batch=batch))
    assert sum(given_places.values()) == min(batch, sum(counts))
    assert all(0 <= given_places[stratum] <= available[stratum] for stratum in STRATA)


@given(selected=st.lists(selections, max_size=40), message=st.text(st.characters(exclude_categories=["Cs"])))
@few
def test_a_sample_is_drawn_without_replacement_and_the_same_for_the_same_message(selected: list[Any], message: str):
    cases = [case_of(f"x{number}", each, 0) for number, each in enumerate(selected)]
    drawn = draw_sample(cases, message, ON)
    assert drawn == draw_sample(cases, message, ON)
    assert len({case.exchange for _, case in drawn}) == len(drawn) <= ON.batch
    assert all(stratum_of(case.selected, ON) == stratum for stratum, case in drawn)


@each("batch", [1, 2, 3, 5, 7, 10])
def test_over_batches_the_strata_have_their_shares(batch: int):
    settings_of, owed, looked = ReflectionSettings(batch=batch), dict[Any, float](), dict.fromkeys(STRATA, 0)
    for _ in range(40):
        given_places = places_by_stratum(dict.fromkeys(STRATA, 1_000), settings_of, owed)
        looked = {stratum: looked[stratum] + given_places[stratum] for stratum in STRATA}
        owed = dict(shortfalls_after(owed, [each for each in STRATA for _ in range(given_places[each])], settings_of))
    assert {stratum: count / (40 * batch) for stratum, count in looked.items()} == {
        "low_confidence": pytest.approx(0.5, abs=1 / (40 * batch)),
        "high_confidence": pytest.approx(0.2, abs=1 / (40 * batch)),
        "tie_break": pytest.approx(0.3, abs=1 / (40 * batch)),
    }


def test_two_batches_of_five_are_half_low_a_fifth_high_and_the_rest_tie_breaks():
    first = places_by_stratum(dict.fromkeys(STRATA, 9), ON)
    owed = dict(shortfalls_after({}, [each for each in STRATA for _ in range(first[each])], ON))
    second = places_by_stratum(dict.fromkeys(STRATA, 9), ON, owed)
    assert (tuple(first.values()), tuple(second.values())) == ((3, 1, 1), (2, 1, 2))


def test_a_stratum_that_was_not_there_for_long_is_owed_a_place_at_most():
    owed = dict[Any, float]()
    for _ in range(50):
        owed = dict(shortfalls_after(owed, ["tie_break"] * 5, ON))
    assert places_by_stratum(dict.fromkeys(STRATA, 9), ON, owed) == {
        "low_confidence": 3,
        "high_confidence": 2,
        "tie_break": 0,
    }


few_there = st.fixed_dictionaries({stratum: st.integers(0, 2) for stratum in STRATA})


@given(between=st.lists(few_there, min_size=1, max_size=4), batch=st.sampled_from([1, 2, 5, 8]))
@few
def test_batches_that_were_not_full_starve_no_stratum_of_the_full_ones(between: list[dict[Any, int]], batch: int):
    """Between full batches come such as there was little to look at for: the full ones keep the shares all the same,
    but for what they make up for.
    """
    settings_of, owed, looked, places_of = ReflectionSettings(batch=batch), dict[Any, float](), Counter[Any](), 0
    for round_ in range(60):
        for available in (dict.fromkeys(STRATA, 1_000), between[round_ % len(between)]):
            given_places = places_by_stratum(available, settings_of, owed)
            owed = dict(
                shortfalls_after(owed, [each for each in STRATA for _ in range(given_places[each])], settings_of)
            )
            if available[STRATA[0]] == 1_000:
                looked.update(given_places)
                places_of += sum(given_places.values())
    assert places_of == 60 * batch
    least = {"low_confidence": 0.5, "high_confidence": 0.2, "tie_break": 0.3}
    # A place of each batch at most goes to make up for what the batch between had too little of, or too much.
    assert all(looked[stratum] >= 60 * (batch * share - 1) - 1 for stratum, share in least.items())


def test_single_decisions_between_full_batches_leave_the_tie_breaks_their_places():
    owed, looked = dict[Any, float](), Counter[Any]()
    for number in range(100):
        single = {"low_confidence": 1, "high_confidence": 0, "tie_break": 0}
        given_places = places_by_stratum(single if number % 2 else dict.fromkeys(STRATA, 50), ON, owed)
        owed = dict(shortfalls_after(owed, [each for each in STRATA for _ in range(given_places[each])], ON))
        looked.update(given_places)
    assert {stratum: count / 300 for stratum, count in looked.items()} == {
        "low_confidence": pytest.approx(0.5, abs=0.01),
        "high_confidence": pytest.approx(0.2, abs=0.01),
        "tie_break": pytest.approx(0.3, abs=0.01),
    }


def test_every_case_of_a_stratum_has_its_turn():
    cases = [case_of(f"x{number}", selection(), 0) for number in range(10)]
    drawn = {case.exchange for number in range(50) for _, case in draw_sample(cases, f"message-{number}", ON)}
    assert drawn == {case.exchange for case in cases}


@given(agreeing=st.lists(st.booleans(), max_size=60))
@few
def test_a_pressure_is_exactly_enough_opinions_and_more_than_a_quarter_of_disagreement(agreeing: list[bool]):
    counted = [CountedInsight(f"x{number}", 0, agrees, "social_cue") for number, agrees in enumerate(agreeing)]
    concluded = conclude(counted, (), ON, wake_after_ms=0)
    assert concluded.pressure is (len(agreeing) >= 10 and 4 * agreeing.count(False) > len(agreeing))


@given(selected=st.lists(selections, min_size=1, max_size=40))
@few
def test_what_is_kept_of_an_agent_is_bounded(selected: list[Any]):
    small = ReflectionSettings(backend="llm", queue=4, insights_kept=3, batch=3, insights_needed=1)
    agent = Reflecting(small)
    for exchange in selected:
        agent.exchange(exchange)
        for asked in agent.wake():
            assert isinstance(asked.event, ReflectionRequested)
            agent.says(asked, answer(*(opinion(number + 1) for number in range(len(asked.event.batch)))))
    mind = agent.partition.state.minds["agent"]
    assert (len(mind.queue) <= 4, len(mind.counted) <= 3, len(mind.pending)) == (True, True, 0)
    assert all(isinstance(case, Case) and case.selected.weights == {} for case in mind.queue)


def test_a_replay_needs_no_model_and_folds_to_the_same_state():
    agent = Reflecting()
    for _ in range(3):
        agent.says(agent.request(selection(), selection(0.9)), answer(opinion(1), opinion(2, "ACT")))
    again = Partition(ACTOR).configure(agent.settings)
    decided = [placed for message in agent.heard for placed in again.deliver(message)]
    assert decided == agent.partition.emitted
    assert again.state_hash() == agent.partition.state_hash()
    assert any(isinstance(each.event, ReflectionConcluded) for each in decided)


@given(data=st.data())
@few
def test_turned_on_it_takes_any_run_of_messages_and_a_snapshot_restores_it(data: st.DataObject):
    kept, restored = (Partition(ACTOR).configure(ON) for _ in range(2))
    for step in data.draw(steps(ACTOR, view_types(ACTOR))):
        take(kept, step)
    restored.seq, restored.now_ns = kept.seq, kept.now_ns
    restored.state = decode_state(encode_state(kept.state), ACTOR.state_type)
    for step in data.draw(steps(ACTOR, view_types(ACTOR), most=6)):
        assert take(restored, step) == take(kept, step)
    assert restored.state_hash() == kept.state_hash()


def test_turned_on_a_whole_conversation_leaves_nothing_pending_and_looks_back_once_idle():
    pipeline = Pipeline({**ACTORS, "reflection": ACTOR})
    pipeline.partitions["reflection"].configure(ON)
    for number, text in enumerate(["What is the capital of Peru?", "Hello there", "And what did I say about it?"]):
        pipeline.ask(text, Address(exchange=f"x{number}"))
    pipeline.advance(2 * ON.idle_after_ms)
    requests = [each for each in pipeline.stream if isinstance(each.event, ReflectionRequested)]
    assert [(each.agent, each.session, each.exchange) for each in requests] == [("agent", "", "")]
    assert len(pipeline.partitions["reflection"].state.minds["agent"].pending) == 0
