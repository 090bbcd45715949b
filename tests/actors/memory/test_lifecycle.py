"""What stays of an exchange, what is dropped with its end, and what bounds hold whatever is said."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.memory.decider import State
from actors.memory.settings import MemorySettings
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.vocabulary.act import Action
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.memory import Fact
from tests.actors.memory.builders import (
    ESCALATED,
    act,
    appraisal,
    ask,
    begin,
    forget,
    mind,
    partition,
    recalled,
    response,
    talk,
)
from tests.actors.scenario import Address, Partition
from tests.actors.strategies import texts
from tests.each import each

HERE = Address(exchange="e1")


def test_what_stays_of_an_exchange_is_told():
    text, answer = "Hi! My name is Ada. What is the capital of Peru?", "Lima. Anything else?"
    event = talk(partition(), text, "e1", topic="places", answer=answer)
    assert event.conversation_topic == "places"
    assert event.gist == "Asked: What is the capital of Peru? Answered: Lima."
    assert event.facts == (Fact(key="name", value="Ada"),)
    assert event.concepts == ("name", "ada", "capital", "peru", "lima")


def test_no_fact_is_learned_from_other_layers_or_from_the_answer():
    memory = partition()
    layers = (Layer(role="document", content="My name is Bob."), Layer(role="system", content="I live in Rome."))
    memory.hear(InputReceived(text="Hello there", layers=layers), HERE)
    (event,) = memory.when(response("My name is Max. I live in Paris."), HERE)
    assert event.facts == ()  # type: ignore[attr-defined]


@each("action", ["BLOCKED", "REJECTED", "WITHHELD", "FAILED"])
def test_nothing_stays_of_an_exchange_that_was_not_executed(action: str):
    memory = partition()
    begin(memory, "The password is swordfish", HERE)
    assert memory.when(response(action=action), HERE) == []
    assert b"swordfish" not in encode_state(memory.state)
    assert len(memory.state.pending) == 0


def test_of_too_many_agents_those_used_least_lately_are_forgotten():
    memory = partition(MemorySettings(agents=16))
    named = [f"agent-{number:02d}" for number in range(16)]
    for number, agent in enumerate((*named, named[0], "newcomer")):
        ask(memory, "Who met the llama?", f"e{number}", agent=agent, after_ms=1)
    assert sorted(memory.state.minds) == ["agent-00", *(f"agent-{number:02d}" for number in range(3, 16)), "newcomer"]


@each("text", ["", " \n\t "])
def test_nothing_stays_of_a_blank_input(text: str):
    memory = partition()
    begin(memory, text, HERE)
    assert memory.when(response(), HERE) == []


def test_the_composers_answers_are_kept_in_turns_alone():
    memory = partition()
    begin(memory, "Any llamas?", HERE)
    (event,) = memory.when(response("No model is attached.", backend="composer"), HERE)
    assert event.gist == "Asked: Any llamas?"  # type: ignore[attr-defined]
    (session,) = memory.state.sessions.young.values()
    assert [turn.text for turn in session.turns] == ["Any llamas? → No model is attached."]


def test_an_end_of_an_unknown_exchange_leaves_nothing():
    memory = partition()
    assert memory.when(response(), HERE) == []
    assert len(mind(memory).episodes.kept) == 0


def test_an_exchange_is_remembered_once():
    memory = partition()
    talk(memory, "Hello there", "e1")
    memory.hear(InputReceived(text="Hello there"), HERE)
    assert memory.when(response(), HERE) == []
    assert len(mind(memory).episodes.kept) == 1
    assert len(memory.state.pending) == 0


def test_words_are_gone_at_the_next_message_though_memory_failed_to_remember():
    memory = partition()
    begin(memory, "The password is swordfish", HERE)
    end = memory.own(response())
    memory.fold(msgspec.structs.replace(end, agent="agent", session="session", exchange="e1"))
    assert memory.state.ending is not None
    memory.hear(InputReceived(text="Hello"), Address(exchange="e2"))
    assert b"swordfish" not in encode_state(memory.state)


def test_numbers_are_never_given_twice():
    memory = partition(MemorySettings(episodes=1, facts=1))
    for number in range(3):
        talk(memory, f"My key{number} is one", f"e{number}", session="other")
    assert list(mind(memory).episodes.kept) == [3]
    assert {key: told[-1].number for key, told in mind(memory).facts.items()} == {"key2": 3}


def test_facts_keep_the_latest_fifty_of_a_topic():
    memory = partition()
    for number in range(60):
        talk(memory, f"My key{number} is one", f"e{number}")
    keys = ask(memory, "And?").familiarity.fact_keys
    assert keys == tuple(f"key{number}" for number in reversed(range(10, 60)))


SMALL = MemorySettings(
    turns=2,
    gists=3,
    facts_per_topic=2,
    facts=4,
    episodes=5,
    concepts=6,
    meetings=3,
    concepts_per_exchange=4,
    recollections=3,
)
WORDS = ["llama", "bridge", "river", "Ada", "Lima", "teal"]
sentences = (
    st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda pair: f"My {pair[0]} is {pair[1]}")
    | st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
    | texts
)
said = st.tuples(
    sentences,
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["morning", "evening"]),
    st.sampled_from(["topic-1", "topic-2"]),
    st.lists(st.integers(-127, 127), min_size=2, max_size=2),
    st.sampled_from([0, 60_000, 13 * 3_600_000]),
    st.sampled_from(["EXECUTED", "EXECUTED", "EXECUTED", "FAILED"]),
    st.sampled_from(["", "act", "forget", "Ada", "llama"]),
)


def converse(memory: Partition, conversation: list[Any], name: str = "e") -> None:
    """Hold a conversation of several sessions, in which people act and forget between its exchanges."""
    for number, (text, agent, session, topic, vector, wait_ms, action, deed) in enumerate(conversation):
        here = Address(agent, session, f"{name}{number}")
        memory.hear(InputReceived(text=text), here, after_ms=wait_ms)
        memory.hear(appraisal(vector, topic), here)
        assert len(recalled(memory, here).recollections) <= memory.state.settings.recollections
        if deed == "act":
            memorize = Action(index=0, skill="memorize", key=topic, value=text or "nothing")
            act(memory, memorize, Action(index=1, skill="associate", query=text), here=here)
        elif deed:
            forget(memory, key="" if deed == "forget" else deed, agent=agent, session=session)
        memory.hear(response("Noted.", action), here)


@given(st.lists(said, max_size=14))
@settings(deadline=None, max_examples=60)
def test_capacities_hold_and_all_layers_agree_whatever_is_said(conversation: list[Any]):
    memory = partition(SMALL)
    converse(memory, conversation)
    state: State = memory.state
    assert len(state.pending) == 0
    assert state.ending is None or not conversation
    for session in (*state.sessions.young.values(), *state.sessions.old.values()):
        assert len(session.turns) <= SMALL.turns
        assert len(session.gists) <= SMALL.gists
    for known in state.minds.values():
        assert len(known.episodes.kept) <= SMALL.episodes
        assert len(known.concepts) <= SMALL.concepts
        told = [telling for tellings in known.facts.values() for telling in tellings]
        places = [(telling.session, telling.topic) for telling in told]
        assert len(told) <= SMALL.facts
        assert all(places.count(place) <= SMALL.facts_per_topic for place in places)
        assert len({telling.number for telling in told}) == len(told)
        for term, concept in known.concepts.items():
            assert all(term in known.episodes.kept[number].concepts for number in concept.episodes)


@given(st.lists(said, max_size=10), st.lists(said, max_size=4))
@settings(deadline=None, max_examples=40)
def test_a_snapshot_remembers_like_the_state_it_is_of(before: list[Any], after: list[Any]):
    kept, restored = partition(SMALL), partition(SMALL)
    converse(kept, before)
    restored.state = decode_state(encode_state(kept.state), State)
    restored.seq, restored.now_ns = kept.seq, kept.now_ns
    assert state_hash(restored.state) == state_hash(kept.state)
    for memory in (kept, restored):
        memory.emitted.clear()
        converse(memory, after, "later")
    assert [message.event for message in restored.emitted] == [message.event for message in kept.emitted]
    assert state_hash(restored.state) == state_hash(kept.state)


def test_an_exchange_that_ended_before_its_recall_leaves_nothing_pending():
    memory = partition()
    begin(memory, "Hello there", HERE)
    memory.hear(response(action="FAILED"), HERE)
    assert memory.when(ESCALATED, HERE) == []
    assert len(memory.state.pending) == 0
