"""What ``why`` tells of memory, ACT loops, models and specialists: every number that an answer rests on."""

import io

import msgspec
import pytest
from rich.console import Console

from actors.gateway.input_client import ExchangeEnd
from deploy.cli.rendering import reason_texts
from deploy.cli.rendering.decision import decision_line, exchange_of
from deploy.cli.rendering.model_calls import cuts_text
from deploy.cli.rendering.sentences import sentence_on
from deploy.cli.rendering.why.details import LineContext, details
from deploy.feeding.feeder import outcome_of
from schemas.catalogue import entry_of
from schemas.effectors.model_calls import Cut
from schemas.event import Event
from schemas.vocabulary.act import ActFinished, Action, ActIterated, ActPlanRequested, Performed
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import (
    ActionResult,
    Fact,
    FactsRetired,
    Introspection,
    MemoryActionsAnswered,
    MemoryForgotten,
    MemoryRecalled,
    MemoryRemembered,
    Retired,
    TurnsForgotten,
)
from schemas.vocabulary.responder import Entity, ResponseEmitted, ResponseRequested
from schemas.vocabulary.router import FeedbackObserved, ModeSelected, TiebreakRequested
from tests.each import each

MINDS = ("memory", "act", "llm", "delegate")


def told(event: Event) -> str:
    output = io.StringIO()
    console = Console(file=output, width=200, color_system=None)
    for line in details(event, LineContext()):
        console.print(line)
    return output.getvalue()


def sample(kind: type[Event]) -> Event:
    return entry_of(kind).sample


@each(
    ("kind", "parts"),
    [
        (
            MemoryRecalled,
            ["warmth 0: 0 turns, 0 gists, 0 facts", "unclassified (new)", "0.800 fact fact:3: “name: Ada”"],
        ),
        (MemoryRemembered, ["salience 0.4, topic topic-1", "fact “name”: “Ada”", "concepts capital, peru"]),
        (FactsRetired, ["fact “name” no more “Chad”: corrected, it was said to be wrong (fact:2)"]),
        (MemoryActionsAnswered, ["0 recall: 1 found", "0.800 fact fact:3"]),
        (MemoryForgotten, ["the session: memories dropped: 12, by “ann”: “the person asked for it”"]),
        (TurnsForgotten, ["words of a forgotten fact are quoted no more in 1 session(s)"]),
        (ActPlanRequested, ["iteration 0, calls a model for act: 2 messages of 30 characters", "within 30 s"]),
        (ActIterated, ["iteration 0, offline plan, productive, 12 ms so far", "0 recall “Who am I?”: 1 found"]),
        (ActFinished, ["plan_empty after 1 iterations and 12 ms, productive", "0.800 fact fact:3"]),
        (LlmCompleted, ["respond by qwen3:8b (openai): 312 + 4 tokens, 1 attempts, ended by stop", "“Lima.”"]),
        (LlmFailed, ["endpoint_unreachable ConnectError at forged_id.response.requested, sequence 9"]),
        (TiebreakRequested, ["RESPOND (0.500) or CLARIFY (0.480), margin 0.04 below 0.164"]),
        (FeedbackObserved, ["missed_clarify: RESPOND of exchange exchange-1, signal repeated"]),
        (
            ResponseRequested,
            ["RESPOND, calls a model for respond: 1 message", "512 tokens at most", "respond 000000000000"],
        ),
    ],
)
def test_the_numbers_of_an_event_are_told(kind: type[Event], parts: list[str]) -> None:
    text = told(sample(kind))
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("kind", [ResponseRequested, ResponseEmitted])
def test_the_memories_before_an_answer_are_told_with_energy_tokens_and_share(kind: type[Event]) -> None:
    entities = (
        Entity(id="fact:3", layer="fact", energy=0.8, tokens=12, share=0.75),
        Entity(id="turn:9", layer="turn", energy=0.31, tokens=4, share=0.25),
    )
    rows = [line.split() for line in told(msgspec.structs.replace(sample(kind), entities=entities)).splitlines()]
    assert ["fact:3", "0.800", "12", "0.750"] in rows
    assert ["turn:9", "0.310", "4", "0.250"] in rows


def test_an_answer_names_the_model_that_wrote_it() -> None:
    event = msgspec.structs.replace(sample(ResponseEmitted), backend="llm", model="qwen3:8b")
    assert "written by llm (qwen3:8b)" in told(event)


def test_a_choice_after_an_act_loop_is_told_to_be_one() -> None:
    event = msgspec.structs.replace(sample(ModeSelected), rerouted=True)
    assert "chosen again after an ACT loop" in told(event)
    assert "chosen again" not in told(sample(ModeSelected))


def test_what_failed_is_told_with_its_reason() -> None:
    iterated = ActIterated(
        iteration=2,
        planner="llm",
        performed=(
            Performed(action=Action(index=0, skill="memorize", key="name", value="Ada"), ok=False, reason="over_time"),
        ),
        productive=False,
        elapsed_ms=90,
        reason="nothing_found",
    )
    assert "unproductive: nothing_found" in told(iterated)
    assert "0 memorize “name” = “Ada”: failed, over_time" in told(iterated)
    answered = MemoryActionsAnswered(
        request="r", iteration=0, results=(ActionResult(index=1, skill="recall", ok=False, reason="unknown_skill"),)
    )
    assert "1 recall failed: unknown_skill" in told(answered)


def test_what_memory_knows_of_itself_is_told() -> None:
    seen = Introspection(
        context_warmth=0.4,
        feeling_of_knowing=0.7,
        recall_failure_rate=0.25,
        layers={},
        skills={},
        world_state_present=False,
    )
    event = MemoryActionsAnswered(
        request="r",
        iteration=0,
        results=(ActionResult(index=0, skill="introspect", ok=True, introspection=seen),),
    )
    assert "warmth 0.4, feeling of knowing 0.7, recall failure rate 0.25" in told(event)


def test_nothing_coming_to_mind_is_told() -> None:
    assert "nothing came to mind" in told(msgspec.structs.replace(sample(MemoryRecalled), recollections=()))


def test_what_the_words_of_an_exchange_tell_is_told_apart_from_what_came_to_mind() -> None:
    chad = Retired(key="name", value="Chad", fact=3, why="corrected", replaced=True)
    recalled = msgspec.structs.replace(sample(MemoryRecalled), told=(Fact(key="name", value="Sarah"),), retired=(chad,))
    assert "it tells: fact “name”: “Sarah”" in told(recalled)
    assert "it takes back: fact “name” no more “Chad”: corrected" in told(recalled)


CUTS = (Cut(part="text", characters=26_800, kept=9_100), Cut(part="document, part 1 of 2", characters=500, kept=0))
TOLD_CUTS = "cut: text to 9,100 of 26,800 characters, document, part 1 of 2 to 0 of 500 characters"


def test_what_was_cut_of_a_prompt_is_told_where_it_is_asked_answered_and_in_the_end() -> None:
    requested = entry_of(ResponseRequested).sample
    call = msgspec.structs.replace(requested.call, cuts=CUTS)
    end = msgspec.structs.replace(entry_of(ResponseEmitted).sample, backend="llm", cuts=CUTS)
    for event in (
        msgspec.structs.replace(requested, call=call),
        msgspec.structs.replace(entry_of(LlmCompleted).sample, cuts=CUTS),
        end,
    ):
        assert TOLD_CUTS in told(event)
    assert f"The prompt was too long and was {TOLD_CUTS}." in sentence_on(end)
    assert TOLD_CUTS in decision_line(exchange_of("e", "ann", "s", end, [], 1.0))
    row = msgspec.json.decode(msgspec.json.encode(outcome_of(ExchangeEnd("e", end, 1, 1), 0.1, id=1)))
    assert row["cuts"][0] == {"part": "text", "characters": 26_800, "kept": 9_100}


def test_of_many_parts_that_were_cut_the_first_are_told_one_by_one() -> None:
    many = tuple(Cut(part=f"document, part {place} of 200", characters=1_000, kept=0) for place in range(1, 201))
    told_many = cuts_text(many)
    assert "document, part 6 of 200 to 0 of 1,000 characters, 194 more parts to 0 of 194,000 characters" in told_many
    assert len(told_many) < 500


@each(
    ("how", "says"),
    [("length", "the length that was allowed"), ("content_filter", "filter ended it"), ("unknown", "without a word")],
)
def test_an_answer_that_may_not_be_whole_is_told_to_be_so(how: str, says: str) -> None:
    end = msgspec.structs.replace(entry_of(ResponseEmitted).sample, backend="llm", finish_reason=how)
    assert says in told(msgspec.structs.replace(entry_of(LlmCompleted).sample, ended=how))
    assert says in told(end)
    assert f"The answer may not be whole: {reason_texts.ENDINGS[how]}." in sentence_on(end)
    assert f"ended by {how}" in decision_line(exchange_of("e", "ann", "s", end, [], 1.0))
    assert exchange_of("e", "ann", "s", end, [], 1.0).finish_reason == how
    assert msgspec.to_builtins(outcome_of(ExchangeEnd("e", end, 1, 1), 0.1, id=1))["finish_reason"] == how


def test_of_a_whole_answer_to_a_whole_prompt_nothing_more_is_told() -> None:
    end = msgspec.structs.replace(entry_of(ResponseEmitted).sample, backend="llm", finish_reason="stop")
    assert sentence_on(end).count(".") == 1
    assert (
        not {"finish_reason", "cuts"} & msgspec.to_builtins(outcome_of(ExchangeEnd("e", end, 1, 1), 0.1, id=1)).keys()
    )


def test_what_an_endpoint_does_not_take_is_told_with_the_answer() -> None:
    adapted = ("max_tokens is sent as max_completion_tokens",)
    assert adapted[0] in told(msgspec.structs.replace(entry_of(LlmCompleted).sample, adapted=adapted))


def test_why_an_endpoint_refused_is_told() -> None:
    assert "quota exceeded" in told(msgspec.structs.replace(entry_of(LlmFailed).sample, said="quota exceeded"))
