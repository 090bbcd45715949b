"""Decisions on single texts: the settled cases, ambiguity, and ACT without an ACT loop."""

import msgspec

from schemas.event import encode_event
from schemas.vocabulary.memory import COLD, Familiarity
from tests.actors.router.builders import SEED, WITHOUT_ACT, ground, route
from tests.each import each

MODERATE = ground(turns=4, gists=1, facts=1)
WARM = ground(turns=4, gists=3, facts=6)
FULL = ground(turns=4, gists=9, facts=12)
GROUNDS = {"first": COLD, "turns": ground(turns=4), "moderate": MODERATE, "warm": WARM}


@each("familiarity", [*GROUNDS.values(), FULL])
@each("text", ["", "  \n", "\u200b"])
def test_a_blank_input_is_ignored_before_any_scoring(text: str, familiarity: Familiarity):
    """mode-router: Mode Types, IGNORE for empty input."""
    selected = route(text, familiarity)
    assert (selected.selected_mode, selected.terminal_mode, selected.reason) == ("IGNORE", "IGNORE", "blank_input")
    assert selected.scores == {"IGNORE": 0.5}
    assert (selected.router_confidence, selected.margin, selected.tiebreaker_candidates) == (1.0, 1.0, ())


@each("familiarity", GROUNDS.values(), named=list(GROUNDS))
@each("text", ["Hi, can you deploy this?", "Hi can you deploy this", "Hello, my build is broken"])
def test_a_request_behind_a_greeting_is_not_merely_acknowledged(text: str, familiarity: Familiarity):
    assert route(text, familiarity).terminal_mode != "ACKNOWLEDGE"


@each("familiarity", GROUNDS.values(), named=list(GROUNDS))
@each("text", ["Hey", "Thanks!", "Good morning!"])
def test_social_texts_are_acknowledged_in_any_usual_context(text: str, familiarity: Familiarity):
    assert route(text, familiarity).terminal_mode == "ACKNOWLEDGE"


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


def test_where_act_is_switched_off_the_best_other_mode_answers():
    selected = route("What did we discuss about the lease?", MODERATE, WITHOUT_ACT)
    assert (selected.selected_mode, selected.terminal_mode) == ("ACT", "RESPOND")
    assert selected.reason == "act_unavailable"


def test_act_leaves_the_terminal_mode_open():
    selected = route("What did we discuss about the lease?", MODERATE)
    assert (selected.selected_mode, selected.terminal_mode) == ("ACT", None)
    assert selected.reason == "highest_score"


def test_switching_act_off_changes_no_other_decision():
    assert route("Hey", settings=WITHOUT_ACT) == route("Hey")


def test_what_memory_knows_is_in_the_signals_as_it_said():
    known = ground(turns=2, gists=1, facts=3, world_state_present=True, topic_confidence=0.71, is_new_topic=True)
    recorded = msgspec.structs.asdict(route("go on", known).signals)
    names = {*Familiarity.__struct_fields__} - {"conversation_topic"}
    assert {name: recorded[name] for name in names} == {name: getattr(known, name) for name in names}


def test_a_decision_records_all_it_rests_on():
    """mode-router: Routing Decision Audit Trail, signal and weight snapshot."""
    selected = route("the blue one", ground(turns=2), SEED, previous_mode="CLARIFY", recent_confidences=(0.1, 0.1, 0.1))
    assert selected.previous_mode == "CLARIFY"
    assert selected.weights == {**route("x", settings=SEED).weights}
    assert selected.scores["RESPOND"] == 0.43  # .50 + .20 x .15 - .15 + .05
    assert selected.effective_margin == 0.232  # .20 - .12 x .15 + .05
    assert (selected.signals.context_warmth, selected.signals.session_exchange_count) == (0.15, 2)


def test_numbers_are_recorded_with_six_decimals():
    selected = route("How are the three of us to meet?", ground(turns=3, gists=1, facts=1))
    numbers = [*selected.scores.values(), selected.margin, selected.effective_margin, selected.router_confidence]
    assert [round(number, 6) for number in numbers] == numbers
    assert b"00000001" not in encode_event(selected)
