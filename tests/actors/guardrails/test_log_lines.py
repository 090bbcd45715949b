"""The log lines of decisions, with their numbers and nobody's words."""

from actors.guardrails import ACTOR
from schemas.event import Event
from tests.actors.guardrails.builders import POOR, completed, decided, guardrails, override, rerun


def lines(event: Event) -> tuple[str, ...]:
    assert ACTOR.log_lines is not None
    return tuple(ACTOR.log_lines(event, 0.1))


def test_a_rerun_is_told_with_its_reason_and_number():
    assert lines(decided(guardrails(), completed())) == (
        "[GUARDRAILS] Loop loop_001 runs again as loop_001_r1: alignment_threshold_not_met "
        "(alignment: 0.50, drift: 0.50, fatigue: 0.00, by caller), rerun 1 of 3",
    )


def test_an_end_is_told_with_the_best_loop():
    assert lines(decided(guardrails(), completed(scores=(None, None)))) == (
        "[GUARDRAILS] Loop loop_001 finalized: no_reflection_result "
        "(alignment: none, drift: none, fatigue: 0.00, by none), best loop_001",
    )


def test_an_end_by_a_limit_is_told_to_be_one():
    [line] = lines(rerun(guardrails(max_reruns=1), POOR, POOR)[-1])
    assert "Loop loop_001_r1 finalized by force: max_reruns_reached" in line


def test_other_events_are_not_told():
    partition = guardrails()
    decided(partition, completed())
    for event in (completed(), override(fatigue=True), override("unknown")):
        assert [lines(each) for each in partition.when(event)] == [()]
