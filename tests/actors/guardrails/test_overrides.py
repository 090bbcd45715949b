"""Overrides: by whom, of what, for which family and how long; and completions that come again."""

import msgspec

from schemas.vocabulary.guardrails import GuardrailsRefused, GuardrailsRepeated, GuardrailsRerunOrdered
from tests.actors.guardrails.builders import (
    GOOD,
    HOUR_MS,
    POOR,
    completed,
    decided,
    guardrails,
    kind,
    override,
    rerun,
    trace_of,
)
from tests.actors.scenario import Address, Partition
from tests.each import each


def at_its_limit() -> Partition:
    """Return guardrails with a family that may not run again."""
    partition = guardrails(max_reruns=1)
    rerun(partition, POOR)
    return partition


@each(("after_ms", "found"), [(0, "rerun_ordered"), (HOUR_MS - 1, "rerun_ordered"), (HOUR_MS, "force_finalized")])
def test_an_override_expires(after_ms: int, found: str):
    partition = at_its_limit()
    partition.hear(override(reruns=True))
    assert kind(decided(partition, completed("loop_001_r1"), after_ms=after_ms)) == found


def test_an_override_survives_reevaluation():
    partition = at_its_limit()
    partition.hear(override(reruns=True))
    for number in range(1, 4):
        trace = trace_of(partition, completed(f"loop_001_r{number}", (0.5 + number / 20, 0.5)))
        assert (trace.rerun_count, trace.overridden_by) == (number + 1, "ann")


def test_an_override_holds_for_its_family_and_its_agent_alone():
    partition = at_its_limit()
    other = Address(agent="other")
    decided(partition, completed("loop_002"))
    decided(partition, completed("loop_001"), other)
    partition.hear(override("loop_002", reruns=True))
    partition.hear(override(reruns=True), other)
    assert kind(decided(partition, completed("loop_001_r1"))) == "force_finalized"


def test_an_override_of_a_rerun_is_one_of_its_family():
    partition = at_its_limit()
    partition.hear(override("loop_001_r1", reruns=True))
    assert kind(decided(partition, completed("loop_001_r1"))) == "rerun_ordered"


def test_a_later_override_replaces_the_earlier():
    partition = at_its_limit()
    partition.hear(override(reruns=True))
    partition.hear(override(fatigue=True, reruns=False, by="bob"))
    assert kind(decided(partition, completed("loop_001_r1"))) == "force_finalized"


def test_an_override_without_a_name_does_not_count():
    nameless = completed("loop_001_r1", POOR, override_max_reruns=True, override_by=" ")
    assert kind(decided(at_its_limit(), nameless)) == "force_finalized"


def test_an_override_that_nothing_needed_names_nobody():
    trace = trace_of(guardrails(), completed("loop", POOR, override_max_reruns=True, override_by="ann"))
    assert trace.overridden_by == ""


def test_an_override_in_a_completion_is_kept_for_its_family():
    partition = guardrails(max_reruns=1)
    decided(partition, completed("loop_001", POOR, override_max_reruns=True, override_by="ann"))
    assert trace_of(partition, completed("loop_001_r1")).overridden_by == "ann"


def test_an_override_in_a_completion_adds_to_those_in_force():
    partition = at_its_limit()
    partition.hear(override(reruns=True))
    lifted = completed("loop_001_r1", POOR, override_fatigue=True, override_by="bob")
    assert trace_of(partition, lifted).overridden_by == "ann"


@each("change", [{"reflection_status": "running"}, {"loop_id": "loop_001"}])
def test_an_override_in_a_completion_that_is_not_judged_does_not_count(change: dict[str, str]):
    partition = at_its_limit()
    lifted = completed("loop_001_r1", POOR, override_max_reruns=True, override_by="ann")
    partition.hear(msgspec.structs.replace(lifted, **change))
    assert kind(decided(partition, completed("loop_001_r1"))) == "force_finalized"


def test_an_override_of_an_unknown_family_is_refused_and_leaves_nothing():
    partition = guardrails(max_reruns=0)
    assert partition.when(override(reruns=True)) == [GuardrailsRefused(loop_id="loop_001", reason="unknown_loop")]
    assert kind(decided(partition, completed("loop_001"))) == "force_finalized"


def test_a_completion_that_comes_again_is_told_how_it_was_judged():
    partition = guardrails()
    [first] = partition.hear(completed())
    again = GuardrailsRepeated(loop_id="loop_001", decided=first.id)
    before = partition.state_hash()
    assert partition.when(completed()) == [again]
    assert partition.when(completed("loop_001", GOOD, "haste")) == [again]
    assert partition.state_hash() == before


def test_a_completion_that_comes_again_after_its_reruns_is_told_the_same():
    partition = guardrails()
    [first] = partition.hear(completed())
    decided(partition, completed("loop_001_r1", GOOD))
    assert partition.when(completed()) == [GuardrailsRepeated(loop_id="loop_001", decided=first.id)]


def test_a_family_is_forgotten_after_its_lifetime():
    partition = guardrails()
    rerun(partition, POOR, POOR)
    partition.hear(completed("another"), after_ms=3 * 24 * HOUR_MS)
    assert len(partition.state.families) == 1
    assert trace_of(partition, completed("loop_001")).rerun_count == 1


@each("by_order", [True, False])
def test_an_override_opens_a_family_again_that_its_limit_has_ended(by_order: bool):
    """reflection-guardrails: Overriding Guardrails, of the very loop that was ended."""
    partition = at_its_limit()
    assert kind(decided(partition, completed("loop_001_r1", POOR))) == "force_finalized"
    again = completed("loop_001_r1", POOR, override_max_reruns=not by_order, override_by="ann")
    if by_order:
        assert isinstance(partition.when(again)[0], GuardrailsRepeated)
        partition.hear(override(reruns=True))
    event = decided(partition, again)
    assert isinstance(event, GuardrailsRerunOrdered)
    assert (event.new_loop_id, event.trace.overridden_by) == ("loop_001_r2", "ann")
    assert isinstance(partition.when(again)[0], GuardrailsRepeated), "and this judgement stands"


def test_an_override_does_not_open_again_what_a_bias_ended_under_it():
    partition = guardrails(bias_threshold=1)
    lifted = completed("loop_001", POOR, "haste", override_max_reruns=True, override_by="ann")
    assert kind(decided(partition, lifted)) == "force_finalized"
    assert isinstance(partition.when(lifted)[0], GuardrailsRepeated)


def test_a_family_that_is_opened_again_is_no_more_tired_than_it_was():
    partition = guardrails(max_reruns=2)
    for loop in ("loop", "loop_r1", "loop_r2"):
        ended = trace_of(partition, completed(loop, POOR))
    partition.hear(override("loop", reruns=True))
    again = trace_of(partition, completed("loop_r2", POOR))
    assert (again.reflection_fatigue, again.rerun_count) == (ended.reflection_fatigue, 3)


def tired(max_reruns: int = 9) -> Partition:
    """Return guardrails with a family that fatigue has ended at its fifth loop."""
    partition = guardrails(max_reruns=max_reruns)
    for loop in ("loop", "loop_r1", "loop_r2", "loop_r3"):
        decided(partition, completed(loop, POOR))
    last = decided(partition, completed("loop_r4", POOR))
    assert last.trace.rerun_reason == "fatigue_threshold_exceeded"
    return partition


@each("by_order", [True, False])
def test_an_override_of_fatigue_opens_a_family_again_that_fatigue_has_ended(by_order: bool):
    partition = tired()
    again = completed("loop_r4", POOR, override_fatigue=not by_order, override_by="ann")
    if by_order:
        partition.hear(override("loop", fatigue=True))
    event = decided(partition, again)
    assert isinstance(event, GuardrailsRerunOrdered)
    assert (event.new_loop_id, event.trace.overridden_by) == ("loop_r5", "ann")
    assert isinstance(partition.when(again)[0], GuardrailsRepeated), "and this judgement stands"


def test_fatigue_that_strikes_while_the_rerun_limit_is_lifted_can_be_lifted_too():
    """With the source's numbers fatigue strikes only then: the family could never be opened again."""
    partition = guardrails()
    partition.hear(completed("loop", POOR, override_max_reruns=True, override_by="ann"))
    for loop in ("loop_r1", "loop_r2", "loop_r3"):
        decided(partition, completed(loop, POOR))
    assert kind(decided(partition, completed("loop_r4", POOR))) == "force_finalized"
    again = completed("loop_r4", POOR, override_fatigue=True, override_by="bob")
    event = decided(partition, again)
    assert isinstance(event, GuardrailsRerunOrdered)
    assert event.trace.rerun_count == 5


def test_a_limit_that_strikes_while_fatigue_is_lifted_can_be_lifted_too():
    partition = guardrails(max_reruns=1)
    partition.hear(completed("loop", POOR, override_fatigue=True, override_by="ann"))
    assert kind(decided(partition, completed("loop_r1", POOR))) == "force_finalized"
    again = completed("loop_r1", POOR, override_max_reruns=True, override_by="bob")
    assert kind(decided(partition, again)) == "rerun_ordered"


def test_an_override_of_one_limit_does_not_open_what_another_has_ended():
    partition = tired()
    partition.hear(override("loop", reruns=True))
    assert isinstance(partition.when(completed("loop_r4", POOR))[0], GuardrailsRepeated)


def test_an_override_that_has_expired_by_then_opens_nothing():
    partition = tired()
    partition.hear(override("loop", fatigue=True))
    assert isinstance(partition.when(completed("loop_r4", POOR), after_ms=HOUR_MS)[0], GuardrailsRepeated)


def test_a_family_that_fatigue_ends_again_can_be_opened_again():
    partition = tired()
    decided(partition, completed("loop_r4", POOR, override_fatigue=True, override_by="ann"))
    assert kind(decided(partition, completed("loop_r5", POOR), after_ms=2 * HOUR_MS)) == "force_finalized"
    again = completed("loop_r5", POOR, override_fatigue=True, override_by="ann")
    assert kind(decided(partition, again)) == "rerun_ordered"


def test_a_loop_names_its_own_limit_of_reruns_and_its_family_keeps_it():
    partition = guardrails()
    assert trace_of(partition, completed("loop", POOR, max_reruns=1)).max_reruns == 1
    last = decided(partition, completed("loop_r1", POOR))
    assert (kind(last), last.trace.max_reruns) == ("force_finalized", 1)
    assert trace_of(partition, completed("another", POOR)).max_reruns == 3


@each("most", [0, 5])
def test_a_limit_of_its_own_is_higher_or_lower_than_the_settings(most: int):
    partition = guardrails(fatigue_threshold=1.0)
    decisions = [
        kind(decided(partition, completed(f"loop_r{number}" if number else "loop", POOR, max_reruns=most)))
        for number in range(most + 1)
    ]
    assert decisions == ["rerun_ordered"] * most + ["force_finalized"]
