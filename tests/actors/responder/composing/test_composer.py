"""What the composer says: honest, bounded, the same every time."""

from hashlib import sha256
from importlib.resources import files
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from actors.responder import ACTOR
from actors.responder.composing.composer import ANSWERS, Recall, compose, text_of
from actors.responder.composing.quoting import quote
from schemas.vocabulary.router import Mode
from tests.actors.responder.builders import chosen
from tests.each import each

ANSWERS_OF_BEHAVIOUR = {
    1: "435c361724c8e2fd48138265f810943797fd1d1f8364b8a1439bda4519a00e73",
}
"""Behaviour -> digest of the texts: answers are recorded decisions, so changed texts are a changed behaviour."""


def answer(mode: Mode, text: str, *earlier: str, **seen: object) -> str:
    return drawn(mode, text, Recall(earlier=earlier), **seen)


def drawn(mode: Mode, text: str, recall: Recall, **seen: object) -> str:
    composed = compose(mode, text, chosen(mode, **seen), recall, 200)
    assert composed is not None
    return composed


def test_the_texts_are_those_of_the_declared_behaviour():
    data = files("actors.responder.composing").joinpath("answers.json").read_bytes()
    assert sha256(data).hexdigest() == ANSWERS_OF_BEHAVIOUR[ACTOR.behaviour], "raise ACTOR.behaviour with the texts"


def test_respond_says_that_no_language_model_is_attached_and_what_it_received():
    said = answer("RESPOND", "What is the capital of Peru?", has_question_mark=True)
    assert "no language model is attached" in said
    assert "your question: “What is the capital of Peru?”" in said
    assert "Lima" not in said


def test_respond_says_what_was_decided():
    assert "RESPOND (confidence 0.37)" in answer("RESPOND", "Peru is lovely.", confidence=0.3701)


def test_respond_does_not_call_a_statement_a_question():
    assert "question" not in answer("RESPOND", "Peru is lovely.")


def test_clarify_quotes_what_it_is_about():
    said = answer("CLARIFY", "Can you fix the deployment?", has_question_mark=True)
    assert "You wrote: “Can you fix the deployment?”" in said


def test_clarify_asks_which_when_the_words_refer_back():
    said = answer("CLARIFY", "Can you fix that?", "The build is red.", "So is the lamp.", implicit_reference=True)
    assert "Earlier you said: “The build is red.”, “So is the lamp.”. Is “Can you fix that?” about that" in said


@each(
    "text",
    ["it?", "What about the capital?", "???", "Fix the deployment?", "それを直してください", "répare-le"],
)
def test_without_a_model_clarify_says_what_is_missing_and_what_can_be_done_and_asks_about_no_word(text: str):
    said = answer("CLARIFY", text)
    assert "Something seems to be missing that only you can tell" in said
    assert "I can remember what you tell me and repeat it when it is asked for" in said
    assert "?" not in said.replace(text, "")


def test_clarify_says_that_no_language_model_will_reason_about_the_reply():
    assert "No language model is attached" in answer("CLARIFY", "the deployment")


@each("mode", ["RESPOND", "CLARIFY"])
def test_what_is_remembered_is_said_in_quotes_strongest_first(mode: Mode):
    said = drawn(mode, "What is my name?", Recall(memories=("name: Ada", "Ada likes tea")), has_question_mark=True)
    assert "“name: Ada”, “Ada likes tea”" in said
    assert "no language model is attached" in said.casefold()


def test_with_a_memory_at_hand_a_reference_back_is_not_said_to_lead_nowhere():
    said = drawn("RESPOND", "What did I say?", Recall(memories=("name: Ada",)), implicit_reference=True)
    assert "I remember nothing earlier" not in said


@each("mode", ["RESPOND", "CLARIFY"])
def test_where_a_model_was_asked_in_vain_it_is_not_said_that_none_is_attached(mode: Mode):
    said = drawn(mode, "What is a lease?", Recall(lack="silent"), has_question_mark=True).casefold()
    assert "the language model gave no answer" in said
    assert "attached" not in said


@each(
    ("text", "seen", "said"),
    [
        ("Thanks a lot!", {"explicit_feedback": "positive"}, "You are welcome."),
        ("Hi, and thank you", {"greeting_pattern": True}, "You are welcome."),
        ("Exactly right", {"explicit_feedback": "positive"}, "Good to hear."),
        (
            "no thanks, that was wrong",
            {"explicit_feedback": "negative"},
            "I am sorry that this was not what you needed.",
        ),
        ("Hey", {"greeting_pattern": True}, "Hello."),
        ("Goodbye", {}, "Goodbye."),
        ("ok", {}, "Noted."),
    ],
)
def test_acknowledge_fits_what_was_said(text: str, seen: dict[str, object], said: str):
    assert answer("ACKNOWLEDGE", text, **seen) == said


def test_a_greeting_within_a_session_is_answered_as_one_again():
    assert answer("ACKNOWLEDGE", "Hey", "My bike is blue.", greeting_pattern=True) == "Hello again."


@given(st.text())
def test_ignore_says_nothing(text: str):
    assert answer("IGNORE", text) == ""


def test_act_is_not_a_mode_to_answer_in():
    assert compose("ACT", "text", chosen("ACT"), Recall(), 200) is None


def test_words_that_look_like_a_template_are_quoted_as_they_are():
    assert "“$confidence ${quote} $$ %s {0}”" in answer("RESPOND", "$confidence ${quote} $$ %s {0}")


@given(
    mode=st.sampled_from(get_args(Mode)),
    text=st.text(max_size=2000),
    earlier=st.lists(st.text(min_size=1, max_size=200), max_size=4),
    memories=st.lists(st.text(min_size=1, max_size=200), max_size=3),
    lack=st.sampled_from(["unattached", "silent"]),
    question=st.booleans(),
    reference=st.booleans(),
    greeting=st.booleans(),
    feedback=st.sampled_from([None, "positive", "negative"]),
)
def test_answers_are_repeatable_and_bounded(
    mode, text, earlier, memories, lack, question, reference, greeting, feedback
):
    recall = Recall(earlier=tuple(earlier), memories=tuple(memories), lack=lack)
    selected = chosen(
        mode,
        has_question_mark=question,
        implicit_reference=reference,
        greeting_pattern=greeting,
        explicit_feedback=feedback,
    )
    first = compose(mode, text, selected, recall, 200)
    assert first == compose(mode, text, selected, recall, 200)
    assert first is None or len(first) <= 9 * 210 + 600


@given(st.text(max_size=3000), st.integers(20, 300))
def test_a_quote_is_one_visible_line_within_its_limit(text: str, limit: int):
    line = quote(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    assert line == line.strip()


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=20))
def test_a_short_text_is_quoted_whole(text: str):
    assert quote(text, 20) == text


@each("text", ["x" * 21, "word " * 50, "y" * 1_000_000, "x" + " " * 500 + "y"])
def test_a_cut_quote_says_that_it_is_cut(text: str):
    assert quote(text, 20).endswith("…")


def test_a_quote_drops_marks_that_would_reorder_it():
    assert quote("abc\u202egpj.exe\u200b", 50) == "abc gpj.exe"


def test_a_lone_surrogate_does_not_reach_an_answer():
    assert quote("a\ud800b", 50) == "a b"


@each("name", sorted(ANSWERS.answers))
def test_every_text_can_be_filled_in(name: str):
    values = {"quote": "q", "earlier": "e", "memories": "m", "told": "t", "gone": "g"}
    assert "$" not in text_of(name, confidence="0.5", lack="l", **values)


def test_known_words_are_spelled_as_they_are_compared():
    for words in (ANSWERS.thanks, ANSWERS.farewells):
        assert all(word == word.casefold().strip() for word in words)
