"""What holds for any text and any course of events."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.router import ACTOR
from actors.router.scoring import contributions, scores_of, with_oscillation_guards
from actors.router.selection import Context, reroute, select_mode, signals_of, with_tiebreak
from actors.router.settings import RouterSettings
from actors.router.signals import BLANK, read_text
from schemas.catalogue import CATALOGUE, decode_event
from schemas.event import Event, encode_event
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import Familiarity
from schemas.vocabulary.router import Mode, ModeSelected
from tests.actors.router.builders import answered, finished, ground, recalled, told
from tests.actors.scenario import Address, Partition

MODES: tuple[Mode, ...] = get_args(Mode)
PHRASES = (
    "hi", "Hello,", "thanks", "not helpful", "what", "is it", "can you", "we discussed", "last time", "?", ".", "\n",
    "deploy this", "the build is broken", "ok", "yo-yo", "but", "\u200b", "’", "great", "you remember", "🙂", "Σ", "ß",
)  # fmt: skip
texts = st.one_of(
    st.text(st.characters(codec=None), max_size=60), st.lists(st.sampled_from(PHRASES), max_size=12).map(" ".join)
)
grounds = st.builds(
    ground,
    turns=st.integers(0, 4),
    gists=st.integers(0, 8),
    facts=st.integers(0, 50),
    is_new_topic=st.booleans(),
    session_exchange_count=st.integers(0, 99),
)
contexts = st.builds(
    Context,
    previous_mode=st.sampled_from((None, *MODES)),
    act_unproductive=st.booleans(),
    recent_confidences=st.lists(st.floats(0, 1), max_size=4).map(tuple),
)
cases = st.tuples(texts, grounds, contexts)
all_settings = st.builds(
    RouterSettings,
    profile=st.sampled_from(("seed", "calibrated")),
    base_scores=st.dictionaries(st.sampled_from(MODES), st.floats(-2, 2)),
    act=st.booleans(),
)
Case = tuple[str, Familiarity, Context]


def selection(case: Case, chosen: RouterSettings) -> ModeSelected:
    text, familiarity, context = case
    return select_mode(signals_of(text, familiarity), context, chosen)


@given(cases, all_settings)
def test_any_text_gets_a_decision_that_decodes_to_itself(case: Case, chosen: RouterSettings):
    selected = selection(case, chosen)
    body = encode_event(selected)
    assert decode_event("forged_id.router.mode_selected", body) == selected


@given(cases, all_settings)
def test_the_same_input_gets_the_same_bytes(case: Case, chosen: RouterSettings):
    """mode-router: Core Principles, 1 routing is deterministic."""
    once, twice = (selection(case, chosen) for _ in range(2))
    assert encode_event(once) == encode_event(twice)


@given(cases, all_settings)
def test_scores_are_the_sums_of_their_terms(case: Case, chosen: RouterSettings):
    """mode-router: Scoring Formula, each mode gets a weighted composite score."""
    _, _, context = case
    selected = selection(case, chosen)
    terms = with_oscillation_guards(
        contributions(selected.signals, selected.weights),
        selected.weights,
        context.previous_mode,
        context.act_unproductive,
    )
    sums = {mode: sum(terms[mode].values()) for mode in MODES if mode in selected.scores}
    assert selected.scores == pytest.approx(sums, abs=5.1e-7)
    assert selected.scores == {mode: score for mode, score in scores_of(terms).items() if mode in selected.scores}


@given(cases)
def test_a_decision_is_ignore_exactly_when_the_text_is_blank(case: Case):
    assert (selection(case, RouterSettings()).selected_mode == "IGNORE") == (read_text(case[0]) == BLANK)


@given(texts)
def test_white_space_is_blank_and_letters_are_not(text: str):
    if not text.strip():
        assert read_text(text) == BLANK
    if any(character.isalnum() for character in text):
        assert read_text(text).prompt_token_count > 0


@given(cases, all_settings)
def test_the_choice_has_the_highest_score_and_the_terminal_mode_the_highest_without_act(
    case: Case, chosen: RouterSettings
):
    selected = selection(case, chosen)
    assert selected.scores[selected.selected_mode] == max(selected.scores.values())
    if selected.terminal_mode is None:
        assert (selected.selected_mode, chosen.act) == ("ACT", True)
    else:
        others = [score for mode, score in selected.scores.items() if mode != "ACT"]
        assert selected.scores[selected.terminal_mode] == max(others)


@given(cases, all_settings, st.sampled_from((*MODES, "invalid", "failed:no_model")))
def test_a_tie_breaker_can_only_choose_a_candidate(case: Case, chosen: RouterSettings, outcome: str):
    selected = selection(case, chosen)
    after = with_tiebreak(selected, outcome, chosen)
    allowed = outcome if outcome in selected.tiebreaker_candidates else selected.selected_mode
    assert (after.selected_mode, after.tiebreaker_outcome) == (allowed, outcome)
    assert after.scores == selected.scores


@given(cases, all_settings)
def test_a_reroute_never_acts_and_scores_the_others_as_before(case: Case, chosen: RouterSettings):
    first = selection(case, chosen)
    again = reroute(first, chosen)
    assert "ACT" not in {again.selected_mode, again.terminal_mode, *again.scores}
    assert again.selected_mode == again.terminal_mode
    if len(first.scores) > 1:
        assert again.scores == {mode: score for mode, score in first.scores.items() if mode != "ACT"}


SAMPLES = [entry.sample for entry in CATALOGUE.values()]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(SAMPLES), max_size=30))
def test_any_event_of_the_catalogue_folds(events: list[Event]):
    router = Partition(ACTOR)
    for event in events:
        router.fold(router.own(event))
    assert state_hash(decode_state(encode_state(router.state), ACTOR.state_type)) == state_hash(router.state)


steps = st.lists(
    st.tuples(
        st.sampled_from(("input", "recalled", "told", "found", "found_nothing", "ended")),
        st.integers(0, 5),
        st.integers(0, 2),
        st.integers(0, 100_000_000),
    ),
    max_size=40,
)
GROUND = ground(turns=4, gists=1, facts=1)


def event_of(kind: str, text: str, router: Partition) -> Event:
    """Return a step's event; a model answers whatever was asked last."""
    return {
        "input": InputReceived(text=text),
        "recalled": recalled(GROUND),
        "told": told(router.emitted[-1].id if router.emitted else "", '{"mode": "RESPOND"}'),
        "found": finished(productive=True),
        "found_nothing": finished(productive=False),
        "ended": answered(),
    }[kind]


@settings(max_examples=60)
@given(steps, texts, st.sampled_from(("score", "llm")))
def test_no_pending_state_is_left_when_all_exchanges_have_ended(steps: list, text: str, tiebreak: Any):
    router = Partition(ACTOR).configure(RouterSettings(profile="calibrated", tiebreak=tiebreak))
    started: set[int] = set()
    for kind, exchange, session, pause_ms in steps:
        if kind == "input":
            started.add(exchange)
        here = Address(session=f"s{session}", exchange=f"e{exchange}")
        router.hear(event_of(kind, text, router), here, after_ms=pause_ms)
    for exchange in started:
        router.hear(answered(), Address(exchange=f"e{exchange}"))
    assert len(router.state.pending) == 0


@settings(max_examples=60)
@given(steps, texts)
def test_no_exchange_is_routed_twice_but_after_act(steps: list, text: str):
    """mode-router: ACT Loop, step 6 one re-route, excluding ACT."""
    router = Partition(ACTOR)
    for kind, exchange, _, _ in steps:
        router.hear(event_of(kind, text, router), Address(exchange=f"e{exchange}"))
    selections = [each for each in router.emitted if isinstance(each.event, ModeSelected)]
    routed = [(each.exchange, each.event.rerouted) for each in selections]
    assert len(routed) == len(set(routed))
    acting = {each.exchange for each in selections if each.event.terminal_mode is None}
    assert {exchange for exchange, rerouted in routed if rerouted} <= acting


@settings(max_examples=60)
@given(steps, texts)
def test_what_happens_in_other_sessions_changes_no_decision(steps: list, text: str):
    chosen = RouterSettings(profile="calibrated", session_lifetime_ms=50_000_000)
    crowded, alone = (Partition(ACTOR).configure(chosen) for _ in range(2))
    for kind, exchange, session, pause_ms in steps:
        if kind == "told":
            continue
        here = Address(session=f"s{session}", exchange=f"s{session}e{exchange}")
        event = event_of(kind, text, crowded)
        crowded.hear(event, here, after_ms=pause_ms)
        if session == 0:
            alone.now_ns = crowded.now_ns
            alone.hear(event, here)
    mine = [each.event for each in crowded.emitted if each.session == "s0"]
    assert mine == [each.event for each in alone.emitted]
