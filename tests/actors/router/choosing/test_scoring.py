"""The formula, row by row, with the numbers of the design."""

from typing import Any

import pytest

from actors.router.scoring import (
    MODES,
    choose,
    confidence_of,
    contributions,
    effective_margin,
    ranked,
    scores_of,
    with_oscillation_guards,
)
from actors.router.settings import CALIBRATED, SEED, Saturation, Thresholds
from schemas.vocabulary.router import Mode
from tests.actors.router.builders import signals
from tests.each import each

WORDS = {"interrogative_words": True}
QUESTION = {"has_question_mark": True, **WORDS}


@each(
    ("mode", "seed", "calibrated"),
    [
        ("RESPOND", 0.50, 0.40),
        ("CLARIFY", 0.30, 0.30),
        ("ACT", 0.20, 0.20),
        ("ACKNOWLEDGE", 0.10, 0.10),
        ("IGNORE", -0.50, -0.50),
    ],
    named=[
        "mode-router: Scoring Formula, RESPOND base 0.50",
        "mode-router: Scoring Formula, CLARIFY base 0.30",
        "mode-router: Scoring Formula, ACT base 0.20",
        "mode-router: Scoring Formula, ACKNOWLEDGE base 0.10",
        "mode-router: Scoring Formula, IGNORE base -0.50",
    ],
)
def test_every_mode_starts_from_its_base(mode: Mode, seed: float, calibrated: float):
    assert contributions(signals(), SEED)[mode][f"{mode}.base"] == seed
    assert contributions(signals(), CALIBRATED)[mode][f"{mode}.base"] == calibrated


# row of the table, which begins with its mode; term, signals that bring it, its value in both profiles
TERMS: list[tuple[str, str, dict[str, Any], float]] = [
    ("RESPOND booster context_warmth", "respond.warmth_boost", {"context_warmth": 0.5}, 0.10),
    ("RESPOND booster context_warmth at most", "respond.warmth_boost", {"context_warmth": 1.0}, 0.20),
    ("RESPOND booster fact_density", "respond.fact_density", {"fact_count": 4}, 0.06),
    ("RESPOND booster fact_density at 10 facts", "respond.fact_density", {"fact_count": 10}, 0.15),
    ("RESPOND booster fact_density above", "respond.fact_density", {"fact_count": 50}, 0.15),
    ("RESPOND booster gist_density", "respond.gist_density", {"gist_count": 2}, 0.04),
    ("RESPOND booster gist_density at most", "respond.gist_density", {"gist_count": 9}, 0.10),
    ("RESPOND booster question+context", "respond.question_with_context", {"context_warmth": 0.41, **QUESTION}, 0.15),
    (
        "RESPOND booster question+context, by words",
        "respond.question_with_context",
        {"context_warmth": 0.41, **WORDS},
        0.15,
    ),
    ("RESPOND penalty cold start", "respond.cold_penalty", {"context_warmth": 0.29}, -0.15),
    ("RESPOND penalty greeting", "respond.greeting_penalty", {"greeting_pattern": True}, -0.20),
    (
        "RESPOND penalty positive feedback",
        "respond.positive_feedback_penalty",
        {"explicit_feedback": "positive"},
        -0.15,
    ),
    ("CLARIFY booster cold context", "clarify.cold_boost", {"context_warmth": 0.0}, 0.25),
    ("CLARIFY booster less cold context", "clarify.cold_boost", {"context_warmth": 0.2}, 0.20),
    ("CLARIFY booster cold question", "clarify.cold_question", {"context_warmth": 0.29, **QUESTION}, 0.05),
    ("CLARIFY booster question+no_facts", "clarify.question_no_facts", {"fact_count": 0, **QUESTION}, 0.20),
    ("CLARIFY booster new_topic+question", "clarify.new_topic_question", {"is_new_topic": True, **QUESTION}, 0.10),
    ("CLARIFY penalty warm context (>0.6)", "clarify.warm_penalty", {"context_warmth": 0.61}, -0.20),
    (
        "ACT booster question+moderate_context",
        "act.question_moderate_context",
        {"context_warmth": 0.3, **QUESTION},
        0.20,
    ),
    (
        "ACT booster question+moderate_context at most",
        "act.question_moderate_context",
        {"context_warmth": 0.7, **QUESTION},
        0.20,
    ),
    ("ACT booster interrogative+gap_in_facts", "act.interrogative_fact_gap", {"fact_count": 2, **WORDS}, 0.15),
    ("ACT booster implicit_reference", "act.implicit_reference", {"implicit_reference": True}, 0.15),
    ("ACT penalty very cold", "act.very_cold_penalty", {"context_warmth": 0.14}, -0.10),
    ("ACT penalty very warm+facts", "act.warm_facts_penalty", {"context_warmth": 0.61, "fact_count": 6}, -0.10),
    ("ACKNOWLEDGE penalty has_question (-0.30)", "acknowledge.question_penalty", QUESTION, -0.30),
    ("IGNORE booster empty_input only (+1.0)", "ignore.empty_input", {"prompt_token_count": 0}, 1.00),
]


@each(
    ("row", "term", "given", "value"),
    TERMS,
    named=[f"mode-router: Scoring Formula, {each[0]}" for each in TERMS],
)
@each("weights", [SEED, CALIBRATED], named=["seed", "calibrated"])
def test_a_term_adds_its_share(row: str, term: str, given: dict[str, Any], value: float, weights: dict[str, float]):
    terms: dict[str, dict[str, float]] = {**contributions(signals(**given), weights)}
    assert terms[row.split()[0]][term] == pytest.approx(value, abs=1e-12)


def test_every_weight_of_a_mode_has_a_row():
    rows = {term for _, term, _, _ in TERMS} | {"acknowledge.greeting", "acknowledge.positive_feedback"}
    moved = {mode.lower() for mode in MODES}
    assert rows == {name for name in SEED if name.split(".")[0] in moved}


@each(
    ("term", "given", "seed", "calibrated"),
    [
        ("acknowledge.greeting", {"greeting_pattern": True}, 0.60, 0.80),
        ("acknowledge.positive_feedback", {"explicit_feedback": "positive"}, 0.40, 0.55),
    ],
    named=[
        "mode-router: Scoring Formula, ACKNOWLEDGE booster greeting_pattern (+0.60)",
        "mode-router: Scoring Formula, ACKNOWLEDGE booster positive_feedback (+0.40)",
    ],
)
def test_social_signals_weigh_more_when_calibrated(term: str, given: dict[str, Any], seed: float, calibrated: float):
    assert contributions(signals(**given), SEED)["ACKNOWLEDGE"][term] == seed
    assert contributions(signals(**given), CALIBRATED)["ACKNOWLEDGE"][term] == calibrated


@each(
    ("mode", "term", "given"),
    [
        ("RESPOND", "respond.question_with_context", {"context_warmth": 0.4, **QUESTION}),
        ("RESPOND", "respond.question_with_context", {"context_warmth": 0.9}),
        ("RESPOND", "respond.cold_penalty", {"context_warmth": 0.3}),
        ("RESPOND", "respond.positive_feedback_penalty", {"explicit_feedback": "negative"}),
        ("CLARIFY", "clarify.cold_boost", {"context_warmth": 0.3}),
        ("CLARIFY", "clarify.cold_question", {"context_warmth": 0.3, **QUESTION}),
        ("CLARIFY", "clarify.question_no_facts", {"fact_count": 1, **QUESTION}),
        ("CLARIFY", "clarify.question_no_facts", {"fact_count": 0}),
        ("CLARIFY", "clarify.new_topic_question", {"is_new_topic": True}),
        ("CLARIFY", "clarify.warm_penalty", {"context_warmth": 0.6}),
        ("ACT", "act.question_moderate_context", {"context_warmth": 0.299999, **QUESTION}),
        ("ACT", "act.question_moderate_context", {"context_warmth": 0.700001, **QUESTION}),
        ("ACT", "act.interrogative_fact_gap", {"fact_count": 3, **QUESTION}),
        ("ACT", "act.very_cold_penalty", {"context_warmth": 0.15}),
        ("ACT", "act.warm_facts_penalty", {"context_warmth": 0.61, "fact_count": 5}),
        ("ACT", "act.warm_facts_penalty", {"context_warmth": 0.6, "fact_count": 6}),
        ("ACKNOWLEDGE", "acknowledge.positive_feedback", {"explicit_feedback": "negative"}),
        ("IGNORE", "ignore.empty_input", {"prompt_token_count": 1}),
    ],
)
def test_at_its_bound_a_term_does_not_apply(mode: Mode, term: str, given: dict[str, Any]):
    assert term not in contributions(signals(**given), CALIBRATED)[mode]


@each(
    ("given", "expected"),
    [
        # A cold first question: .40-.15 | .30+.25+.05+.20+.10 | .20+.15-.10 | .10-.30
        (
            {"context_warmth": 0.0, "fact_count": 0, "is_new_topic": True, **QUESTION},
            {"RESPOND": 0.25, "CLARIFY": 0.90, "ACT": 0.25, "ACKNOWLEDGE": -0.20, "IGNORE": -0.50},
        ),
        # A greeting in a cold session: .40-.15-.20 | .30+.25 | .20-.10 | .10+.80
        (
            {"context_warmth": 0.0, "fact_count": 0, "greeting_pattern": True},
            {"RESPOND": 0.05, "CLARIFY": 0.55, "ACT": 0.10, "ACKNOWLEDGE": 0.90, "IGNORE": -0.50},
        ),
        # Thanks in a warm one: .40+.16+.075+.06-.15 | .30-.20 | .20 | .10+.55
        (
            {"context_warmth": 0.8, "gist_count": 3, "explicit_feedback": "positive"},
            {"RESPOND": 0.545, "CLARIFY": 0.10, "ACT": 0.20, "ACKNOWLEDGE": 0.65, "IGNORE": -0.50},
        ),
        # A reference to shared history in a moderate one: .40+.10+.015+.15 | .30 | .20+.20+.15+.15 | .10-.30
        (
            {"fact_count": 1, "implicit_reference": True, **QUESTION},
            {"RESPOND": 0.665, "CLARIFY": 0.30, "ACT": 0.70, "ACKNOWLEDGE": -0.20, "IGNORE": -0.50},
        ),
    ],
)
def test_scores_are_the_sums_of_the_terms(given: dict[str, Any], expected: dict[Mode, float]):
    assert scores_of(contributions(signals(**given), CALIBRATED)) == expected


def test_the_seeds_numbers_answer_a_warm_thanks_at_length():
    warm_thanks = signals(context_warmth=0.9, fact_count=8, gist_count=4, explicit_feedback="positive")
    assert ranked(scores_of(contributions(warm_thanks, SEED)))[0] == "RESPOND"
    assert ranked(scores_of(contributions(warm_thanks, CALIBRATED)))[0] == "ACKNOWLEDGE"


def test_an_empty_input_would_lose_under_the_formula_alone():
    warm_and_empty = signals(context_warmth=0.8, gist_count=3, fact_count=0, prompt_token_count=0)
    scores = scores_of(contributions(warm_and_empty, SEED))
    assert (scores["IGNORE"], scores["RESPOND"]) == (0.5, 0.72)


def test_an_unproductive_act_makes_another_less_likely():
    """mode-router: Anti-Oscillation Guards, previous ACT unproductive -> act_score -= 0.15."""
    terms = with_oscillation_guards(contributions(signals(), CALIBRATED), CALIBRATED, "RESPOND", act_unproductive=True)
    assert terms["ACT"]["guard.unproductive_act"] == -0.15
    assert scores_of(terms)["ACT"] == 0.05


def test_after_a_clarification_an_answer_is_more_likely():
    """mode-router: Anti-Oscillation Guards, previous CLARIFY -> respond_score += 0.05."""
    terms = with_oscillation_guards(contributions(signals(), CALIBRATED), CALIBRATED, "CLARIFY", act_unproductive=False)
    assert terms["RESPOND"]["guard.after_clarify"] == 0.05
    assert scores_of(terms)["RESPOND"] == 0.625


@each("previous", [None, "RESPOND", "ACT", "ACKNOWLEDGE", "IGNORE"])
def test_otherwise_no_guard_applies(previous: Mode | None):
    """mode-router: Anti-Oscillation Guards, ephemeral: no others."""
    terms = contributions(signals(), CALIBRATED)
    assert with_oscillation_guards(terms, CALIBRATED, previous, act_unproductive=False) == terms


@each(
    ("top", "second", "confidence"),
    [(0.5, 0.4, 0.2), (0.9, 0.55, 0.388889), (0.3, 0.3, 0.0), (0.0, -0.5, 500.0), (-0.1, -0.2, 1.0)],
    named=[
        f"mode-router: Router Confidence, (top - second) / max(abs(top), 0.001), {each}"
        for each in ("lead", "more", "none", "top 0", "negative")
    ],
)
def test_confidence_is_the_lead_relative_to_the_top(top: float, second: float, confidence: float):
    assert confidence_of(top, second) == confidence


@each(
    ("given", "margin"),
    [
        ({"context_warmth": 0.0}, 0.20),
        ({"context_warmth": 0.3}, 0.164),
        ({"context_warmth": 1.0}, 0.08),
        ({"context_warmth": 0.0, "implicit_reference": True}, 0.25),
        ({"context_warmth": 0.0, "information_density": 0.29}, 0.23),
        ({"context_warmth": 0.0, "information_density": 0.3}, 0.20),
        ({"context_warmth": 0.0, "interrogative_words": True}, 0.23),
        ({"context_warmth": 0.0, **QUESTION}, 0.20),
        ({"context_warmth": 0.0, "implicit_reference": True, "interrogative_words": True}, 0.28),
    ],
    named=[
        f"mode-router: Tie-Breaker, effective_margin, {each}"
        for each in (
            "cold: base 0.20", "warmth 0.3", "warmth 1: min 0.08", "implicit_reference (+0.05)",
            "low information_density (+0.03)", "density of exactly 0.3",
            "interrogative_words without question mark (+0.03)", "question mark", "two signs add up",
        )
    ],
)  # fmt: skip
def test_the_margin_narrows_with_warmth_and_widens_with_uncertainty(given: dict[str, Any], margin: float):
    assert effective_margin(signals(**given), CALIBRATED) == margin


@each(
    ("confidences", "margin"),
    [
        ((0.1, 0.1, 0.1), 0.25),
        ((0.149999, 0.0, 0.14), 0.25),
        ((0.1, 0.1), 0.20),
        ((), 0.20),
        ((0.1, 0.15, 0.1), 0.20),
        ((0.9, 0.1, 0.1, 0.1), 0.25),
    ],
    named=[
        f"mode-router: Short-Term Hysteresis, {each}"
        for each in ("all 3 below 0.15", "hardly", "two", "none", "one of exactly 0.15", "the latest 3")
    ],
)
def test_three_low_confidences_widen_the_margin(confidences: tuple[float, ...], margin: float):
    assert effective_margin(signals(context_warmth=0.0), CALIBRATED, confidences) == margin


def test_a_lead_of_exactly_the_margin_is_not_ambiguous():
    """mode-router: Tie-Breaker, top 2 within the effective margin."""
    scores: dict[Mode, float] = {"RESPOND": 0.5, "CLARIFY": 0.4, "IGNORE": -0.5}
    assert choose(scores, 0.2).candidates == ()
    assert choose(scores, 0.200001).candidates == ("RESPOND", "CLARIFY")


def test_ignoring_is_never_a_candidate():
    """mode-router: Scoring Formula, IGNORE is for empty input only."""
    assert choose({"RESPOND": -0.5, "IGNORE": -0.5}, 0.2).candidates == ()


def test_equal_scores_fall_to_the_mode_listed_first():
    assert choose({"IGNORE": 0.3, "ACT": 0.3, "CLARIFY": 0.3}, 0.0).mode == "CLARIFY"


def test_thresholds_and_saturation_come_from_the_settings():
    shifted = contributions(signals(context_warmth=0.35), CALIBRATED, Thresholds(cold=0.4), Saturation(fact_density=5))[
        "RESPOND"
    ]
    assert shifted["respond.cold_penalty"] == -0.15
    assert shifted["respond.fact_density"] == 0.15
