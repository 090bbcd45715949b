"""The numbers that the router scores with."""

from hypothesis import given
from hypothesis import strategies as st

from actors.memory.familiarity import warmth
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import COLD
from tests.actors.memory.builders import ESCALATED, HOUR_MS, ask, mind, partition, recalled, response, talk
from tests.actors.scenario import Address
from tests.each import each


@each(
    ("gists", "facts", "turns", "expected"),
    [
        (0, 0, 0, 0.0),
        (5, 0, 0, 0.4),
        (0, 5, 0, 0.3),
        (0, 0, 4, 0.3),
        (1, 1, 1, 0.215),
        (3, 1, 4, 0.6),
        (5, 5, 4, 1.0),
        (50, 50, 16, 1.0),
        (1, 0, 2, 0.23),
    ],
)
def test_warmth_is_the_sources_formula(gists: int, facts: int, turns: int, expected: float):
    assert warmth(gists, facts, turns) == expected


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_warmth_is_a_unit_and_never_falls_with_what_is_known(gists: int, facts: int, turns: int):
    assert 0.0 <= warmth(gists, facts, turns) <= 1.0
    for more in ((gists + 1, facts, turns), (gists, facts + 1, turns), (gists, facts, turns + 1)):
        assert warmth(*more) >= warmth(gists, facts, turns)


def test_the_first_exchange_of_an_agent_is_cold():
    memory = partition()
    memory.hear(InputReceived(text="Hello"))
    (event,) = memory.when(ESCALATED)
    assert event.familiarity == COLD  # type: ignore[attr-defined]
    assert event.recollections == ()  # type: ignore[attr-defined]


def test_counts_are_of_the_session_and_the_topic():
    memory = partition()
    talk(memory, "My name is Ada", "e1", topic="people")
    talk(memory, "My cat is Tom", "e2", topic="people")
    talk(memory, "The sky is blue", "e3", topic="weather")
    known = ask(memory, "Who is it?", topic="people").familiarity
    assert (known.working_memory_turns, known.gist_count, known.fact_count) == (3, 2, 2)
    assert known.fact_keys == ("cat", "name")
    assert known.session_exchange_count == 3
    assert known.context_warmth == warmth(2, 2, 3)
    assert (known.conversation_topic, known.topic_confidence, known.is_new_topic) == ("people", 0.7, False)
    assert not known.world_state_present


def test_a_fact_of_another_topic_or_session_is_world_state():
    memory = partition()
    talk(memory, "My name is Ada", "e1", topic="people")
    assert ask(memory, "Rain?", "e2", topic="weather").familiarity.world_state_present
    there = ask(memory, "Rain?", "e3", session="evening", topic="people").familiarity
    assert (there.world_state_present, there.fact_count) == (True, 0)


def test_what_another_session_told_counts_where_it_bears_on_the_input():
    memory = partition()
    talk(memory, "My name is Ada", "e1", session="yesterday")
    known = ask(memory, "What is my name?", "e2", session="today").familiarity
    assert (known.fact_keys, known.working_memory_turns) == (("name",), 0)
    assert known.bearing >= 0.5
    assert known.context_warmth > 0.0


def test_an_episode_of_another_session_that_bears_on_the_input_warms_like_a_gist():
    memory = partition()
    talk(memory, "The ferry leaves at seven", "e1", session="yesterday", vector=(100, 0))
    near = ask(memory, "And the ferry?", "e2", session="today", vector=(100, 0)).familiarity
    far = ask(memory, "And the kettle?", "e3", session="tonight", vector=(0, 100)).familiarity
    assert (near.gist_count, near.context_warmth) == (1, 0.08)
    assert (far.gist_count, far.context_warmth, far.bearing) == (0, 0.0, 0.0)


def test_a_fact_on_the_topic_that_comes_to_mind_counts_once():
    memory = partition()
    talk(memory, "My name is Ada", "e1", topic="people")
    assert ask(memory, "What is my name?", topic="people").familiarity.fact_keys == ("name",)


def test_a_fact_of_another_agent_is_not():
    memory = partition()
    talk(memory, "My name is Ada", "e1")
    assert not ask(memory, "Rain?", "e2", agent="other").familiarity.world_state_present


def test_working_memory_holds_four_turns_and_the_count_goes_on():
    memory = partition()
    for number in range(6):
        talk(memory, f"Number {number}", f"e{number}")
    known = ask(memory, "And?").familiarity
    assert (known.working_memory_turns, known.gist_count, known.session_exchange_count) == (4, 6, 6)


def test_inputs_that_were_not_executed_count_as_exchanges_and_leave_nothing():
    memory = partition()
    memory.hear(InputReceived(text="do harm"), Address(exchange="e1"))
    assert memory.when(response(action="REJECTED"), Address(exchange="e1")) == []
    known = ask(memory, "Hello").familiarity
    assert (known.session_exchange_count, known.working_memory_turns) == (1, 0)
    assert len(mind(memory).episodes.kept) == 0


def test_gists_expire_a_day_after_their_exchange():
    memory = partition()
    talk(memory, "My cat is Tom", "e1")
    talk(memory, "The dog is Rex", "e2")
    memory.hear(InputReceived(text="still there"), Address(exchange="e3"), after_ms=23 * HOUR_MS)
    assert ask(memory, "And?", "e4", after_ms=HOUR_MS).familiarity.gist_count == 2
    late = ask(memory, "And?", "e5", after_ms=1).familiarity
    assert (late.gist_count, late.fact_count) == (0, 1)


def test_a_session_is_new_again_a_day_after_its_last_event():
    memory = partition()
    talk(memory, "My cat is Tom", "e1")
    memory.hear(InputReceived(text="anyone?"), Address(session="other", exchange="o"), after_ms=24 * HOUR_MS + 1)
    known = ask(memory, "And?", "e2").familiarity
    assert (known.working_memory_turns, known.session_exchange_count, known.world_state_present) == (0, 0, False)
    assert known.fact_keys == ("cat",), "facts outlive the session's own memory"


def test_without_an_appraisal_only_a_first_input_begins_a_topic():
    memory = partition()
    for number, new in enumerate([True, False]):
        here = Address(exchange=f"e{number}")
        memory.hear(InputReceived(text="Hello"), here)
        known = recalled(memory, here).familiarity
        assert (known.conversation_topic, known.topic_confidence, known.is_new_topic) == ("unclassified", 0.0, new)


def test_memory_waits_for_the_arbiter():
    assert ArbiterEscalated in partition().actor.consumes
