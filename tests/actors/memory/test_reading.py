"""Terms, overlap of terms, and gists."""

from hypothesis import given
from hypothesis import strategies as st

from actors.contract.text.terms import terms_of
from actors.memory.layers.gist import ANSWER_CHARACTERS, SENTENCE_CHARACTERS, gist_of, shorten, tokens_of
from actors.memory.terms import concepts_in, overlap
from tests.actors.strategies import texts
from tests.each import each


@each(
    ("text", "terms"),
    [
        ("What is the capital of Peru?", ("capital", "peru")),
        ("The cats' bowls and Ada's cities", ("cat", "bowl", "ada", "city")),
        ("I don't know what you mean", ()),
        ("Flight 4711 leaves at 7", ("flight", "4711", "leave")),
        ("the bus, the class, the analysis", ("bus", "class", "analysis")),
        ("CAFÉ café", ("cafe",)),
        ("   ", ()),
    ],
)
def test_terms_are_the_content_words_in_one_spelling(text: str, terms: tuple[str, ...]):
    assert terms_of(text) == terms


def test_numbers_are_terms_and_no_concepts():
    assert concepts_in("Flight 4711 from Lima", 8) == ("flight", "lima")


@each(
    ("one", "other", "cosine"),
    [
        ("lima", "lima", 1.0),
        ("capital peru", "peru lima", 0.5),
        ("peru", "capital peru lima", 0.57735),
        ("peru", "chile", 0.0),
        ("", "peru", 0.0),
    ],
)
def test_overlap_is_the_cosine_of_two_sets(one: str, other: str, cosine: float):
    assert overlap(one.split(), other.split()) == cosine


@given(st.lists(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdef")))
def test_overlap_is_symmetric_and_a_unit(one: list[str], other: list[str]):
    one, other = list(dict.fromkeys(one)), list(dict.fromkeys(other))
    assert overlap(one, other) == overlap(other, one)
    assert 0.0 <= overlap(one, other) <= 1.0


def test_a_gist_is_the_sentence_that_says_most():
    assert gist_of("Hi there! What is the capital of Peru? Thanks.", "") == "Asked: What is the capital of Peru?"


def test_a_gist_tells_what_was_answered():
    told = gist_of("My cat is ill", "Poor thing. See a vet soon.")
    assert told == "Said: My cat is ill Answered: Poor thing."


def test_of_a_blank_text_there_is_no_gist():
    assert gist_of(" \n", "Yes?") == ""


@given(texts, texts)
def test_gists_are_short_and_on_one_line(text: str, answer: str):
    gist = gist_of(text, answer)
    assert len(gist) <= SENTENCE_CHARACTERS + ANSWER_CHARACTERS + 20
    assert "\n" not in gist


def test_a_text_is_shortened_between_words():
    assert shorten("one two  three\nfour", 12) == "one two…"
    assert shorten("one two", 12) == "one two"


@given(texts, st.integers(2, 80))
def test_what_is_shortened_is_no_longer_than_asked(text: str, most: int):
    assert len(shorten(text, most)) <= most


def test_a_token_is_about_four_characters():
    assert [tokens_of(text) for text in ("", "four", "x" * 40)] == [1, 2, 11]
