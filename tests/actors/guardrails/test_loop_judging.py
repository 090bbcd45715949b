"""The decision on a loop, number by number."""

from actors.guardrails.bias import Biases
from actors.guardrails.loop_family import Family, Loop
from actors.guardrails.loop_judging import FinishedLoop, judge
from actors.guardrails.settings import GuardrailsSettings
from schemas.vocabulary.guardrails import LoopTrace
from tests.actors.guardrails.builders import GOOD, POOR, Decision, completed, decided, guardrails, kind, rerun, trace_of
from tests.actors.scenario import START_NS, Address
from tests.each import each


def judged(
    alignment: float | None, drift: float | None, family: Family | None = None, *, conflict: bool = False
) -> Decision:
    finished = FinishedLoop(
        loop_id="loop",
        alignment=alignment,
        drift=drift,
        critics_conflict=conflict,
        orchestrator_persona="SAGE",
        reflection_persona="SAGE",
        source="caller",
    )
    decision = judge(family or Family(), Biases(), finished, START_NS, GuardrailsSettings())
    assert isinstance(decision, Decision)
    return decision


@each(
    ("alignment", "drift", "conflict", "triggers", "reason", "valid"),
    [
        (0.75, 0.25, False, (), "no_issues_detected", True),
        (0.749999, 0.25, False, ("alignment",), "alignment_threshold_not_met", True),
        (0.75, 0.250001, False, ("drift",), "drift_threshold_exceeded", True),
        (0.7499999, 0.25, False, (), "no_issues_detected", True),  # the same as 0.75, in six decimals
        (0.70, 0.30, False, ("alignment", "drift"), "alignment_threshold_not_met", True),
        (0.69, 0.25, False, ("alignment", "summary"), "alignment_threshold_not_met", False),
        (0.75, 0.31, False, ("drift", "summary"), "drift_threshold_exceeded", False),
        (0.9, 0.1, True, ("summary", "conflict"), "summary_invalid", False),
        (None, None, False, (), "no_reflection_result", False),
        (0.1, None, False, (), "no_reflection_result", False),
        (None, 0.9, True, (), "no_reflection_result", False),
    ],
)
def test_scores_and_critics_ask_for_a_rerun(
    alignment: float | None, drift: float | None, conflict: bool, triggers: tuple[str, ...], reason: str, valid: bool
):
    decision = judged(alignment, drift, conflict=conflict)
    assert decision.trace.rerun_trigger == triggers
    assert (decision.trace.rerun_reason, decision.trace.summary_valid) == (reason, valid)
    assert kind(decision) == ("rerun_ordered" if triggers else "finalized")


def test_a_limit_ends_a_family_though_its_scores_are_good():
    decisions = rerun(guardrails(max_reruns=1), POOR, GOOD)
    assert kind(decisions[-1]) == "force_finalized"
    assert decisions[-1].trace.rerun_trigger == ("max_reruns",)


def fatigue(before: tuple[float | None, float | None], now: tuple[float | None, float | None]) -> LoopTrace:
    loop = Loop("loop_0", "event", *before)
    return judged(*now, Family(loops=(loop,), best=loop, fatigue=0.2)).trace


@each(
    ("before", "now", "level", "increment", "improved"),
    [
        ((0.80, 0.5), (0.85, 0.5), 0.15, -0.05, True),  # 0.85 - 0.80 is 0.04999... before it is rounded
        ((0.80, 0.5), (0.849999, 0.5), 0.35, 0.15, False),
        ((0.5, 0.30), (0.5, 0.25), 0.15, -0.05, True),
        ((0.5, 0.30), (0.5, 0.250001), 0.35, 0.15, False),
        ((0.9, 0.1), (0.1, 0.05), 0.15, -0.05, True),  # one of the two is enough
        ((0.9, 0.1), (0.9, 0.1), 0.35, 0.15, False),
        ((None, 0.5), (0.9, 0.5), 0.35, 0.15, False),  # what is unknown is no improvement
        ((None, None), (0.9, 0.1), 0.35, 0.15, False),
        ((0.1, None), (0.9, None), 0.15, -0.05, True),
        ((0.1, 0.9), (None, None), 0.35, 0.15, False),
    ],
)
def test_fatigue_compares_a_rerun_with_the_loop_before_it(
    before: tuple[float | None, float | None],
    now: tuple[float | None, float | None],
    level: float,
    increment: float,
    improved: bool,
):
    trace = fatigue(before, now)
    assert (trace.reflection_fatigue, trace.fatigue_increment) == (level, increment)
    assert (trace.improvement_detected, trace.fatigue_increased) == (improved, increment > 0)


@each(("level", "now", "after"), [(0.03, GOOD, 0.0), (0.95, POOR, 1.0)])
def test_fatigue_stays_between_nothing_and_its_most(level: float, now: tuple[float, float], after: float):
    loop = Loop("loop_0", "event", *POOR)
    assert judged(*now, Family(loops=(loop,), best=loop, fatigue=level)).trace.reflection_fatigue == after


def test_the_first_loop_of_a_family_does_not_tire_it():
    assert judged(*POOR).trace.fatigue_increment == 0.0


@each(
    ("scores", "best"),
    [
        ([POOR, (0.6, 0.5), (0.55, 0.5), (0.5, 0.5)], "loop_001_r1"),
        ([POOR, POOR, POOR, POOR], "loop_001"),
        ([(0.5, 0.4), (0.6, 0.5), POOR, POOR], "loop_001"),
        ([POOR, POOR, (None, None)], "loop_001"),
    ],
)
def test_the_best_scored_loop_of_a_family_is_its_result(scores: list[tuple[float | None, float | None]], best: str):
    decision = rerun(guardrails(), *scores)[-1]
    assert kind(decision) != "rerun_ordered"
    assert decision.best == best


def test_a_rerun_that_is_ordered_says_what_is_best_so_far():
    assert [each.best for each in rerun(guardrails(), (0.6, 0.5), POOR)] == ["loop_001", "loop_001"]


def test_a_loop_that_nobody_ordered_begins_its_family():
    trace = trace_of(guardrails(), completed("loop_001_r1"))
    assert (trace.family, trace.rerun_of, trace.rerun_depth) == ("loop_001", "loop_001", 1)
    assert (trace.reflection_fatigue, trace.rerun_count) == (0.0, 2)


def test_reruns_that_a_name_shows_count_though_nobody_ordered_them():
    assert kind(decided(guardrails(), completed("loop_001_r3"))) == "force_finalized"


def test_families_and_agents_are_kept_apart():
    partition = guardrails(max_reruns=1)
    rerun(partition, POOR)
    assert trace_of(partition, completed("loop_002")).rerun_count == 1
    assert trace_of(partition, completed("loop_001"), Address(agent="other")).rerun_count == 1
