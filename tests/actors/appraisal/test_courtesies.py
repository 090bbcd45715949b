"""A word or two: a courtesy, a topic, or a mere pointer, and nothing else of a reading moved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.appraisal.measures.turn_reading import COURTESIES, as_courtesy_or_topic, turn_reading_of
from actors.router.selection import Context, select_mode, signals_of
from actors.router.settings import RouterSettings
from schemas.vocabulary.appraisal import TurnReading
from schemas.vocabulary.memory import COLD
from tests.each import each

TOPICS = (
    "recursion", "Tokyo", "gravity", "photosynthesis", "Napoleon", "bitcoin", "help", "sushi", "Kubernetes", "chess",
    "bitcoin price", "pizza recipe", "linux kernel", "capital Peru", "black holes", "roman empire", "tax deadline",
    "symptoms flu", "Isaac Newton", "big bang", "solar panels", "cheap hotels",
)  # fmt: skip
COURTEOUS = (
    "hi", "Hello!", "heyyy", "thanks", "Thank you", "thx", "bye", "ok", "cool", "sounds good", "gracias", "merci",
    "danke", "hola", "gute Nacht", "terima kasih", "dzi\u0119kuj\u0119", "hi Sam", "thanks Ada",
    "\u043f\u0440\u0438\u0432\u0435\u0442", "\u4f60\u597d", "\u3042\u308a\u304c\u3068\u3046",
)  # fmt: skip
POINTING = ("change that", "undo that", "him", "it's broken", "these", "delete it")


def mode_of(text: str) -> str:
    signals = signals_of(text, COLD, turn_reading_of(text))
    return select_mode(signals, Context(), RouterSettings()).selected_mode


def test_nearly_every_topic_of_a_word_or_two_is_answered():
    """Noted and left at that were 18 of these 22."""
    assert sum(mode_of(text) in ("RESPOND", "ACT") for text in TOPICS) >= 20


@each("text", COURTEOUS)
def test_a_courtesy_of_a_word_or_two_is_acknowledged_as_before(text: str):
    assert mode_of(text) == "ACKNOWLEDGE"


@each("text", POINTING)
def test_what_only_points_at_something_is_asked_back(text: str):
    assert mode_of(text) == "CLARIFY"


readings = st.builds(TurnReading, **{name: st.floats(0, 0.2) for name in TurnReading.__struct_fields__})


@given(st.text(max_size=40), readings)
def test_what_a_text_was_read_as_is_moved_and_not_lost(text: str, turn: TurnReading):
    after = as_courtesy_or_topic(text, turn)
    assert sum(getattr(after, name) for name in turn.__struct_fields__) == pytest.approx(
        sum(getattr(turn, name) for name in turn.__struct_fields__), abs=2e-6
    )
    assert (after.recall, after.task) == (turn.recall, turn.task)


@each("text", ["", "...", "?", "\U0001f44d", "what a lovely morning", "thanks a lot", "\u4f60\u597d\u5417"])
def test_other_texts_are_read_as_they_are(text: str):
    turn = TurnReading(answerable=0.1, underspecified=0.1, social=0.7, recall=0.05, task=0.05)
    assert as_courtesy_or_topic(text, turn) == turn


def test_the_words_of_courtesies_are_kept_as_they_are_compared():
    assert all(word == word.casefold().strip() and " " not in word for word in COURTESIES)
