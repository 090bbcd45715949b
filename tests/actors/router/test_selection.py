"""Decisions on single texts: the settled cases, ambiguity, and ACT without an ACT loop."""

import pytest

from actors.router.selection import Context
from actors.router.settings import RouterSettings
from schemas.event import encode_event
from tests.actors.router.builders import SEED, route

MODERATE = Context(turns=4, gist_count=1, fact_keys=("f",), exchanges_before=4)
WARM = Context(turns=4, gist_count=3, fact_keys=tuple("abcdef"), exchanges_before=4)
FULL = Context(turns=4, gist_count=9, fact_keys=tuple("abcdefghijkl"), exchanges_before=40)
CONTEXTS = {"first": Context(is_new_topic=True), "turns": Context(turns=4), "moderate": MODERATE, "warm": WARM}


@pytest.mark.parametrize("context", [*CONTEXTS.values(), FULL])
@pytest.mark.parametrize("text", ["", "  \n", "\u200b"])
def test_a_blank_input_is_ignored_before_any_scoring(text: str, context: Context):
    selected = route(text, context)
    assert (selected.selected_mode, selected.terminal_mode, selected.reason) == ("IGNORE", "IGNORE", "blank_input")
    assert selected.scores == {"IGNORE": 0.5}
    assert (selected.router_confidence, selected.margin, selected.tiebreaker_candidates) == (1.0, 1.0, ())


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("text", ["Hi, can you deploy this?", "Hi can you deploy this", "Hello, my build is broken"])
def test_a_request_behind_a_greeting_is_not_merely_acknowledged(text: str, context: Context):
    assert route(text, context).terminal_mode != "ACKNOWLEDGE"


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("text", ["Hey", "Thanks!", "Good morning!"])
def test_social_texts_are_acknowledged_in_any_usual_context(text: str, context: Context):
    assert route(text, context).terminal_mode == "ACKNOWLEDGE"


def test_the_seed_profile_answers_a_warm_thanks_at_length():
    assert route("Thanks!", WARM, SEED).terminal_mode == "RESPOND"


def test_with_a_full_memory_even_calibrated_weights_do():
    assert route("Thanks!", FULL).scores["RESPOND"] == 0.7


def test_a_cold_question_asks_back_and_a_warm_one_is_answered():
    assert route("What should I cook tonight?").terminal_mode == "CLARIFY"
    assert route("What should I cook tonight?", WARM).terminal_mode == "RESPOND"


def test_a_clear_lead_needs_no_tie_break():
    selected = route("Hey")
    assert (selected.margin, selected.effective_margin) == (0.388889, 0.2)
    assert (selected.tiebreaker_used, selected.tiebreaker_candidates, selected.tiebreaker_outcome) == (False, (), "")
    assert selected.reason == "highest_score"


def test_an_ambiguous_one_falls_to_the_higher_score_and_names_both():
    selected = route("Thanks!")
    assert (selected.scores["ACKNOWLEDGE"], selected.scores["CLARIFY"]) == (0.65, 0.55)
    assert (selected.margin, selected.effective_margin) == (0.153846, 0.2)
    assert selected.tiebreaker_candidates == ("ACKNOWLEDGE", "CLARIFY")
    assert (selected.tiebreaker_used, selected.tiebreaker_outcome) == (False, "higher_score")
    assert selected.terminal_mode == "ACKNOWLEDGE"


def test_without_an_act_loop_the_best_other_mode_answers():
    selected = route("What did we discuss about the lease?", MODERATE)
    assert (selected.selected_mode, selected.terminal_mode) == ("ACT", "RESPOND")
    assert selected.reason == "act_unavailable"


def test_with_an_act_loop_the_terminal_mode_is_left_open():
    selected = route("What did we discuss about the lease?", MODERATE, RouterSettings(act_available=True))
    assert (selected.selected_mode, selected.terminal_mode) == ("ACT", None)
    assert selected.reason == "highest_score"


def test_an_act_loop_changes_no_other_decision():
    assert route("Hey", settings=RouterSettings(act_available=True)) == route("Hey")


def test_a_decision_records_all_it_rests_on():
    context = Context(turns=2, previous_mode="CLARIFY", exchanges_before=3, recent_confidences=(0.1, 0.1, 0.1))
    selected = route("the blue one", context, SEED)
    assert selected.previous_mode == "CLARIFY"
    assert selected.weights == {**route("x", settings=SEED).weights}
    assert selected.scores["RESPOND"] == 0.43  # .50 + .20 x .15 - .15 + .05
    assert selected.effective_margin == 0.232  # .20 - .12 x .15 + .05
    assert (selected.signals.context_warmth, selected.signals.session_exchange_count) == (0.15, 3)


def test_numbers_are_recorded_with_six_decimals():
    body = encode_event(route("How are the three of us to meet?", Context(turns=3, gist_count=1, fact_keys=("a",))))
    selected = route("How are the three of us to meet?", Context(turns=3, gist_count=1, fact_keys=("a",)))
    numbers = [*selected.scores.values(), selected.margin, selected.effective_margin, selected.router_confidence]
    assert [round(number, 6) for number in numbers] == numbers
    assert b"00000001" not in body
