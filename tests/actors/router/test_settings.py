"""Weights and settings: what there is, and what is refused."""

import msgspec
import pytest

from actors.router import ACTOR
from actors.router.settings import (
    CALIBRATED,
    PROFILES,
    SEED,
    STANDARD,
    Profile,
    RouterSettings,
    Thresholds,
    effective_weights,
)
from schemas.vocabulary.regulator import BOUNDS
from tests.each import each

REGULATED = {
    "RESPOND.base": (0.30, 0.70),
    "CLARIFY.base": (0.10, 0.50),
    "ACT.base": (0.05, 0.40),
    "ACKNOWLEDGE.base": (0.0, 0.30),
    "respond.warmth_boost": (0.05, 0.40),
    "respond.cold_penalty": (0.05, 0.30),
    "clarify.cold_boost": (0.10, 0.40),
    "clarify.warm_penalty": (0.05, 0.35),
    "act.question_moderate_context": (0.05, 0.35),
    "act.implicit_reference": (0.05, 0.30),
    "acknowledge.greeting": (0.30, 0.80),
    "acknowledge.question_penalty": (0.10, 0.50),
    "tiebreaker_base_margin": (0.08, 0.30),
}
"""What the regulator may move, and how far."""

READING = {
    "respond.answerable": (0.10, 0.50),
    "respond.task": (0.10, 0.50),
    "clarify.underspecified": (0.60, 1.80),
    "act.recall": (0.45, 1.35),
    "acknowledge.social": (0.45, 1.35),
}
"""What it may move besides where what a text is decides."""


@each("weights", PROFILES.values(), named=list(PROFILES))
def test_every_regulated_weight_exists_within_its_bounds(weights: dict[str, float]):
    assert [name for name, (low, high) in REGULATED.items() if not low <= weights[name] <= high] == []


def test_every_weight_of_what_a_text_is_that_is_regulated_lies_within_its_bounds():
    assert {name for name in READING if not READING[name][0] <= STANDARD[name] <= READING[name][1]} == set()
    assert {**REGULATED, **READING} == BOUNDS


def test_what_regulation_may_lower_or_raise_has_room_either_way():
    bases = {name: BOUNDS[name] for name in BOUNDS if name.endswith(".base")}
    assert all(low < STANDARD[name] < high for name, (low, high) in {**bases, **READING}.items())


@each("profile", ["calibrated", "seed"])
def test_the_source_s_profiles_know_nothing_of_what_a_text_is(profile: Profile):
    assert {*PROFILES[profile]} == {*SEED}
    with pytest.raises(ValueError, match=f"router profile '{profile}' has no weight 'act.recall'"):
        RouterSettings(profile=profile, weights={"act.recall": 0.5})


def test_seed_and_calibrated_differ_in_three_weights():
    assert {name: (SEED[name], CALIBRATED[name]) for name in SEED if SEED[name] != CALIBRATED[name]} == {
        "RESPOND.base": (0.50, 0.40),
        "acknowledge.greeting": (0.60, 0.80),
        "acknowledge.positive_feedback": (0.40, 0.55),
    }


def test_the_default_profile_is_standard():
    assert effective_weights(RouterSettings()) == dict(STANDARD)


def test_overrides_replace_single_weights():
    settings = RouterSettings(profile="seed", base_scores={"RESPOND": 0.45}, weights={"respond.cold_penalty": 0.1})
    changed = {"RESPOND.base": 0.45, "respond.cold_penalty": 0.1}
    assert effective_weights(settings) == {**SEED, **changed}


def test_an_unknown_weight_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"'respond\.warmth_bost': did you mean 'respond\.warmth_boost'\?"):
        RouterSettings(weights={"respond.warmth_bost": 0.1})


@each("value", [float("nan"), float("inf"), 2.1, -2.1])
def test_a_weight_out_of_range_is_refused(value: float):
    with pytest.raises(ValueError, match=r"'ACT\.base' is .*: it must lie in \[-2, 2\]"):
        RouterSettings(weights={"ACT.base": value})


def test_a_base_margin_below_the_minimum_is_refused():
    with pytest.raises(ValueError, match="'tiebreaker_base_margin' is below 'tiebreaker_min_margin'"):
        RouterSettings(weights={"tiebreaker_base_margin": 0.07})


def test_crossing_thresholds_are_refused():
    with pytest.raises(ValueError, match="very_cold <= cold <= warm"):
        Thresholds(cold=0.7)
    with pytest.raises(ValueError, match="'moderate_low' is above 'moderate_high'"):
        Thresholds(moderate_low=0.8)


@each(
    "document",
    [
        {"weights": {"no.such": 1.0}},
        {"profile": "tuned"},
        {"base_scores": {"REPLY": 0.1}},
        {"session_lifetime_ms": 0},
        {"thresholds": {"cold": 1.5}},
        {"saturation": {"fact_density": 0}},
        {"tiebreak": "coin"},
        {"tiebreak_timeout_ms": 0},
        {"colour": "red"},
    ],
)
def test_a_bad_configuration_is_a_validation_error(document: dict[str, object]):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(document, ACTOR.settings_type)


def test_settings_survive_their_recording():
    settings = RouterSettings(weights={"ACT.base": 0.3}, act=False, tiebreak="llm", thresholds=Thresholds(cold=0.2))
    assert msgspec.convert(msgspec.to_builtins(settings), RouterSettings) == settings
