"""The sections of the source (reflection guardrails), each by its name, with its numbers; and its six tests."""

import msgspec
import pytest

from actors.guardrails.settings import GuardrailsSettings
from schemas.vocabulary.guardrails import (
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsOverridden,
    GuardrailsRefused,
    GuardrailsRerunOrdered,
    LoopTrace,
)
from tests.actors.guardrails.builders import GOOD, POOR, completed, decided, guardrails, kind, override, rerun, trace_of
from tests.each import each

SAMPLE = (0.72, 0.28)
"""The scores of the source's example."""


# --- Testing: the six tests of the source


def test_process_loop_completion():
    """A loop is judged by default settings: the source's example is to run again."""
    decision = decided(guardrails(), completed("loop_001", SAMPLE, orchestrator_persona="SAGE"))
    assert isinstance(decision, GuardrailsRerunOrdered)
    trace = decision.trace
    assert (trace.loop_id, decision.new_loop_id, trace.rerun_reason) == (
        "loop_001",
        "loop_001_r1",
        "alignment_threshold_not_met",
    )
    assert (trace.rerun_count, trace.max_reruns, trace.rerun_trigger) == (1, 3, ("alignment", "drift"))
    assert (trace.alignment_score, trace.drift_score, trace.summary_valid) == (0.72, 0.28, True)
    assert (trace.bias_echo, trace.orchestrator_persona, trace.reflection_persona) == (False, "SAGE", "SAGE")
    # The source's sample shows 0.15 here; by its own formula the first pass of a family cannot tire it.
    assert trace.reflection_fatigue == 0.0


def test_process_loop_completion_with_overrides():
    """Fatigue and the rerun limit, which would end a family, are overridden by somebody with a name."""
    tired = guardrails(max_reruns=1, fatigue_increment=0.5)
    rerun(tired, POOR)
    plain = completed("loop_001_r1", POOR)
    lifted = msgspec.structs.replace(plain, override_fatigue=True, override_max_reruns=True, override_by="operator")
    decision = decided(tired, lifted)
    assert isinstance(decision, GuardrailsRerunOrdered)
    assert (decision.new_loop_id, decision.trace.overridden_by) == ("loop_001_r2", "operator")
    assert decision.trace.fatigue_threshold_exceeded
    assert decision.trace.rerun_trigger == ("alignment", "drift", "summary")


def test_get_guardrails_status():
    """The trace of a loop's decision holds every number of the source's status."""
    trace = trace_of(guardrails(), completed("loop_001", SAMPLE))
    status = {
        "loop_id": trace.loop_id,
        "rerun_count": trace.rerun_count,
        "max_reruns": trace.max_reruns,
        "rerun_limit_reached": trace.rerun_count >= trace.max_reruns,
        "bias_echo": trace.bias_echo,
        "reflection_fatigue": trace.reflection_fatigue,
        "fatigue_threshold_exceeded": trace.fatigue_threshold_exceeded,
        "force_finalize": trace.force_finalize,
        "rerun_reason": trace.rerun_reason,
        "rerun_trigger": list(trace.rerun_trigger),
        "alignment_score": trace.alignment_score,
        "drift_score": trace.drift_score,
        "summary_valid": trace.summary_valid,
        "reflection_persona": trace.reflection_persona,
    }
    assert status == {
        "loop_id": "loop_001",
        "rerun_count": 1,
        "max_reruns": 3,
        "rerun_limit_reached": False,
        "bias_echo": False,
        "reflection_fatigue": 0.0,
        "fatigue_threshold_exceeded": False,
        "force_finalize": False,
        "rerun_reason": "alignment_threshold_not_met",
        "rerun_trigger": ["alignment", "drift"],
        "alignment_score": 0.72,
        "drift_score": 0.28,
        "summary_valid": True,
        "reflection_persona": "SAGE",
    }


def test_override_guardrails():
    """A person lifts a limit for a family that is known, and is named with the reason."""
    partition = guardrails(max_reruns=1)
    assert partition.when(override(reruns=True)) == [GuardrailsRefused(loop_id="loop_001", reason="unknown_loop")]
    rerun(partition, POOR)
    assert partition.when(override(reruns=True, by="operator")) == [
        GuardrailsOverridden(
            loop_id="loop_001",
            family="loop_001",
            override_fatigue=False,
            override_max_reruns=True,
            overridden_by="operator",
            override_reason="close to an answer",
            lasts_ms=3_600_000,
        )
    ]
    trace = trace_of(partition, completed("loop_001_r1"))
    assert (trace.rerun_count, trace.overridden_by) == (2, "operator")


def test_bias_echo_detection():
    """The third loop of an agent that shows a bias is an echo, whatever its scores, and nobody can override it."""
    partition = guardrails()
    for loop in ("monday", "tuesday"):
        assert not trace_of(partition, completed(loop, GOOD, "optimism", "haste")).bias_echo
    everything = {"override_fatigue": True, "override_max_reruns": True, "override_by": "operator"}
    decision = decided(partition, completed("wednesday", GOOD, "optimism", **everything))
    assert isinstance(decision, GuardrailsForceFinalized)
    trace = decision.trace
    assert (trace.rerun_reason, trace.rerun_trigger) == ("bias_echo_detected", ("bias_echo",))
    assert (trace.repeated_tags, trace.repetition_counts) == (("optimism",), {"optimism": 3})


def test_reflection_fatigue_scoring():
    """Reruns that better nothing tire a family by 0.15 each; one that does takes 0.05; at 0.5 it ends."""
    partition = guardrails(max_reruns=20)
    decisions = rerun(partition, POOR, POOR, POOR, (0.55, 0.5), POOR, POOR)
    assert [each.trace.reflection_fatigue for each in decisions] == [0.0, 0.15, 0.3, 0.25, 0.4, 0.55]
    assert [each.trace.improvement_detected for each in decisions] == [False, False, False, True, False, False]
    assert [kind(each) for each in decisions] == ["rerun_ordered"] * 5 + ["force_finalized"]
    assert decisions[-1].trace.rerun_reason == "fatigue_threshold_exceeded"


# --- Implementation Details, 1 to 6


def test_loop_trace_schema_has_every_field_of_the_source():
    fields = {
        *("loop_id", "rerun_of", "rerun_depth", "rerun_count", "max_reruns"),
        *("bias_echo", "repeated_tags", "reflection_fatigue", "fatigue_increased"),
        *("rerun_reason", "rerun_reason_detail", "rerun_trigger", "force_finalize", "overridden_by"),
        *("orchestrator_persona", "reflection_persona"),
    }
    assert fields <= set(LoopTrace.__struct_fields__)
    trace = rerun(guardrails(), POOR, POOR, POOR)[2].trace
    assert (trace.loop_id, trace.family, trace.rerun_of, trace.rerun_depth) == (
        "loop_001_r2",
        "loop_001",
        "loop_001_r1",
        2,
    )


@each("most", [0, 1, 3, 5])
def test_rerun_limit_enforcement_orders_no_more_than_the_limit(most: int):
    improving = [(0.1 + step / 10, 0.9 - step / 10) for step in range(most + 1)]
    decisions = rerun(guardrails(max_reruns=most), *improving)
    assert [kind(each) for each in decisions] == ["rerun_ordered"] * most + ["force_finalized"]
    assert decisions[-1].trace.rerun_reason == "max_reruns_reached"
    assert decisions[-1].trace.rerun_trigger[0] == "max_reruns"
    assert decisions[-1].trace.force_finalize


def test_bias_echo_filter_ignores_a_bias_that_this_loop_does_not_show():
    partition = guardrails()
    for loop in ("monday", "tuesday", "wednesday"):
        trace_of(partition, completed(loop, GOOD, "optimism"))
    assert not trace_of(partition, completed("thursday", GOOD, "haste")).bias_echo


def test_rerun_reasoning_logger_keeps_all_that_spoke_and_names_the_first():
    partition = guardrails(max_reruns=1, fatigue_increment=0.5, bias_threshold=2)
    decided(partition, completed("loop_000", GOOD, "haste"))
    decided(partition, completed("loop_001", POOR))
    trace = trace_of(partition, completed("loop_001_r1", POOR, "haste"))
    assert trace.rerun_trigger == ("max_reruns", "bias_echo", "fatigue", "alignment", "drift", "summary")
    assert trace.rerun_reason == "max_reruns_reached"
    assert trace.rerun_reason_detail == (
        "reruns 1 >= 1; biases haste 2 >= 2; fatigue 0.5 >= 0.5; "
        "alignment 0.5 < 0.75; drift 0.5 > 0.25; summary alignment 0.5 < 0.7, drift 0.5 > 0.3"
    )


def test_integration_module_refuses_a_loop_whose_reflection_is_not_done():
    partition = guardrails()
    running = msgspec.structs.replace(completed(), reflection_status="running")
    assert partition.when(running) == [GuardrailsRefused(loop_id="loop_001", reason="status_not_done")]
    assert kind(decided(partition, completed())) == "rerun_ordered"


def test_integration_module_names_the_persona_or_takes_sage():
    assert trace_of(guardrails(), completed()).orchestrator_persona == "SAGE"
    named = trace_of(guardrails(), completed(orchestrator_persona="HERALD"))
    assert (named.orchestrator_persona, named.reflection_persona) == ("HERALD", "HERALD")


# --- Configuration


def test_configuration_is_that_of_the_source():
    settings = GuardrailsSettings()
    assert (settings.alignment_threshold, settings.drift_threshold, settings.max_reruns) == (0.75, 0.25, 3)
    assert (settings.bias_threshold, settings.fatigue_threshold, settings.max_fatigue) == (3, 0.5, 1.0)
    assert (settings.fatigue_increment, settings.improvement_threshold, settings.fatigue_decay) == (0.15, 0.05, 0.05)


@each(
    ("field", "value"),
    [
        ("alignment_threshold", 1.1),
        ("drift_threshold", -0.1),
        ("max_reruns", -1),
        ("max_reruns", 21),
        ("bias_threshold", 0),
        ("override_lifetime_ms", 0),
        ("critic", "somebody"),
    ],
)
def test_a_setting_out_of_its_range_is_refused(field: str, value: object):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({field: value}, GuardrailsSettings)


# --- Usage Examples


def test_usage_example_basic_loop_completion():
    decision = decided(guardrails(), completed("loop_001", (0.81, 0.12)))
    assert isinstance(decision, GuardrailsFinalized)
    assert (decision.best, decision.trace.rerun_reason) == ("loop_001", "no_issues_detected")
    assert decision.trace.rerun_reason_detail == "alignment 0.81, drift 0.12"


def test_usage_example_overriding_guardrails():
    partition = guardrails(max_reruns=20)
    rerun(partition, POOR, POOR, POOR, POOR)
    tired = completed("loop_001_r4", POOR, override_fatigue=True, override_by="operator")
    trace = trace_of(partition, tired)
    assert (trace.reflection_fatigue, trace.force_finalize, trace.overridden_by) == (0.6, False, "operator")


def test_three_reruns_come_to_a_fatigue_that_ends_no_family():
    """As the settings' documentation says: with the source's numbers the rerun limit is always the first."""
    decisions = rerun(guardrails(), POOR, POOR, POOR, POOR)
    assert decisions[-1].trace.reflection_fatigue == 0.45
    assert decisions[-1].trace.rerun_trigger == ("max_reruns", "alignment", "drift", "summary")
