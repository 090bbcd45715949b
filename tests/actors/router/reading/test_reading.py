"""The reading of turns that ships: what a stranger's first words are taken for, in many languages and on the corpora.

The corpora are no part of the project: ``NEURAXIS_CORPORA`` names their folder, or they lie beside the checkout. The
weights were trained on them; ``python -m bench.quality.turns`` tells how it is with sources that training left out.
"""

from collections.abc import Iterable

import pytest

from actors.appraisal.measures.turn_reading import turn_model, turn_reading_of
from actors.contract.text.folding import fold
from actors.registry import ACTORS
from actors.router.settings import RouterSettings
from bench.quality.turns import BY_WARMTH, Case, group_of, own_cases, routed, shares, underspecified
from deploy.training.turn_rows import MODES_OF, TurnRow, load_turns, written_turns
from schemas.vocabulary.memory import COLD
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Mode, ModeSelected
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address
from tests.e2e.models.test_corpora import corpus
from tests.each import each

EVERY = 12
"""One row of so many is judged."""


def mode_of(text: str) -> Mode:
    return routed(text, turn_reading_of(text), COLD, RouterSettings())


@each(
    ("text", "modes"),
    [
        ("What is the capital of Peru?", "RESPOND"),
        ("Who wrote The Old Man and the Sea?", "RESPOND"),
        ("Write a limerick about a lighthouse keeper.", "RESPOND"),
        ("Wie hoch ist die Zugspitze?", "RESPOND"),
        ("¿Cuántos ríos hay en Colombia?", "RESPOND"),
        ("ブラジルの首都はどこですか", "RESPOND"),
        ("Сколько лет Эрмитажу?", "RESPOND"),
        ("fix it", "CLARIFY"),
        ("send it to him", "CLARIFY"),
        ("which is better?", "CLARIFY"),
        ("Hello!", "ACKNOWLEDGE"),
        ("Thanks a lot, that helped", "ACKNOWLEDGE"),
        ("Vielen Dank!", "ACKNOWLEDGE"),
        ("ありがとうございます", "ACKNOWLEDGE"),
        ("What is my name?", "ACT"),
        ("What did I tell you about my sister?", "ACT"),
    ],
)
def test_a_stranger_s_first_words_are_met_as_people_would(text: str, modes: str):
    assert mode_of(text) in modes.split()


@each(
    "text",
    [
        "რა არის საქართველოს დედაქალაქი?", "Hvað heitir höfuðborg Íslands?", "Kio estas la ĉefurbo de Francio?",
        "Zein da Frantziako hiriburua?", "Cili është kryeqyteti i Francës?", "ፀሐይ ለምን ትወጣለች?",
        "Որն է Ֆրանսիայի մայրաքաղաքը:", "Какво е столицата на Франция?",
    ],
)  # fmt: skip
def test_a_language_that_training_had_not_is_no_reason_to_ask_back(text: str):
    for familiarity in BY_WARMTH.values():
        assert routed(text, turn_reading_of(text), familiarity, RouterSettings()) != "CLARIFY"


def test_of_a_hundred_turns_in_which_something_is_missing_most_are_asked_back():
    cases = own_cases()
    assert len(cases) == 100
    found = shares(cases, [turn_reading_of(case.text) for case in cases])["underspecified"]
    assert found["cold"] >= 0.8
    assert found["warm"] < found["cold"], "what a talk has said may be what is missing"


def test_none_of_these_turns_is_among_the_phrases_of_training():
    def plain(text: str) -> str:
        return " ".join("".join(letter if letter.isalnum() else " " for letter in fold(text)).split())

    written = {plain(row.text) for row in written_turns()}
    assert [text for text in underspecified() if plain(text) in written] == []


def test_the_weights_are_small_and_named_by_their_hash():
    assert turn_model().name.startswith("turn-")
    assert len(turn_model().keys) <= 25_000


@pytest.fixture(scope="module")
def rows() -> list[TurnRow]:
    """A sample of the labelled texts; skips where there are none."""
    folder = corpus()
    if folder is None or not (folder / "router_labelled.jsonl").is_file():
        pytest.skip("no corpora: set NEURAXIS_CORPORA to a folder that holds router_labelled.jsonl")
    return load_turns([folder / "router_labelled.jsonl", folder / "prompts.jsonl"])[::EVERY]


def cases_of(rows: Iterable[TurnRow]) -> list[Case]:
    return [
        Case(
            group_of(row.source, row.category, row.kinds),
            row.text,
            frozenset(mode for kind in row.kinds for mode in MODES_OF[kind]),
        )
        for row in rows
    ]


def test_requests_are_answered_in_every_context_and_courtesies_acknowledged(rows: list[TurnRow]):
    cases = cases_of(rows)
    found = shares(cases, [turn_reading_of(case.text) for case in cases])
    assert min(found["instructions"].values()) >= 0.95
    assert found["SGD, lacking"]["cold"] >= 0.75
    assert found["SGD, complete"]["cold"] >= 0.75
    assert found["CLINC, requests"]["cold"] >= 0.9


def test_what_was_told_in_one_session_is_answered_in_the_next_and_not_asked_for():
    pipeline = Pipeline(ACTORS)
    pipeline.ask("My name is Ada", Address(session="monday", exchange="e1"))
    pipeline.ask("What is my name?", Address(session="tuesday", exchange="e2"))
    asked = [each.event for each in pipeline.stream if each.exchange == "e2"]
    selections = [event for event in asked if isinstance(event, ModeSelected)]
    assert [each.selected_mode for each in selections] == ["ACT", "RESPOND"]
    assert selections[-1].signals.findings > 0
    (end,) = [event for event in asked if isinstance(event, ResponseEmitted)]
    assert "Ada" in end.response
