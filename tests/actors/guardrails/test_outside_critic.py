"""A loop outside that brings question and answer is scored here: by the senses, or by a model where one is attached."""

from collections.abc import Sequence

from actors.appraisal.answer_scores import appraise_external_answer
from actors.appraisal.settings import AppraisalSettings
from schemas.event import Event
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.guardrails import (
    AppraisalRequested,
    CritiqueRequested,
    GuardrailsFinalized,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
)
from schemas.vocabulary.llm import LlmFailed
from schemas.vocabulary.loops import LoopCompleted
from tests.actors.guardrails.builders import completed, guardrails, said
from tests.actors.scenario import Partition
from tests.each import each

QUESTION = (
    "My kitchen tap drips all night: how do I replace its worn rubber washer, which tools are needed, and must I shut "
    "off the water of the whole house before unscrewing the handle?"
)
BESIDE_IT = "The Portuguese navigators reached Brazil in the spring of 1500 with thirteen ships and salted cod."
TO_IT = "Shut off the water, unscrew the handle of the kitchen tap, replace the worn washer, and close it again."


def literal(**more: object) -> LoopCompleted:
    """Return the source's own sample request, with what may ride in its body."""
    return completed("loop_001", (None, None), orchestrator_persona="SAGE", **more)


def senses(partition: Partition, event: Event) -> tuple[AppraisalRequested, Sequence[Event]]:
    """Deliver a completion, let the senses answer, and return what was asked of them and what followed."""
    [asked] = partition.when(event)
    assert isinstance(asked, AppraisalRequested)
    return asked, partition.when(appraise_external_answer(asked, AppraisalSettings(embedder="hashed")))


def test_the_sample_request_with_a_poor_answer_gives_the_decision_of_the_source():
    """reflection-guardrails: POST /orchestrator/loop-complete."""
    partition = guardrails()
    _, [ordered] = senses(partition, literal(question=QUESTION, answer=BESIDE_IT))
    assert isinstance(ordered, GuardrailsRerunOrdered)
    trace = ordered.trace
    assert (ordered.new_loop_id, trace.rerun_reason) == ("loop_001_r1", "alignment_threshold_not_met")
    assert (trace.rerun_count, trace.max_reruns, trace.reflection_persona, trace.source) == (1, 3, "SAGE", "features")
    assert trace.rerun_trigger[:2] == ("alignment", "drift")


def test_the_sample_request_with_a_good_answer_ends_well():
    _, [ended] = senses(guardrails(), literal(question=QUESTION, answer=TO_IT))
    assert isinstance(ended, GuardrailsFinalized)
    assert ended.trace.rerun_reason == "no_issues_detected"


def test_the_sample_request_without_words_has_no_result():
    [ended] = guardrails().when(literal())
    assert isinstance(ended, GuardrailsFinalized)
    assert ended.trace.rerun_reason == "no_reflection_result"


@each("missing", [{"question": QUESTION}, {"answer": TO_IT}, {"question": " ", "answer": TO_IT}])
def test_half_of_the_words_is_none(missing: dict[str, str]):
    [ended] = guardrails().when(literal(**missing))
    assert isinstance(ended, GuardrailsFinalized)


def test_scores_that_the_caller_gives_need_no_critic():
    scored = completed("loop_001", (0.9, 0.1), question=QUESTION, answer=BESIDE_IT)
    assert isinstance(guardrails().when(scored)[0], GuardrailsFinalized)


def test_a_score_that_the_caller_gives_stays_and_the_other_is_had():
    _, [ended] = senses(guardrails(), completed("loop_001", (0.91, None), question=QUESTION, answer=TO_IT))
    assert isinstance(ended, GuardrailsFinalized)
    assert (ended.trace.alignment_score, ended.trace.source) == (0.91, "features")
    assert ended.trace.drift_score is not None


def test_the_judgement_names_the_completion_that_it_answers():
    asked, [ended] = senses(guardrails(), literal(question=QUESTION, answer=TO_IT))
    assert isinstance(ended, GuardrailsFinalized)
    assert ended.trace.completion == asked.completion != ""


def test_what_is_said_of_a_loop_outside_is_said_of_the_agent_and_no_session():
    partition = guardrails()
    senses(partition, literal(question=QUESTION, answer=TO_IT))
    asked, judged = partition.emitted
    assert asked.session.startswith("loop ")
    assert (judged.session, judged.exchange) == ("", "")


def test_a_completion_that_comes_again_is_not_scored_again():
    partition = guardrails()
    senses(partition, literal(question=QUESTION, answer=TO_IT))
    assert isinstance(partition.when(literal(question=QUESTION, answer=TO_IT))[0], GuardrailsRepeated)
    assert partition.state.outside.get(partition.emitted[0].event.completion) is None


def test_two_completions_under_way_come_to_one_judgement():
    partition = guardrails()
    event = literal(question=QUESTION, answer=TO_IT)
    asked = [partition.when(event)[0] for _ in range(2)]
    answers = [
        partition.when(appraise_external_answer(each, AppraisalSettings(embedder="hashed")))[0] for each in asked
    ]
    assert [type(answer) for answer in answers] == [GuardrailsFinalized, GuardrailsRepeated]
    assert answers[1].completion == asked[1].completion


def test_an_override_in_such_a_completion_counts_for_its_judgement():
    partition = guardrails(max_reruns=0)
    event = literal(question=QUESTION, answer=BESIDE_IT, override_max_reruns=True, override_by="ann")
    _, [ordered] = senses(partition, event)
    assert isinstance(ordered, GuardrailsRerunOrdered)
    assert ordered.trace.overridden_by == "ann"


def critique(partition: Partition, alignment: float, drift: float, tags: str = "") -> Sequence[Event]:
    _, [asked] = senses(partition, literal(question=QUESTION, answer=TO_IT))
    assert isinstance(asked, CritiqueRequested)
    request = partition.emitted[-1].id
    answer = f'{{"alignment": {alignment}, "drift": {drift}, "bias_tags": [{tags}]}}'
    return partition.when(said(answer, request=request, purpose="reflect"))


def test_where_a_model_is_the_critic_its_word_decides():
    partition = guardrails(loop_critic="llm")
    [ordered] = critique(partition, 0.72, 0.28, '"overconfidence"')
    assert isinstance(ordered, GuardrailsRerunOrdered)
    trace = ordered.trace
    assert (trace.alignment_score, trace.drift_score, trace.summary_valid) == (0.72, 0.28, True)
    assert (trace.source, trace.rerun_trigger) == ("llm", ("alignment", "drift"))
    assert "overconfidence" in trace.repetition_counts


def test_where_the_model_fails_the_senses_numbers_decide():
    partition = guardrails(loop_critic="llm")
    _, [asked] = senses(partition, literal(question=QUESTION, answer=TO_IT))
    assert isinstance(asked, CritiqueRequested)
    request = partition.emitted[-1].id
    failed = LlmFailed(request=request, purpose="reflect", reason="no_model", error="", failed_seq=1, failed_topic="")
    [ended] = partition.when(failed)
    assert isinstance(ended, GuardrailsFinalized)
    assert ended.trace.source == "features"


def test_with_no_critic_nothing_is_asked():
    [ended] = guardrails(loop_critic="off").when(literal(question=QUESTION, answer=BESIDE_IT))
    assert isinstance(ended, GuardrailsFinalized)


def test_numbers_of_another_loop_decide_nothing():
    partition = guardrails()
    partition.when(literal(question=QUESTION, answer=TO_IT))
    other = AnswerAppraised(
        request="another", loop_id="", alignment=0.1, drift=0.9, bias_tags=(), models="hashed-1+bias-1"
    )
    assert partition.when(other) == []
