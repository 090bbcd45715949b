"""What comes to mind, how strongly, and of whom."""

from math import sqrt
from unittest import mock

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.memory.layers.episodes import weight_of
from actors.memory.settings import MemorySettings
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.act import Action
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.self_review import SeatAdded
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
from tests.each import each

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
        memory.hear(InputReceived(text=f"The bridge is closed, says {exchange}"), here)
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
        talk(memory, f"Bridge {number} is closed", f"e{number}", vector=EAST)
    assert ids(ask(memory, "And?", vector=EAST)) == ["turn:4", "turn:3"]


def test_memories_that_say_the_same_come_to_mind_once():
    memory = partition()
    for number in range(3):
        talk(memory, "The bridge is closed.", f"s{number}", vector=EAST)
        talk(memory, "The bridge is closed!", f"l{number}", vector=EAST, session=LATER)
        talk(memory, "Which road is open?", f"q{number}", vector=EAST, session=LATER, answer=f"Road {number}.")
    assert ids(ask(memory, "And?", vector=EAST)) == ["turn:7", "episode:9"]


@each("text", ["My name is Ada", "my name's Ada!", "Hi, I'm Ada."])
def test_an_exchange_that_says_no_more_than_a_fact_is_that_fact(text: str):
    memory = partition()
    talk(memory, text, "e1", vector=EAST)
    assert texts(ask(memory, "Who was that?", vector=EAST)) == ["name: Ada"]


@each("text", ["My goat is called Brunhilde.", "My goat's name is Brunhilde"])
def test_an_exchange_that_only_names_somebody_is_that_fact(text: str):
    memory = partition()
    talk(memory, text, "e1", session=LATER)
    assert texts(ask(memory, "What is my goat called?")) == ["goat's name: Brunhilde"]


def test_what_was_told_comes_before_what_was_only_asked_and_answered():
    memory = partition(MemorySettings(recollections=3))
    talk(memory, "I am allergic to peanuts", "e1", vector=BETWEEN, session=LATER)
    for number in range(8):
        talk(memory, f"Which food should I eat on day {number}?", f"q{number}", vector=EAST, answer="Peanuts!")
    found = ask(memory, "Which foods must I avoid?", vector=EAST).recollections
    assert [(each.text, each.echo) for each in found[:1]] == [("allergy to peanuts: is allergic to it", False)]
    assert all(each.echo and each.energy > found[0].energy for each in found[1:])


def test_what_was_told_once_is_not_lost_behind_a_question_that_comes_again_and_again():
    memory = partition(MemorySettings(recollections=3, turns=1, gists=1))
    talk(memory, "The bridge is closed", "e1", vector=BETWEEN, session=LATER)
    for number in range(30):
        talk(memory, "Which road is open?", f"q{number}", vector=EAST, session=LATER, answer="All.")
    found = ask(memory, "Which road is open?", vector=EAST).recollections
    assert [each.text for each in found[:2]] == [
        "Said: The bridge is closed",
        "Asked: Which road is open? Answered: All.",
    ]


@each(
    ("told", "question"),
    [
        ("I am allergic to peanuts", "Which foods must I avoid?"),
        ("I am allergic to peanuts", "Plan a dinner menu"),
        ("I'm a vegetarian", "What should I eat?"),
        ("I live in Brno", "How is the weather in my city?"),
        ("I work as a nurse", "What is my profession?"),
        ("My daughter is called Eva", "Suggest a present for my child"),
        ("I have a dog called Rex", "Do I have a pet?"),
        ("I'm 34 years old", "How old am I?"),
        ("My name is Ada", "Who am I?"),
        ("I'm from Lima", "Where am I from?"),
        ("I like jazz", "Recommend something to my taste"),
    ],
)
def test_a_fact_comes_to_mind_by_what_it_bears_on(told: str, question: str):
    memory = partition()
    talk(memory, told, "e1", session=LATER)
    assert any(each.layer == "fact" for each in ask(memory, question).recollections)


@each(
    "question",
    [
        "What do you know about me?", "what do you remember about me", "Tell me everything you know about me.",
        "What have you learned about me so far?", "What did I tell you about myself?", "What have I told you?",
        "What do you remember?", "Do you know anything about me?",
    ],
)  # fmt: skip
def test_who_asks_what_is_known_of_them_is_told_all_of_it(question: str):
    memory = partition()
    for number, told in enumerate(("I am allergic to peanuts", "I live in Lima", "I like jazz")):
        talk(memory, told, f"e{number}", session=LATER)
    found = [each.text for each in ask(memory, question).recollections if each.layer == "fact"]
    assert found == ["opinion of jazz: likes it", "home: Lima", "allergy to peanuts: is allergic to it"]


@each(
    "question",
    [
        "What do you know about bees?",
        "What did she tell you?",
        "What is 2 + 2?",
        "Write a poem about the sea",
        "Is the bridge open?",
    ],
)
def test_a_fact_that_bears_on_nothing_of_it_does_not(question: str):
    memory = partition()
    talk(memory, "I am allergic to peanuts and I live in Brno", "e1", session=LATER)
    assert [each for each in ask(memory, question).recollections if each.layer == "fact"] == []


def test_a_fact_comes_to_mind_by_the_meaning_of_the_exchange_that_told_it():
    memory = partition()
    talk(memory, "I play the oboe and my instrument is an oboe", "e1", vector=EAST, session=LATER)
    found = {each.text: each.energy for each in ask(memory, "Any music?", vector=BETWEEN).recollections}
    assert found["instrument: an oboe"] == 0.6


@each(
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
    talk(memory, "A bridge has closed", "e2")
    found = {each.id: each.energy for each in ask(memory, "Which bridge?").recollections}
    assert found["turn:2"] == round(1 / sqrt(2), 6)
    assert found["episode:1"] == round(1 / sqrt(2) * 0.91, 6)


def test_agents_do_not_share_and_sessions_share_all_but_turns_and_gists():
    memory = partition(EVERYTHING)
    talk(memory, "My cat is Tom, a tabby", "e1", vector=EAST, session=LATER)
    assert ask(memory, "My cat?", "e2", vector=EAST, agent="other", session=LATER).recollections == ()
    layers = {each.layer for each in ask(memory, "My cat?", "e3", vector=EAST).recollections}
    assert layers == {"episode", "fact", "concept"}


vectors = st.lists(st.integers(-127, 127), min_size=2, max_size=2).filter(any)


@given(st.lists(vectors, max_size=12), vectors, st.integers(1, 5))
@settings(deadline=None)
def test_recall_is_what_comparing_with_every_episode_gives(told: list[list[int]], sought: list[int], most: int):
    memory = partition(MemorySettings(floor=0.3, recollections=most))
    for number, vector in enumerate(told):
        talk(memory, f"Bridge {number} is closed", f"e{number}", vector=vector, session=LATER)
    compared = []
    for number, vector in enumerate(told, 1):
        dot = sum(a * b for a, b in zip(vector, sought, strict=True))
        cosine = max(0.0, dot / sqrt(sum(a * a for a in vector) * sum(b * b for b in sought)))
        compared.append((-round(cosine * weight_of(mind(memory).episodes.kept[number]), 6), -number))
    expected = [(f"episode:{-number}", -energy) for energy, number in sorted(compared) if -energy >= 0.3][:most]
    restored = partition(memory.state.settings)
    restored.state = decode_state(encode_state(memory.state), type(memory.state))
    restored.seq, restored.now_ns = memory.seq, memory.now_ns
    for asked in (memory, restored):
        found = ask(asked, "And?", vector=sought).recollections
        assert [(one.id, one.energy) for one in found] == expected


SAYINGS = (
    "Which road is open?", "The bridge is closed", "My name is Ada", "My name is Eve", "I do not live in Brno any more",
    "I live in Brno", "And?", "!!",
)  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(0, len(SAYINGS) - 1), vectors), max_size=40),
    st.dictionaries(st.integers(1, 40), st.sampled_from([-1.0, 1.0]), max_size=6),
    vectors,
    st.integers(1, 5),
    st.sampled_from([0.0, 0.3]),
)
@settings(deadline=None)
def test_leaving_repetitions_out_changes_nothing_of_what_is_recalled(
    told: list[tuple[int, list[int]]], seats: dict[int, float], sought: list[int], most: int, floor: float
):
    memory = partition(MemorySettings(floor=floor, recollections=most, turns=1, gists=1))
    for number, (saying, vector) in enumerate(told):
        talk(memory, SAYINGS[saying], f"e{number}", vector=vector, session=LATER if number % 3 else "session")
    for number, value in seats.items():
        seat = SeatAdded(citizen="agent", tick=1, entity=f"episode:{number}", seat_type="metacog_quality", value=value)
        memory.when(seat, Address("agent", "", ""))
    found = ask(memory, "And?", "short", vector=sought).recollections
    with mock.patch("actors.memory.recall._without_repetitions", lambda near, *_: ((n.number, n.energy) for n in near)):
        assert ask(memory, "And?", "long", vector=sought).recollections == found


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
