"""The decision beside an answer: mode, confidence, who wrote it, the tie-break and the steps of an ACT loop."""

from typing import Any

import msgspec

from deploy.cli.rendering.decision import Exchange, exchange_of, lines_of
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.vocabulary.act import ActFinished, Action, ActIterated, Performed
from schemas.vocabulary.memory import SAMPLE_RECOLLECTION
from schemas.vocabulary.responder import Entity, ResponseEmitted
from schemas.vocabulary.router import ModeSelected

END = entry_of(ResponseEmitted).sample
SELECTED = entry_of(ModeSelected).sample
RECALL = Action(index=0, skill="recall", query="Who\nam I?")
ASKED = Action(index=1, skill="delegate", query="7 times 6", specialist="calculator")
ITERATED = ActIterated(
    iteration=0,
    planner="llm",
    performed=(Performed(action=RECALL, ok=True, found=2), Performed(action=ASKED, ok=False, reason="no_specialist")),
    productive=True,
    elapsed_ms=31,
)
UNPRODUCTIVE = ActIterated(
    iteration=1, planner="llm", performed=(), productive=False, elapsed_ms=52, reason="malformed_plan"
)
FINISHED = ActFinished(
    termination="max_iterations", iterations=2, productive=True, elapsed_ms=52, findings=(SAMPLE_RECOLLECTION,)
)


def exchange(*events: Event, **end: Any) -> Exchange:
    return exchange_of("x1", "ann", "morning", msgspec.structs.replace(END, **end), events, 12.34)


def told(found: Exchange) -> list[str]:
    return [line.plain for line in lines_of(found)]


def selected(**fields: Any) -> Event:
    choice: Event = msgspec.structs.replace(SELECTED, **fields)
    return choice


def test_a_plain_decision_is_one_line() -> None:
    assert told(exchange(selected(router_confidence=0.371))) == [
        "DELIBERATIVE EXECUTED · reason RESPOND · mode RESPOND · confidence 0.37 · by composer · 12.3 ms · x1"
    ]


def test_a_refusal_has_neither_mode_nor_confidence() -> None:
    found = exchange(stage="REFLEX", action="BLOCKED", reason="jailbreak", mode=None, first_mode=None)
    assert told(found) == ["REFLEX BLOCKED · reason jailbreak · by composer · 12.3 ms · x1"]
    assert found.confidence is None


def test_a_models_answer_names_the_model_and_counts_its_memories() -> None:
    entities = (Entity(id="fact:1", layer="fact", energy=0.8, tokens=4, share=1.0),)
    [line] = told(exchange(backend="llm", model="qwen3:8b", entities=entities))
    assert " · by llm qwen3:8b · 1 memory · " in line


def test_the_failure_of_a_model_shows_in_the_reason() -> None:
    [line] = told(exchange(reason="llm_failed:endpoint_unreachable"))
    assert "reason llm_failed:endpoint_unreachable · mode RESPOND" in line
    assert "by composer" in line


def test_a_tie_break_shows_its_candidates_and_outcome() -> None:
    close = {"tiebreaker_candidates": ("RESPOND", "CLARIFY"), "margin": 0.04, "effective_margin": 0.164}
    by_a_model = exchange(selected(**close, tiebreaker_used=True, tiebreaker_outcome="CLARIFY"))
    assert told(by_a_model)[1:] == ["tie-break by a model: RESPOND or CLARIFY → CLARIFY (margin 0.040 of 0.164)"]
    without = exchange(selected(**close, tiebreaker_used=False, tiebreaker_outcome="higher_score"))
    assert told(without)[1:] == ["tie-break without a model: RESPOND or CLARIFY → higher_score (margin 0.040 of 0.164)"]


def test_an_act_loop_shows_its_iterations_actions_and_what_they_found() -> None:
    first = selected(selected_mode="ACT", terminal_mode=None, router_confidence=0.1)
    again = selected(rerouted=True, router_confidence=0.5)
    found = exchange(first, ITERATED, UNPRODUCTIVE, FINISHED, again, first_mode="ACT")
    assert told(found) == [
        "DELIBERATIVE EXECUTED · reason RESPOND · mode RESPOND (first ACT) · confidence 0.50 · by composer · "
        "12.3 ms · x1",
        "ACT 0 (llm, 31 ms): recall “Who am I?” found 2; delegate “7 times 6” failed, no_specialist",
        "ACT 1 (llm, 52 ms): nothing (malformed_plan)",
        "ACT ended: max_iterations, 1 found",
    ]


def test_an_act_loop_that_never_ended_shows_as_far_as_it_came() -> None:
    found = exchange(selected(selected_mode="ACT", terminal_mode=None), ITERATED, action="FAILED", reason="deadline")
    assert [line.startswith("ACT 0") for line in told(found)] == [False, True]


def test_the_tie_break_of_the_first_choice_is_kept_after_an_act_loop() -> None:
    first = selected(
        selected_mode="ACT", terminal_mode=None, tiebreaker_candidates=("ACT", "RESPOND"), tiebreaker_outcome="ACT"
    )
    found = exchange(first, FINISHED, selected(rerouted=True))
    assert found.tiebreak is not None
    assert found.tiebreak.candidates == ("ACT", "RESPOND")


def test_the_json_holds_all_of_it() -> None:
    found = exchange(selected(selected_mode="ACT", terminal_mode=None), ITERATED, FINISHED, selected(rerouted=True))
    row = msgspec.json.decode(msgspec.json.encode(found))
    assert row["act"]["termination"] == "max_iterations"
    assert row["act"]["iterations"][0]["steps"][1] == {
        "skill": "delegate", "query": "7 times 6", "found": 0, "reason": "no_specialist"
    }  # fmt: skip
    assert (row["backend"], row["model"], row["tiebreak"], row["latency_ms"]) == ("composer", "", None, 12.34)


def test_nothing_that_a_terminal_obeys_gets_through() -> None:
    hostile = Action(index=0, skill="recall", query="\x1b[2J\u202e")
    iterated = msgspec.structs.replace(ITERATED, performed=(Performed(action=hostile, ok=True),))
    lines = told(exchange(iterated, reason="p\x1b[31m", model="m\u202e", backend="llm"))
    assert all(line.isprintable() for line in lines)
