"""Public conversations through all actors, without a broker: one end each, and the modes that they come to.

They are no part of the project: ``NEURAXIS_CORPORA`` names the folder that holds them, or they lie beside the checkout.
Run with ``-s`` to see the shares.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from actors.registry import ACTORS
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Mode, ModeSelected
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address
from tests.e2e.models.test_corpora import corpus
from tests.each import each

MODES: tuple[Mode, ...] = get_args(Mode)
UNALARMING: dict[Mode, tuple[float, float]] = {
    "RESPOND": (0.40, 0.85),
    "CLARIFY": (0.03, 0.30),
    "ACT": (0.02, 0.25),
    "ACKNOWLEDGE": (0.01, 0.20),
    "IGNORE": (0.0, 0.05),
}
"""Mode -> the shares between the source's red flags."""

KNOWN = 0.3
"""Warmth from which the ground is no longer cold."""


@pytest.fixture(scope="module")
def talked() -> Pipeline:
    """Every conversation of the corpus, each with an agent and a session of its own; skips where there is none."""
    folder = corpus()
    if folder is None or not (folder / "conversations.jsonl").is_file():
        pytest.skip("no corpora: set NEURAXIS_CORPORA to a folder that holds conversations.jsonl")
    pipeline = Pipeline(ACTORS)
    with (folder / "conversations.jsonl").open(encoding="utf-8") as lines:
        for conversation in map(json.loads, lines):
            converse(pipeline, conversation)
    pipeline.advance(120_000)
    return pipeline


def converse(pipeline: Pipeline, conversation: dict[str, Any]) -> None:
    name = conversation["id"]
    said = [turn["text"] for turn in conversation["turns"] if turn["role"] == "user"]
    for number, text in enumerate(said):
        pipeline.ask(text, Address(agent=name, session=name, exchange=f"{name}-{number}"))


def first_choices(pipeline: Pipeline) -> list[ModeSelected]:
    selections = [each.event for each in pipeline.stream if isinstance(each.event, ModeSelected)]
    return [selected for selected in selections if not selected.rerouted]


def shares(selections: Sequence[ModeSelected]) -> dict[Mode, float]:
    counted = Counter(selected.selected_mode for selected in selections)
    return {mode: counted[mode] / len(selections) for mode in MODES}


def test_every_exchange_of_every_conversation_ends_once(talked: Pipeline):
    inputs = [each.exchange for each in talked.stream if each.id not in talked.causes and each.exchange]
    assert len(inputs) > 1_000
    assert Counter(end.exchange for end in talked.ends()) == Counter(inputs)


def test_what_was_let_through_is_answered_in_the_mode_that_was_selected_last(talked: Pipeline):
    last = {each.exchange: each.event.terminal_mode for each in talked.stream if isinstance(each.event, ModeSelected)}
    executed = [
        (end.exchange, end.event.mode)
        for end in talked.ends()
        if isinstance(end.event, ResponseEmitted) and end.event.action == "EXECUTED"
    ]
    assert dict(executed) == last


def test_a_stranger_is_met_in_every_mode(talked: Pipeline):
    found = shares(first_choices(talked))
    print("\nall ground:", {mode: f"{share:.1%}" for mode, share in found.items()})
    assert min(found.values()) > 0
    social: tuple[Mode, ...] = ("ACKNOWLEDGE", "IGNORE")
    for mode in social:
        assert UNALARMING[mode][0] <= found[mode] <= UNALARMING[mode][1]


def test_no_mode_s_share_raises_a_red_flag_of_the_source(talked: Pipeline):
    found = shares(first_choices(talked))
    assert {mode for mode, (least, most) in UNALARMING.items() if not least <= found[mode] <= most} == set()


@each("known", [False, True], named=["cold", "known"])
def test_whether_the_ground_is_cold_or_known_it_neither_asks_nor_answers_too_much(talked: Pipeline, known: bool):
    here = [each for each in first_choices(talked) if (each.signals.context_warmth >= KNOWN) is known]
    found = shares(here)
    print(f"\n{len(here)} exchanges:", {mode: f"{share:.1%}" for mode, share in found.items()})
    assert len(here) > 100
    # These talks are short: of their late turns a quarter is the thanks and the consent that end them.
    asked: tuple[Mode, ...] = ("RESPOND", "CLARIFY", "ACT")
    assert [mode for mode in asked if not UNALARMING[mode][0] <= found[mode] <= UNALARMING[mode][1]] == []


def test_warmth_modulates_the_lead_of_answering_over_asking_back_and_does_not_turn_it(talked: Pipeline):
    leads: dict[bool, list[float]] = {False: [], True: []}
    for selected in first_choices(talked):
        if selected.selected_mode != "IGNORE":
            lead = selected.scores["RESPOND"] - selected.scores["CLARIFY"]
            leads[selected.signals.context_warmth >= KNOWN].append(lead)
    means = {known: sum(each) / len(each) for known, each in leads.items()}
    assert means[False] > 0
    assert means[True] > 0
