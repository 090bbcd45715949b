"""What comes to mind, how strongly, and of whom."""

from math import sqrt

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.memory.episodes import weight_of
from actors.memory.settings import MemorySettings
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.act import Action
from schemas.vocabulary.gateway import InputReceived
from tests.actors.memory.builders import (
    ESCALATED,
    EVERYTHING,
    HOUR_MS,
    act,
    appraisal,
    ask,
    ids,
    mind,
    partition,
    recalled,
    response,
    talk,
    texts,
)
from tests.actors.scenario import Address

EAST, NORTH, BETWEEN = (100, 0), (0, 100), (60, 80)
LATER = "evening"


def test_an_input_that_is_not_escalated_recalls_nothing():
    assert partition().when(InputReceived(text="Hello")) == []


def test_an_exchange_is_recalled_for_once():
    memory = partition()
    ask(memory, "Hello", "e1")
    assert memory.when(ESCALATED, Address(exchange="e1")) == []


def test_an_unknown_exchange_is_not_recalled_for():
    assert partition().when(ESCALATED, Address(exchange="nobody")) == []


def test_an_exchange_that_has_ended_is_not_recalled_for():
    memory = partition()
    talk(memory, "Hello", "e1")
    assert memory.when(ESCALATED, Address(exchange="e1")) == []


def test_a_similar_exchange_of_the_session_is_recalled_as_a_turn_and_once():
    memory = partition()
    talk(memory, "The bridge is closed", "e1", vector=EAST, answer="Noted.")
    (found,) = ask(memory, "Anything new?", vector=BETWEEN).recollections
    assert (found.id, found.layer, found.energy) == ("turn:1", "turn", 0.6)
    assert found.text == "The bridge is closed → Noted."


def test_older_exchanges_of_the_session_are_gists_and_other_sessions_are_episodes():
    memory = partition(MemorySettings(turns=1))
    talk(memory, "The bridge is closed", "e1", vector=EAST)
    talk(memory, "The road is open", "e2", vector=EAST)
    assert ids(ask(memory, "And?", "e3", vector=EAST)) == ["turn:2", "gist:1"]
    assert ids(ask(memory, "And?", "e4", vector=EAST, session=LATER)) == ["episode:2", "episode:1"]


def test_an_episode_counts_the_more_the_more_salient_it_is():
    memory = partition()
    for exchange, (arousal, novelty) in {"e1": (0.0, 0.0), "e2": (1.0, 1.0), "e3": (0.2, 0.6)}.items():
        here = Address(exchange=exchange)
        memory.hear(InputReceived(text="The bridge is closed"), here)
        memory.hear(appraisal(EAST, arousal=arousal, novelty=novelty), here)
        memory.hear(response(), here)
    found = ask(memory, "And?", vector=EAST, session=LATER).recollections
    assert [(each.id, each.energy) for each in found] == [("episode:2", 1.0), ("episode:3", 0.91), ("episode:1", 0.85)]


def test_salience_is_the_mean_of_arousal_and_novelty():
    assert talk(partition(), "The bridge is closed", "e1").salience == 0.4


def test_what_is_below_the_floor_does_not_come_to_mind():
    memory = partition(MemorySettings(floor=0.61))
    talk(memory, "The bridge is closed", "e1", vector=EAST)
    assert ask(memory, "And?", vector=BETWEEN).recollections == ()


def test_no_more_comes_to_mind_than_the_setting_says():
    memory = partition(MemorySettings(recollections=2))
    for number in range(4):
        talk(memory, "The bridge is closed", f"e{number}", vector=EAST)
    assert ids(ask(memory, "And?", vector=EAST)) == ["turn:4", "turn:3"]


@pytest.mark.parametrize(
    ("question", "energy"),
    [
        ("What is my name?", 1.0),
        ("What am I called?", 1.0),
        ("Say my name on the phone", 0.75),
        ("Where did Ada go?", 0.5),
        ("How is the weather?", None),
    ],
)
def test_a_fact_is_recalled_by_its_key_and_less_by_its_value(question: str, energy: float | None):
    memory = partition()
    talk(memory, "My name is Ada", "e1", session=LATER)
    found = {each.id: each.energy for each in ask(memory, question).recollections}
    assert found.get("fact:1") == energy


def test_a_fact_is_told_with_its_key():
    memory = partition()
    talk(memory, "My favourite colour is teal", "e1", session=LATER)
    assert "favourite colour: teal" in texts(ask(memory, "Which colour is my favourite?"))


def test_a_later_value_of_a_key_replaces_the_earlier_one():
    memory = partition()
    talk(memory, "My name is Ada", "e1")
    talk(memory, "My name is Eve", "e2")
    assert [(key, [each.value for each in told]) for key, told in mind(memory).facts.items()] == [("name", ["Eve"])]


def test_a_concept_that_is_named_comes_to_mind_the_more_the_more_often_it_was_met():
    memory = partition(EVERYTHING)
    energies = []
    for number in range(3):
        talk(memory, "Llamas spit", f"e{number}", session=LATER)
        found = ask(memory, "Any llama?", f"q{number}").recollections
        energies += [each.energy for each in found if each.layer == "concept"]
    # confidence 1/3, 1/2, 3/5, times s / (1 + s) of strength 1, 2, 3
    assert energies == [0.166666, 0.333333, 0.45]


def test_a_concept_fades():
    memory = partition(EVERYTHING)
    talk(memory, "Llamas spit", "e1", session=LATER)
    memory.hear(InputReceived(text="Hello"), Address(exchange="other"), after_ms=7 * 24 * HOUR_MS)
    (found,) = [each for each in ask(memory, "Any llama?").recollections if each.layer == "concept"]
    assert (found.text, found.energy) == ("llama (with spit)", 0.111111)


def test_vectors_of_another_model_are_not_compared():
    memory = partition()
    talk(memory, "The bridge is closed", "e1", vector=EAST, session=LATER)
    here = Address(exchange="e2")
    memory.hear(InputReceived(text="And?"), here)
    memory.hear(appraisal(EAST, models="others-2+trust-1"), here)
    assert recalled(memory, here).recollections == ()


def test_without_an_embedding_words_stand_in_for_it():
    memory = partition(EVERYTHING)
    talk(memory, "The bridge is closed", "e1", session=LATER)
    talk(memory, "The bridge is closed", "e2")
    found = {each.id: each.energy for each in ask(memory, "Which bridge?").recollections}
    assert found["turn:2"] == round(1 / sqrt(2), 6)
    assert found["episode:1"] == round(1 / sqrt(2) * 0.91, 6)


def test_agents_do_not_share_and_sessions_share_all_but_turns_and_gists():
    memory = partition(EVERYTHING)
    talk(memory, "My cat is Tom", "e1", vector=EAST, session=LATER)
    assert ask(memory, "My cat?", "e2", vector=EAST, agent="other", session=LATER).recollections == ()
    layers = {each.layer for each in ask(memory, "My cat?", "e3", vector=EAST).recollections}
    assert layers == {"episode", "fact", "concept"}


vectors = st.lists(st.integers(-127, 127), min_size=2, max_size=2).filter(any)


@given(st.lists(vectors, max_size=12), vectors, st.integers(1, 5))
@settings(deadline=None)
def test_recall_is_what_comparing_with_every_episode_gives(told: list[list[int]], sought: list[int], most: int):
    memory = partition(MemorySettings(floor=0.3, recollections=most))
    for number, vector in enumerate(told):
        talk(memory, "The bridge is closed", f"e{number}", vector=vector, session=LATER)
    compared = []
    for number, vector in enumerate(told, 1):
        dot = sum(a * b for a, b in zip(vector, sought, strict=True))
        cosine = max(0.0, dot / sqrt(sum(a * a for a in vector) * sum(b * b for b in sought)))
        compared.append((-round(cosine * weight_of(mind(memory).episodes.kept[number]), 6), -number))
    expected = [(f"episode:{-number}", -energy) for energy, number in sorted(compared) if -energy >= 0.3][:most]
    restored = partition(memory.state.settings)
    restored.state = decode_state(encode_state(memory.state), type(memory.state))
    restored.seq, restored.now_ns = memory.seq, memory.now_ns
    for each in (memory, restored):
        found = ask(each, "And?", vector=sought).recollections
        assert [(one.id, one.energy) for one in found] == expected


def test_a_query_of_other_words_finds_an_episode_by_what_it_is_about():
    memory = partition(MemorySettings(recollections=1, floor=0.1))
    talk(memory, "The llama is ill", "e1", vector=EAST, session=LATER)
    for number in range(8):
        talk(memory, "The bridge is closed", f"b{number}", vector=NORTH, session=LATER)
    here = Address(exchange="question")
    memory.hear(InputReceived(text="How is it?"), here)
    memory.hear(appraisal(NORTH), here)
    (own,) = act(memory, Action(index=0, skill="recall", query="How is it?"), here=here).results
    assert ids(own) == ["episode:9"]
    lowered = msgspec.structs.replace(memory.state.settings, recollections=20)
    memory.configure(lowered)
    (other,) = act(memory, Action(index=0, skill="recall", query="ill llama"), here=here).results
    assert "episode:1" in ids(other)
