"""A model's answer is held until guardrails have judged it: the best goes out, a poor one is bettered, none is lost."""

from typing import Any

import msgspec
import pytest

from actors.responder.pending import Pending
from schemas.event import Event, Failed
from schemas.persistent import Map
from schemas.vocabulary.appraisal import AppraisalFailed
from schemas.vocabulary.guardrails import (
    GuardrailsFailed,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
    LoopTrace,
)
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from tests.actors.responder.builders import (
    OVERDUE,
    UNDELIBERATED,
    Requested,
    asked,
    chosen,
    ended,
    failure,
    memory,
    recalled,
    with_model,
)
from tests.actors.scenario import HERE, Partition
from tests.each import each

FIRST, SECOND = "exchange", "exchange_r1"
POOR, BETTER = "It depends on many things.", "Lima."
MODES = ["RESPOND", "CLARIFY", "ACKNOWLEDGE"]


def trace(loop_id: str, **fields: Any) -> LoopTrace:
    return LoopTrace(loop_id=loop_id, family=FIRST, **fields)


def finalized(loop_id: str = FIRST, best: str = "") -> Event:
    return GuardrailsFinalized(trace=trace(loop_id, rerun_reason="no_issues_detected"), best=best or loop_id)


def forced(loop_id: str, best: str) -> Event:
    return GuardrailsForceFinalized(trace=trace(loop_id, rerun_reason="max_reruns_reached"), best=best)


def ordered(loop_id: str = FIRST, again: str = SECOND, best: str = FIRST, *triggers: Any) -> Event:
    spoke = triggers or ("alignment", "drift")
    told = trace(loop_id, rerun_reason="alignment_threshold_not_met", rerun_trigger=spoke)
    return GuardrailsRerunOrdered(trace=told, new_loop_id=again, best=best)


class Drafted:
    """A responder whose model has answered once, and whose answer waits for guardrails."""

    def __init__(self, mode: str = "RESPOND", words: str = POOR, **settings: Any) -> None:
        self.responder = with_model(guardrails=True, **settings)
        self.responder.hear(asked("What is the capital of Peru?"))
        self.request = Requested(self.responder, mode)
        assert self.responder.when(self.request.completed(words)) == []

    def again(self, order: Event | None = None) -> "Again":
        """Have the model asked again."""
        return Again(self.responder, order or ordered())

    @property
    def pending(self) -> Pending:
        """What the responder knows of the exchange."""
        return self.responder.state.pending[HERE.exchange]


class Again(Requested):
    """A request to a model for a better answer."""

    def __init__(self, responder: Partition, order: Event) -> None:
        [message] = responder.hear(order)
        assert isinstance(message.event, ResponseRequested), message.event
        self.id, self.event = message.id, message.event


# --- judged


@each("mode", MODES)
def test_an_answer_waits_for_guardrails_and_goes_out_by_their_word(mode: str):
    drafted = Drafted(mode, f"  {BETTER}\n")
    end = ended(drafted.responder.when(finalized()))
    assert (end.stage, end.action, end.reason, end.mode) == ("DELIBERATIVE", "EXECUTED", mode, mode)
    assert (end.response, end.backend, end.model, end.loop_id) == (BETTER, "llm", "qwen3:8b", FIRST)
    assert drafted.responder.state.pending == Map()


def test_a_request_names_the_loop_that_its_answer_is_of():
    assert Drafted().request.event.loop_id == FIRST
    assert Requested(unguarded(), "RESPOND").event.loop_id == ""


def unguarded() -> Partition:
    responder = with_model(guardrails=False)
    responder.hear(asked())
    return responder


def test_without_guardrails_an_answer_goes_out_at_once():
    responder = unguarded()
    end = ended(responder.when(Requested(responder, "RESPOND").completed(BETTER)))
    assert (end.response, end.reason, end.loop_id) == (BETTER, "RESPOND", "")


def test_the_composer_is_not_judged():
    responder = with_model(guardrails=True, backend="composer")
    responder.hear(asked("Thanks!"))
    assert ended(responder.when(chosen("ACKNOWLEDGE"))).backend == "composer"


# --- bettered


def test_a_poor_answer_is_asked_for_again_and_the_better_one_goes_out():
    drafted = Drafted()
    again = drafted.again()
    assert (again.event.loop_id, again.event.rerun_reason) == (SECOND, "alignment_threshold_not_met")
    assert drafted.responder.when(again.completed(BETTER)) == []
    end = ended(drafted.responder.when(finalized(SECOND)))
    assert (end.response, end.loop_id, end.reason) == (BETTER, SECOND, "RESPOND")


def test_the_best_answer_goes_out_though_it_is_not_the_last():
    drafted = Drafted()
    drafted.responder.hear(drafted.again().completed("Worse."))
    end = ended(drafted.responder.when(forced(SECOND, best=FIRST)))
    assert (end.response, end.loop_id, end.reason) == (POOR, FIRST, "RESPOND:max_reruns_reached")


def test_the_last_answer_goes_out_where_the_best_is_not_known():
    end = ended(Drafted().responder.when(finalized(FIRST, best="another_loop")))
    assert (end.response, end.loop_id) == (POOR, FIRST)


def test_a_model_is_told_what_to_mend_by_the_project_and_shown_its_earlier_answer_as_data():
    call = Drafted().again(ordered(FIRST, SECOND, FIRST, "drift")).event.call
    system, user = call.messages[0], call.messages[-1]
    assert system.role == "system"
    assert "your earlier answer" in system.content
    assert system.content.endswith(
        "- It strayed from the message and from what is known. Leave out whatever was not asked for."
    )
    assert POOR not in system.content
    assert f": your earlier answer, set aside]\n{POOR}\n[end of data" in user.content
    assert user.content.endswith("What is the capital of Peru?")


def test_a_first_request_says_nothing_of_mending():
    call = Drafted().request.event.call
    assert "earlier answer" not in call.messages[0].content
    assert "rerun" in Drafted().again().event.prompts


def test_an_earlier_answer_is_shown_cut_or_not_at_all():
    long = "word " * 2_000
    [shown, left_out] = [
        Drafted(words=long, draft_tokens=tokens).again().event.call.messages[-1].content for tokens in (100, 40)
    ]
    assert 0 < shown.count("word ") < 60
    assert "word" not in left_out


def test_a_rerun_may_be_bettered_again():
    drafted = Drafted()
    drafted.responder.hear(drafted.again().completed("Worse."))
    third = drafted.again(ordered(SECOND, "exchange_r2", FIRST))
    drafted.responder.hear(third.completed(BETTER))
    assert ended(drafted.responder.when(finalized("exchange_r2"))).response == BETTER


def test_each_answer_has_the_memories_of_its_own_request():
    responder = with_model(guardrails=True)
    for event in (asked(), recalled(memory("name: Ada", energy=0.8))):
        responder.hear(event)
    responder.hear(Requested(responder, "RESPOND").completed(POOR))
    again = Again(responder, ordered())
    assert [each.id for each in again.event.entities] == ["fact:1"]
    responder.hear(again.completed(BETTER))
    assert ended(responder.when(finalized(SECOND))).entities == again.event.entities


# --- time


def test_too_late_for_a_rerun_the_best_so_far_goes_out():
    drafted = Drafted(reserve_ms=500, rerun_least_ms=1_000)
    end = ended(drafted.responder.when(ordered(), after_ms=58_501))
    assert (end.response, end.reason, end.loop_id) == (POOR, "RESPOND:rerun_failed:no_time", FIRST)


def test_a_rerun_gets_the_time_that_is_left():
    drafted = Drafted(reserve_ms=500, rerun_least_ms=1_000)
    [request] = drafted.responder.when(ordered(), after_ms=58_500)
    assert isinstance(request, ResponseRequested)
    assert request.call.timeout_ms == 1_000


@each("deadline", [OVERDUE, UNDELIBERATED])
def test_at_a_deadline_an_answer_that_nobody_judged_goes_out(deadline: Event):
    end = ended(Drafted().responder.when(deadline))
    assert (end.action, end.response, end.reason) == ("EXECUTED", POOR, "RESPOND:guardrails_silent")


@each("deadline", [OVERDUE, UNDELIBERATED])
def test_at_a_deadline_the_answer_that_was_to_be_bettered_goes_out(deadline: Event):
    drafted = Drafted()
    again = drafted.again()
    end = ended(drafted.responder.when(deadline))
    assert (end.response, end.reason) == (POOR, "RESPOND:rerun_failed:deadline")
    assert drafted.responder.when(again.completed(BETTER)) == []


def test_at_a_deadline_a_judged_answer_comes_before_one_that_was_not():
    drafted = Drafted()
    drafted.responder.hear(drafted.again().completed(BETTER))
    end = ended(drafted.responder.when(OVERDUE))
    assert (end.response, end.reason) == (POOR, "RESPOND:guardrails_silent")


def test_a_timer_of_another_kind_ends_nothing():
    assert Drafted().responder.when(msgspec.structs.replace(OVERDUE, set_by="forged_id.breaker.tripped")) == []


# --- failures


@each(
    ("failed", "topic", "why"),
    [
        (GuardrailsFailed, "forged_id.appraisal.answer_appraised", "guardrails_failed"),
        (AppraisalFailed, "forged_id.llm.completed", "appraisal_failed"),
    ],
)
def test_an_answer_that_cannot_be_judged_goes_out_and_the_reason_says_so(failed: type[Failed], topic: str, why: str):
    end = ended(Drafted().responder.when(failure(failed, topic)))
    assert (end.action, end.response, end.reason, end.loop_id) == ("EXECUTED", POOR, f"RESPOND:{why}", FIRST)


def test_an_answer_whose_loop_somebody_else_completed_goes_out_and_the_reason_says_so():
    drafted = Drafted()
    assert drafted.responder.when(GuardrailsRepeated(loop_id="another", decided="0" * 32)) == []
    end = ended(drafted.responder.when(GuardrailsRepeated(loop_id=FIRST, decided="0" * 32)))
    assert (end.action, end.response, end.reason) == ("EXECUTED", POOR, "RESPOND:guardrails_repeated")


def test_an_answer_to_a_request_that_appraisal_could_not_read_goes_out_at_once():
    responder = with_model(guardrails=True)
    responder.hear(asked())
    request = Requested(responder, "RESPOND")
    assert responder.when(failure(AppraisalFailed, "forged_id.response.requested")) == []
    assert ended(responder.when(request.completed(BETTER))).reason == "RESPOND:appraisal_failed"


@each("failed", [GuardrailsFailed, AppraisalFailed])
def test_a_failure_on_anothers_answer_does_no_harm(failed: type[Failed]):
    responder = with_model(guardrails=True)
    responder.hear(asked())
    assert responder.when(failure(failed, "forged_id.llm.completed")) == []
    request = Requested(responder, "RESPOND")
    assert responder.when(failure(failed, "forged_id.llm.completed")) == []
    assert responder.when(request.completed(BETTER)) == []
    assert ended(responder.when(finalized())).response == BETTER


@each("words", ["", " \n"])
def test_a_rerun_without_words_leaves_the_best_so_far(words: str):
    drafted = Drafted()
    end = ended(drafted.responder.when(drafted.again().completed(words)))
    assert (end.response, end.reason) == (POOR, "RESPOND:rerun_failed:answer_empty")


def test_a_model_that_fails_in_a_rerun_leaves_the_best_so_far():
    drafted = Drafted()
    end = ended(drafted.responder.when(drafted.again().failed("endpoint_overdue")))
    assert (end.response, end.reason) == (POOR, "RESPOND:rerun_failed:endpoint_overdue")
    assert (end.backend, end.loop_id) == ("llm", FIRST)


def test_a_model_that_fails_at_first_leaves_it_to_the_composer():
    responder = with_model(guardrails=True)
    responder.hear(asked())
    end = ended(responder.when(Requested(responder, "RESPOND").failed()))
    assert (end.backend, end.reason, end.loop_id) == ("composer", "llm_failed:endpoint_unreachable", "")


# --- words that are not waited for


@each("word", [finalized(SECOND), forced("another", FIRST), ordered("another", "another_r1")])
def test_a_judgement_of_another_loop_changes_nothing(word: Event):
    drafted = Drafted()
    assert drafted.responder.when(word) == []
    assert ended(drafted.responder.when(finalized())).response == POOR


@each("word", [finalized(), forced(FIRST, FIRST), ordered()])
def test_a_judgement_before_the_answer_or_after_the_rerun_was_ordered_changes_nothing(word: Event):
    responder = with_model(guardrails=True)
    responder.hear(asked())
    request = Requested(responder, "RESPOND")
    assert responder.when(word) == []
    responder.hear(request.completed(POOR))
    again = Again(responder, ordered())
    assert responder.when(word) == []
    responder.hear(again.completed(BETTER))
    assert ended(responder.when(finalized(SECOND))).response == BETTER


def test_an_answer_that_is_told_of_again_is_one_draft():
    drafted = Drafted()
    assert drafted.responder.when(drafted.request.completed("Another.")) == []
    assert drafted.responder.when(drafted.request.failed()) == []
    assert len(drafted.pending.drafts) == 1
    again = drafted.again()
    assert drafted.responder.when(drafted.request.completed("Another.")) == []
    assert drafted.responder.when(again.completed(BETTER)) == []


def test_after_the_end_no_word_of_guardrails_is_taken():
    drafted = Drafted()
    ended(drafted.responder.when(finalized()))
    for word in (finalized(), forced(FIRST, FIRST), ordered(), failure(GuardrailsFailed)):
        assert drafted.responder.when(word) == []


# --- what an answer took up of the soul


def identity(mode: str, soul: str, words: str) -> Any:
    end = ended(Drafted(mode, words, soul=soul).responder.when(finalized()))
    assert isinstance(end, ResponseEmitted)
    return end.identity


def test_an_answer_says_what_it_took_up_of_the_soul():
    soul = "You are a careful gardener. You grow climbing roses.\nYou speak in rhymes!"
    found = identity("RESPOND", soul, "Climbing roses want a careful gardener.")
    assert found.stable == ("careful-gardener", "grow-climbing-rose", "speak-rhyme")
    assert found.current == ("careful-gardener", "grow-climbing-rose")
    assert found.overlap == pytest.approx(4 / 7, abs=1e-6)  # all but grow, speak and rhyme


@each(("mode", "soul"), [("ACKNOWLEDGE", "You are calm."), ("RESPOND", ""), ("CLARIFY", " \n")])
def test_an_answer_that_was_given_no_soul_says_nothing_of_it(mode: str, soul: str):
    assert identity(mode, soul, "Calm.") is None


def test_a_part_of_the_soul_without_content_words_is_named_by_a_hash():
    found = identity("RESPOND", "You are you.", "Lima.")
    assert [len(name) for name in found.stable] == [8]
    assert (found.current, found.overlap) == ((), 0.0)
