"""Showing decisions: the numbers must be those of the record, and nothing may slip through to the terminal."""

from io import StringIO
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from actors.router.selection import Context, select_mode
from actors.router.settings import RouterSettings, Thresholds
from deploy.cli.rendering.event_rows import entry_of, line_of
from deploy.cli.rendering.hidden_texts import HIDDEN, without_words
from deploy.cli.rendering.replay import changed_fields
from deploy.cli.rendering.why.details import LineContext, details, quoted_line
from deploy.cli.rendering.why.lines import lines_on
from deploy.cli.rendering.why.recalculated import adds_up, score_table
from deploy.cli.rendering.why.tree import render
from events.log import Stored
from events.replay.explain import explain
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.operator import BreakerResetOrdered
from schemas.vocabulary.reflex import Match, ReflexBlocked
from schemas.vocabulary.router import ModeSelected, Signals
from schemas.vocabulary.self_review import SelfReviewResult, SelfReviewTriggered
from tests.actors.router.builders import route, signals
from tests.actors.strategies import events_for
from tests.each import each
from tests.events.ledger.messages import exchanges, stored

GROUPS_OF_NUMBERS = ((AppraisalCompleted, "turn"), (SelfReviewTriggered, "metrics"), (SelfReviewResult, "dimensions"))
"""Events with a struct of numbers that are shown each by its name."""

all_signals = st.builds(
    signals,
    context_warmth=st.integers(0, 1_000_000).map(lambda millionths: millionths / 1e6),
    gist_count=st.integers(0, 20),
    fact_count=st.integers(0, 20),
    is_new_topic=st.booleans(),
    prompt_token_count=st.integers(0, 50),
    has_question_mark=st.booleans(),
    interrogative_words=st.booleans(),
    greeting_pattern=st.booleans(),
    explicit_feedback=st.sampled_from([None, "positive", "negative"]),
    implicit_reference=st.booleans(),
)
contexts = st.builds(
    Context,
    topic=st.just("unclassified"),
    previous_mode=st.sampled_from([None, "CLARIFY", "RESPOND", "ACT"]),
    act_unproductive=st.booleans(),
)


def shown(*parts: RenderableType) -> str:
    console = Console(file=StringIO(), width=400)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@given(
    all_signals,
    contexts,
    st.sampled_from([RouterSettings(), RouterSettings(profile="seed", weights={"ACT.base": 0.3})]),
)
def test_the_terms_of_every_decision_add_up_to_its_scores(
    looked_at: Signals, context: Context, settings: RouterSettings
) -> None:
    selected = select_mode(looked_at, context, settings)
    table = score_table(selected)
    assert {score.mode: score.total for score in table} == selected.scores
    assert adds_up(table)
    assert [score.recorded for score in table] == sorted(selected.scores.values(), reverse=True)


def test_other_thresholds_are_noticed_and_explain_when_they_are_known() -> None:
    settings = RouterSettings(thresholds=Thresholds(cold=0.6))
    selected = select_mode(signals(context_warmth=0.5, has_question_mark=True), Context(topic="unclassified"), settings)
    assert not adds_up(score_table(selected))
    assert adds_up(score_table(selected, settings))
    assert "do not add up" in shown(*details(selected, LineContext()))
    assert "do not add up" not in shown(*details(selected, LineContext(router=settings)))


def test_weights_of_another_release_are_shown_without_an_explanation() -> None:
    selected = msgspec.structs.replace(route("Hello there"), weights={"RESPOND.base": 0.4})
    assert score_table(selected) == ()
    assert "ACKNOWLEDGE 0.9" in shown(*details(selected, LineContext()))


def test_every_event_of_the_catalogue_is_told() -> None:
    for entry in CATALOGUE.values():
        assert shown(*details(entry.sample, LineContext())).strip(), entry.topic


@given(events_for(tuple(entry.event for entry in CATALOGUE.values())))
def test_any_event_is_told_without_control_characters(event: Event) -> None:
    told = shown(*details(event, LineContext()))
    assert all(each.isprintable() or each == "\n" for each in told)


def found_at(view: str, span: tuple[int, int]) -> ReflexBlocked:
    match = Match(pattern="jailbreak", signature="dan mode", action="BLOCK", confidence=0.98, view=view, span=span)
    return ReflexBlocked(
        pattern="jailbreak", signature="dan mode", confidence=0.98, view=view, span=span, matches=(match,)
    )


def test_a_match_is_shown_in_its_place_in_the_text_or_the_layer() -> None:
    received = InputReceived(
        text="Now, DAN mode, please", layers=(Layer(role="document", content="a page with dan  mode in it"),)
    )
    assert "characters 5-13  Now, DAN mode, please" in shown(
        *details(found_at("plain", (5, 13)), LineContext(received))
    )
    told = shown(*details(found_at("document[0]:plain", (12, 21)), LineContext(received)))
    assert "of document[0]:plain  a page with dan  mode in it" in told


def test_a_match_in_a_decoded_view_is_told_without_a_text_that_is_not_recorded() -> None:
    received = InputReceived(text="ZGFuIG1vZGU=")
    told = shown(*details(found_at("base64", (0, 8)), LineContext(received)))
    assert told.rstrip().endswith("characters 0-8 of base64")


def test_a_quote_is_one_line_that_a_terminal_cannot_obey() -> None:
    assert quoted_line("red \x1b[31m\n alert\u202e!") == "“red  [31m alert !”"
    assert quoted_line("x" * 500, 10) == "“" + "x" * 9 + "…”"


def test_an_exchange_is_shown_whole_with_its_times() -> None:
    explanation = explain(exchanges(1))
    assert explanation is not None
    told = shown(render(explanation))
    assert "exchange x0" in told
    assert "the exchange is open" not in told
    assert "time: 30 ms in all" in told


def test_a_missing_cause_and_a_missing_end_are_told() -> None:
    whole = exchanges(1)
    without_end = explain(whole[:3])
    assert without_end is not None
    assert "the exchange is open: it has no end yet" in shown(render(without_end))
    with_a_gap = explain([whole[0], whole[3]])
    assert with_a_gap is not None
    assert "causal chain: broken" in shown(render(with_a_gap))


def test_words_are_hidden_wherever_they_are_and_nothing_else_is() -> None:
    event = InputReceived(text="my words", layers=(Layer(role="user", content="more words"),), label="mine")
    hidden = without_words(event)
    assert hidden["text"] == HIDDEN
    assert hidden["layers"] == [{"role": "user", "content": HIDDEN}]
    assert hidden["label"] == "mine"
    selected = CATALOGUE["forged_id.router.mode_selected"].sample
    assert without_words(selected) == msgspec.json.decode(msgspec.json.encode(selected))


@given(events_for(tuple(entry.event for entry in CATALOGUE.values())))
def test_no_word_of_a_person_is_left_in_a_row(event: Event) -> None:
    hidden = without_words(event)
    layers = hidden.get("layers", ())
    words = [hidden.get("text"), hidden.get("response"), *(layer.get("content") for layer in layers)]
    assert {word for word in words if word is not None} <= {"", HIDDEN}


def test_a_row_of_the_log_says_who_because_of_what() -> None:
    entry = entry_of(stored(7, route("Hello there"), exchange="x9"), words=False)
    assert (entry.seq, entry.topic, entry.exchange, entry.cause_seq) == (7, "forged_id.router.mode_selected", "x9", 6)
    assert entry.data["selected_mode"] == "ACKNOWLEDGE"
    assert "selected_mode=ACKNOWLEDGE" in line_of(entry).plain


def test_a_row_quotes_what_is_not_plain_ascii() -> None:
    entry = entry_of(stored(7, BreakerResetOrdered(by="раypal", why="test"), exchange="x9"), words=True)
    told = line_of(entry).plain
    assert "why=test" in told
    assert "by=раypal" not in told


@pytest.mark.parametrize("subject", ["log.00.00.input.received", "nothing of ours"])
def test_a_message_that_cannot_be_read_is_a_row_too(subject: str) -> None:
    entry = entry_of(Stored(3, 1_700_000_000_000_000_000, subject, {}, b"{"), words=True)
    assert entry.unreadable
    assert "cannot be read" in line_of(entry).plain


@each(
    ("recorded", "redecided", "changes"),
    [
        ('{"a":1,"b":{"c":2}}', '{"a":1,"b":{"c":3}}', (("b.c", "2", "3"),)),
        ('{"a":[1,2]}', '{"a":[1,5]}', (("a[1]", "2", "5"),)),
        ('{"a":[1]}', '{"a":[1,2]}', (("a", "[1]", "[1,2]"),)),
        ('{"a":"x"}', '{"b":"x"}', (("a", "“x”", "nothing"), ("b", "nothing", "“x”"))),
        ("1", "2", (("(all)", "1", "2"),)),
        ("nothing", '{"a":1}', ()),
        ('{"a":1}', '{"a":1}', ()),
    ],
)
def test_a_difference_is_told_field_by_field(recorded: str, redecided: str, changes: Any) -> None:
    assert changed_fields(recorded, redecided) == changes


def test_a_mode_selected_says_its_margin_and_candidates() -> None:
    event = msgspec.structs.replace(
        route("Hello there"), tiebreaker_candidates=("RESPOND", "CLARIFY"), tiebreaker_outcome="higher_score"
    )
    assert isinstance(event, ModeSelected)
    told = shown(*details(event, LineContext()))
    assert "ambiguous between RESPOND and CLARIFY, settled by higher_score" in told


@pytest.mark.parametrize(("event", "group"), GROUPS_OF_NUMBERS)
@given(data=st.data())
def test_a_field_that_a_later_release_adds_to_a_group_of_numbers_need_not_be_one(
    event: type[Event], group: str, data: st.DataObject
) -> None:
    recorded = data.draw(events_for([event]).filter(lambda each: getattr(each, group) is not None))
    numbers = getattr(recorded, group)
    more = [("language", str, "en"), ("topics", tuple[str, ...], ()), ("sure", bool, True), ("next", str | None, None)]
    later = msgspec.defstruct("Later", more, bases=(type(numbers),), frozen=True, kw_only=True)
    grown = msgspec.structs.replace(recorded, **{group: later(**msgspec.structs.asdict(numbers))})
    assert shown(*lines_on(grown)) == shown(*lines_on(recorded))
