"""With a language model attached: who is asked, when, and what becomes of the exchange when the model fails."""

from typing import Any

import msgspec

from schemas.event import Event
from schemas.persistent import Map
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.responder import ResponseRequested
from tests.actors.responder.builders import (
    DISSONANT,
    ESCALATED,
    FELT,
    OVERDUE,
    PASSED,
    UNDELIBERATED,
    Requested,
    asked,
    chosen,
    ended,
    finished,
    memory,
    recalled,
    with_model,
)
from tests.actors.scenario import Address, Partition
from tests.each import each

INBOX = "_INBOX.caller"
FAILURES = [
    "no_model", "endpoint_unreachable", "endpoint_overdue", "endpoint_refused", "circuit_open", "answer_invalid",
    "effect_raised", "effect_timed_out", "effect_abandoned", "result_invalid", "append_refused",
]  # fmt: skip
MODES = ["RESPOND", "CLARIFY", "ACKNOWLEDGE"]


def asking(*heard: Event, **settings: Any) -> Partition:
    """A responder with an open exchange that has heard these events too."""
    responder = with_model(**settings)
    for event in (asked("What is the capital of Peru?"), *heard):
        responder.hear(event)
    return responder


@each("mode", MODES)
def test_a_model_is_asked_for_what_the_mode_needs(mode: str):
    request = Requested(asking(), mode).event
    assert (request.mode, request.call.purpose) == (mode, mode.lower())


def test_a_models_answer_ends_the_exchange_in_its_words():
    responder = asking()
    end = ended(responder.when(Requested(responder, "RESPOND").completed("  Lima.\n")))
    assert (end.stage, end.action, end.reason) == ("DELIBERATIVE", "EXECUTED", "RESPOND")
    assert (end.response, end.backend, end.model) == ("Lima.", "llm", "qwen3:8b")
    assert (end.mode, end.first_mode) == ("RESPOND", "RESPOND")
    assert responder.state.pending == Map()


def test_an_empty_input_is_ignored_at_once_and_no_model_is_asked():
    end = ended(asking().when(chosen("IGNORE")))
    assert (end.response, end.mode, end.backend) == ("", "IGNORE", "composer")


def test_while_an_act_loop_runs_no_model_is_asked():
    assert asking().when(chosen(None, first="ACT")) == []


def test_a_mode_that_is_not_one_to_answer_in_is_not_put_to_a_model():
    end = ended(asking().when(chosen("ACT")))
    assert (end.action, end.reason) == ("FAILED", "mode_not_answerable")


@each("mode", MODES)
@each("reason", FAILURES)
def test_where_the_model_fails_the_composer_answers_and_the_reason_says_so(reason: str, mode: str):
    responder = asking(recalled(memory("name: Ada", energy=0.9)))
    end = ended(responder.when(Requested(responder, mode).failed(reason)))
    assert (end.stage, end.action, end.reason) == ("DELIBERATIVE", "EXECUTED", f"llm_failed:{reason}")
    assert (end.backend, end.model, end.mode, end.first_mode) == ("composer", "", mode, mode)
    assert end.response
    assert [entity.id for entity in end.entities] == ["fact:1"]


@each("mode", ["RESPOND", "CLARIFY"])
def test_in_a_failed_models_place_it_is_not_said_that_none_is_attached(mode: str):
    responder = asking()
    end = ended(responder.when(Requested(responder, mode).failed()))
    assert "the language model gave no answer" in end.response.casefold()


def test_in_a_failed_models_place_what_is_remembered_is_told():
    responder = asking(recalled(memory("Lima is the capital of Peru", energy=0.9)))
    assert "Lima" in ended(responder.when(Requested(responder, "RESPOND").failed())).response


@each("words", ["", " \n\t"])
def test_a_model_that_says_nothing_has_failed(words: str):
    responder = asking()
    end = ended(responder.when(Requested(responder, "RESPOND").completed(words)))
    assert (end.backend, end.reason, end.mode) == ("composer", "llm_failed:answer_empty", "RESPOND")
    assert end.response


def test_a_request_that_the_effector_could_not_read_has_failed():
    responder = asking()
    end = ended(responder.when(Requested(responder, "RESPOND").failed("undecodable", request="", purpose=None)))
    assert end.reason == "llm_failed:undecodable"


@each(
    "answer",
    [
        lambda request: request.completed(request="another"),
        lambda request: request.completed(request=""),
        lambda request: request.failed(request="another"),
        lambda request: request.failed(request="another", failed_topic="forged_id.act.plan_requested"),
        lambda request: request.failed(request="", failed_topic="forged_id.router.tiebreak_requested"),
    ],
)
def test_an_answer_to_another_request_is_not_taken(answer: Any):
    responder = asking()
    request = Requested(responder, "RESPOND")
    assert responder.when(answer(request)) == []
    assert ended(responder.when(request.completed())).response == "Lima."


def test_an_answer_that_nobody_asked_for_ends_nothing():
    elsewhere = Requested(asking(), "RESPOND")
    responder = asking()
    assert responder.when(elsewhere.completed(request="")) == []
    assert responder.when(elsewhere.failed(request="")) == []


@each("deadline", [OVERDUE, UNDELIBERATED])
def test_a_deadline_ends_what_a_model_is_too_slow_for_and_its_late_words_are_lost(deadline: Event):
    responder = asking()
    request = Requested(responder, "RESPOND")
    assert ended(responder.when(deadline)).action == "FAILED"
    assert responder.when(request.completed()) == responder.when(request.failed()) == []


@each(("again", "after_ms"), [("CLARIFY", 0), ("IGNORE", 0), ("RESPOND", 60_000)])
def test_once_a_model_is_asked_a_mode_chosen_again_changes_nothing(again: str, after_ms: int):
    responder = asking()
    request = Requested(responder, "RESPOND")
    assert responder.when(chosen(again), after_ms=after_ms) == []
    assert ended(responder.when(request.completed())).mode == "RESPOND"


def test_a_second_answer_is_not_a_second_end():
    responder = asking()
    request = Requested(responder, "RESPOND")
    responder.hear(request.completed())
    assert responder.when(request.completed("Cusco.")) == responder.when(request.failed()) == []


def test_the_first_mode_is_reported_after_an_act_loop():
    responder = asking(chosen(None, first="ACT"), finished())
    assert ended(responder.when(Requested(responder, "RESPOND").completed())).first_mode == "ACT"


def test_no_model_is_asked_while_an_earlier_stage_may_still_refuse():
    responder = asking(DISSONANT)
    assert responder.when(chosen("RESPOND")) == []
    responder.hear(PASSED)
    assert ended(responder.when(FELT)).stage == "COHERENCE"


def test_the_model_gets_the_time_that_deliberation_has_left():
    responder = asking(msgspec.structs.replace(ESCALATED, deadline_after_ms=5_000), reserve_ms=500)
    [request] = responder.when(chosen("RESPOND"), after_ms=1_200)
    assert isinstance(request, ResponseRequested)
    assert request.call.timeout_ms == 5_000 - 1_200 - 500


def test_the_model_gets_the_time_that_the_input_has_left():
    responder = with_model(reserve_ms=500)
    responder.hear(asked(deadline_after_ms=2_000))
    responder.hear(ArbiterEscalated(reason="no_precedent", nearest="", similarity=0.0, deadline_after_ms=5_000))
    assert Requested(responder, "RESPOND").event.call.timeout_ms == 1_500


def test_the_model_gets_no_more_time_than_is_set():
    assert Requested(asking(llm_timeout_ms=700), "RESPOND").event.call.timeout_ms == 700


def test_too_late_to_ask_the_composer_answers_at_once():
    responder = asking(msgspec.structs.replace(ESCALATED, deadline_after_ms=1_000), reserve_ms=500)
    end = ended(responder.when(chosen("RESPOND"), after_ms=500))
    assert (end.backend, end.reason, end.mode) == ("composer", "llm_failed:no_time", "RESPOND")


def test_the_memories_of_a_request_are_those_of_its_answer():
    responder = asking(recalled(memory("name: Ada", energy=0.8), memory("likes tea", energy=0.6, id="fact:2")))
    request = Requested(responder, "RESPOND")
    end = ended(responder.when(request.completed()))
    assert end.entities == request.event.entities
    assert [(entity.id, entity.energy) for entity in end.entities] == [("fact:1", 0.8), ("fact:2", 0.6)]


@each(("stream", "inbox"), [(True, INBOX), (False, "")])
def test_partial_text_goes_to_a_caller_that_wants_it(stream: bool, inbox: str):
    responder = with_model()
    responder.hear(asked(reply_to=INBOX, stream=stream))
    request = Requested(responder, "RESPOND")
    assert request.event.call.stream_to == inbox
    assert ended(responder.when(request.completed())).reply_to == INBOX


def test_each_open_exchange_gets_the_answer_to_its_own_request():
    responder = with_model()
    first, second = Address(exchange="first"), Address(exchange="second")
    responder.hear(asked("about apples"), first)
    responder.hear(asked("about pears"), second)
    apples, pears = Requested(responder, "RESPOND", first), Requested(responder, "RESPOND", second)
    assert responder.when(apples.completed("Apples."), second) == []
    assert ended(responder.when(pears.completed("Pears."), second)).response == "Pears."
    assert ended(responder.when(apples.completed("Apples."), first)).response == "Apples."


def test_the_composer_never_asks_a_model():
    responder = with_model().configure(with_model().actor.settings_type())
    responder.hear(asked())
    assert ended(responder.when(chosen("RESPOND"))).backend == "composer"
