"""Which facts a text tells, and which it does not."""

from hypothesis import given
from hypothesis import strategies as st

from actors.contract.text.terms import MOST_READ
from actors.memory.extraction.fact_extraction import MOST_FACTS, fact_of, facts_in
from actors.memory.extraction.keys import KEY_CHARACTERS, key_of
from actors.memory.extraction.phrases import VALUE_CHARACTERS
from tests.actors.strategies import texts
from tests.each import each

TOLD = {
    "My name is Ada.": {"name": "Ada"},
    "my name's ada": {"name": "ada"},
    "I am called Bob": {"name": "Bob"},
    "Call me Al, please.": {"name": "Al"},
    "Hello there, my name is Ada Lovelace and I live in Lima, Peru.": {"name": "Ada Lovelace", "home": "Lima, Peru"},
    "By the way, I'm now living in Quito!": {"home": "Quito"},
    "I work as a nurse at St. Mary's": {"job": "nurse", "employer": "St Mary's"},
    "I work for Acme Corp.": {"employer": "Acme Corp"},
    "I really like jazz because it swings.": {"opinion of jazz": "likes it"},
    "I prefer tea over coffee": {"opinion of tea": "prefers it"},
    "I don't like tea": {"opinion of tea": "does not like it"},
    "I hate Mondays!": {"opinion of mondays": "hates it"},
    "My favourite colour is teal. What is the capital of Peru?": {"favourite colour": "teal"},
    "my email is ada@example.com": {"email": "ada@example.com"},
    "My car is a 2.5 litre Saab.": {"car": "a 2.5 litre Saab"},
    "Remember that the garage code is 4711.": {"garage code": "4711"},
    "Please remember that my sister's birthday is May 3rd": {"sister's birthday": "May 3rd"},
    "don’t forget that the meeting is at noon": {"meeting": "at noon"},
    "Remember to buy milk": {"note about buy milk": "to buy milk"},
    "Remember that I am not coming on Friday.": {"note about coming friday": "I am not coming on Friday"},
    "My name is Ada. No, wait: my name is Eve.": {"name": "Eve"},
}
NOT_TOLD = [
    "", "What is my name?", "Is my name Ada?", "is my name Ada", "Do you remember my name?",
    "Do you remember that my name is Ada?", "My name isn't Ada.", "My name is not Ada", "I no longer live in Lima",
    "I never work at Acme", "Call me later", "call me when you are done", "If my name is Bob, what then?",
    "Suppose my name is Bob.", "Let's say I live in Rome", 'She said "my name is Eve" and left.', "His name is Bob",
    "I'd like a coffee", "I would like to know more", "I like it", "I love you", "My brother who lives in Rome is ill",
    "My point is that you are wrong", "Remember me",
]  # fmt: skip


@each("text", TOLD)
def test_a_statement_tells_facts(text: str):
    assert {fact.key: fact.value for fact in facts_in(text)} == TOLD[text]


@each("text", NOT_TOLD)
def test_questions_negations_suppositions_and_others_words_tell_nothing(text: str):
    assert facts_in(text) == ()


@each(
    ("key", "kept"),
    [
        ("My Name", "name"),
        ("the user's  Favourite   Colour", "favourite colour"),
        ("Zoë’s desk", "zoe's desk"),
        ("", ""),
    ],
)
def test_keys_are_kept_in_one_spelling(key: str, kept: str):
    assert key_of(key) == kept


def test_what_is_memorized_without_a_key_is_kept_under_what_it_states():
    fact = fact_of("", "the garage code is 4711")
    assert fact is not None
    assert (fact.key, fact.value) == ("garage code", "4711")


def test_nothing_is_memorized_of_a_blank_value():
    assert fact_of("name", "  ") is None


@given(st.lists(texts, max_size=4).map(". ".join))
def test_facts_of_any_text_stay_within_their_bounds(text: str):
    facts = facts_in(text)
    assert len(facts) <= MOST_FACTS
    assert len({fact.key for fact in facts}) == len(facts)
    for fact in facts:
        assert 0 < len(fact.key) <= KEY_CHARACTERS
        assert 0 < len(fact.value) <= VALUE_CHARACTERS


def test_no_more_than_the_beginning_of_a_long_text_is_read():
    assert facts_in("x " * MOST_READ + ". My name is Ada.") == ()
