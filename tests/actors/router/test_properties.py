"""What holds for any text and any course of events."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.router import ACTOR
from actors.router.scoring import contributions, guarded, scores_of
from actors.router.selection import Context, observe, select_mode
from actors.router.settings import RouterSettings
from actors.router.signals import BLANK, read_text
from schemas.catalogue import CATALOGUE, decode_event
from schemas.event import encode_event
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.router import Mode
from tests.actors.router.builders import ESCALATED, answered, appraised
from tests.actors.scenario import Address, Partition

MODES: tuple[Mode, ...] = get_args(Mode)
PHRASES = (
    "hi", "Hello,", "thanks", "not helpful", "what", "is it", "can you", "we discussed", "last time", "?", ".", "\n",
    "deploy this", "the build is broken", "ok", "yo-yo", "but", "\u200b", "’", "great", "you remember", "🙂", "Σ", "ß",
)  # fmt: skip
texts = st.one_of(
    st.text(st.characters(codec=None), max_size=60), st.lists(st.sampled_from(PHRASES), max_size=12).map(" ".join)
)
contexts = st.builds(
    Context,
    turns=st.integers(0, 4),
    gist_count=st.integers(0, 8),
    fact_keys=st.integers(0, 50).map(lambda count: tuple(map(str, range(count)))),
    is_new_topic=st.booleans(),
    exchanges_before=st.integers(0, 99),
    previous_mode=st.sampled_from((None, *MODES)),
    act_unproductive=st.booleans(),
    recent_confidences=st.lists(st.floats(0, 1), max_size=4).map(tuple),
)
all_settings = st.builds(
    RouterSettings,
    profile=st.sampled_from(("seed", "calibrated")),
    base_scores=st.dictionaries(st.sampled_from(MODES), st.floats(-2, 2)),
    act_available=st.booleans(),
)


@given(texts, contexts, all_settings)
def test_any_text_gets_a_decision_that_decodes_to_itself(text: str, context: Context, chosen: RouterSettings):
    selected = select_mode(observe(text, context, chosen), context, chosen)
    body = encode_event(selected)
    assert decode_event("forged_id.router.mode_selected", body) == selected


@given(texts, contexts, all_settings)
def test_the_same_input_gets_the_same_bytes(text: str, context: Context, chosen: RouterSettings):
    once, twice = (select_mode(observe(text, context, chosen), context, chosen) for _ in range(2))
    assert encode_event(once) == encode_event(twice)


@given(texts, contexts, all_settings)
def test_scores_are_the_sums_of_their_terms(text: str, context: Context, chosen: RouterSettings):
    selected = select_mode(observe(text, context, chosen), context, chosen)
    terms = guarded(
        contributions(selected.signals, selected.weights),
        selected.weights,
        context.previous_mode,
        context.act_unproductive,
    )
    sums = {mode: sum(terms[mode].values()) for mode in MODES if mode in selected.scores}
    assert selected.scores == pytest.approx(sums, abs=5.1e-7)
    assert selected.scores == {mode: score for mode, score in scores_of(terms).items() if mode in selected.scores}


@given(texts, contexts)
def test_a_decision_is_ignore_exactly_when_the_text_is_blank(text: str, context: Context):
    selected = select_mode(observe(text, context, RouterSettings()), context, RouterSettings())
    assert (selected.selected_mode == "IGNORE") == (read_text(text) == BLANK)


@given(texts)
def test_white_space_is_blank_and_letters_are_not(text: str):
    if not text.strip():
        assert read_text(text) == BLANK
    if any(character.isalnum() for character in text):
        assert read_text(text).prompt_token_count > 0


@given(texts, contexts, all_settings)
def test_the_choice_has_the_highest_score_and_the_terminal_mode_the_highest_without_act(
    text: str, context: Context, chosen: RouterSettings
):
    selected = select_mode(observe(text, context, chosen), context, chosen)
    assert selected.scores[selected.selected_mode] == max(selected.scores.values())
    if selected.terminal_mode is None:
        assert selected.selected_mode == "ACT"
    else:
        others = [score for mode, score in selected.scores.items() if mode != "ACT"]
        assert selected.scores[selected.terminal_mode] == max(others)


SAMPLES = [entry.sample for entry in CATALOGUE.values()]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(SAMPLES), max_size=30), st.data())
def test_any_event_of_the_catalogue_folds(events: list, data: st.DataObject):
    router = Partition(ACTOR)
    for event in events:
        router.fold(router.own(event))
    assert state_hash(decode_state(encode_state(router.state), ACTOR.state_type)) == state_hash(router.state)


steps = st.lists(
    st.tuples(
        st.sampled_from(("input", "appraised", "escalated", "ended")),
        st.integers(0, 5),
        st.integers(0, 2),
        st.integers(0, 100_000_000),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps, texts)
def test_no_pending_state_is_left_when_all_exchanges_have_ended(steps: list, text: str):
    router = Partition(ACTOR)
    started: set[int] = set()
    decided: list[str] = []
    for kind, exchange, session, pause_ms in steps:
        here = Address(session=f"s{session}", exchange=f"e{exchange}")
        if kind == "input" and exchange not in started:
            started.add(exchange)
            router.hear(InputReceived(text=text), here, after_ms=pause_ms)
        elif kind == "appraised":
            router.hear(appraised("bikes", 0.5, is_new=True), here, after_ms=pause_ms)
        elif kind == "escalated":
            decided += [each.exchange for each in router.hear(ESCALATED, here, after_ms=pause_ms)]
        elif kind == "ended":
            router.hear(answered(), here, after_ms=pause_ms)
    for exchange in started:
        router.hear(answered(), Address(exchange=f"e{exchange}"))
    assert len(router.state.pending) == 0
    assert len(decided) == len(set(decided))


@settings(max_examples=60)
@given(steps, texts)
def test_what_happens_in_other_sessions_changes_no_decision(steps: list, text: str):
    chosen = RouterSettings(session_lifetime_ms=50_000_000)
    crowded, alone = (Partition(ACTOR).configure(chosen) for _ in range(2))
    for kind, exchange, session, pause_ms in steps:
        here = Address(session=f"s{session}", exchange=f"s{session}e{exchange}")
        event = {
            "input": InputReceived(text=text),
            "appraised": appraised("bikes", 0.5, is_new=True),
            "escalated": ESCALATED,
            "ended": answered(),
        }[kind]
        crowded.hear(event, here, after_ms=pause_ms)
        if session == 0:
            alone.now_ns = crowded.now_ns
            alone.hear(event, here)
    mine = [each.event for each in crowded.emitted if each.session == "s0"]
    assert mine == [each.event for each in alone.emitted]
