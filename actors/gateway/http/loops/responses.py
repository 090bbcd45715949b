"""Builds the responses of the loop endpoints from the events of the actor guardrails. Pure."""

from actors.gateway.http.loops.bodies import (
    DecisionResult,
    GuardrailsShown,
    GuardrailsStatus,
    LoopDecision,
    ReflectionResult,
)
from actors.gateway.http.loops.judgements import FamilyStatus, Judged
from schemas.intake.timestamps import rfc3339
from schemas.vocabulary.guardrails import GuardrailsRerunOrdered, LoopTrace

NO_ALIGNMENT, ALL_DRIFT = 0.0, 1.0
"""The scores that are reported for a loop that nobody has scored."""


def decision_of(judged: Judged) -> LoopDecision:
    """Return the response to a loop that is completed."""
    trace = judged.event.trace
    ordered = judged.event if isinstance(judged.event, GuardrailsRerunOrdered) else None
    alignment, drift = _scores(trace)
    return LoopDecision(
        loop_id=trace.loop_id,
        reflection_result=ReflectionResult(
            alignment_score=alignment,
            drift_score=drift,
            summary_valid=trace.summary_valid,
            reflection_persona=trace.reflection_persona,
            bias_echo=trace.bias_echo,
            reflection_fatigue=trace.reflection_fatigue,
            repeated_tags=trace.repeated_tags,
            repetition_counts=trace.repetition_counts,
        ),
        decision_result=DecisionResult(
            decision="rerun" if ordered is not None else "finalize",
            original_loop_id=trace.family,
            new_loop_id=ordered.new_loop_id if ordered is not None else None,
            rerun_reason=trace.rerun_reason,
            rerun_number=trace.rerun_count if ordered is not None else trace.rerun_depth,
            rerun_count=trace.rerun_count,
            max_reruns=trace.max_reruns,
        ),
        orchestrator_persona=trace.orchestrator_persona,
        timestamp=to_the_millisecond(judged.time_ns),
    )


def status_of(judged: Judged, family: FamilyStatus, now_ns: int) -> GuardrailsShown:
    """Return the response to a status request for a loop, given the status of its family."""
    trace, latest = judged.event.trace, family.latest
    alignment, drift = _scores(trace)
    return GuardrailsShown(
        guardrails_status=GuardrailsStatus(
            loop_id=trace.loop_id,
            rerun_count=latest.rerun_count,
            max_reruns=latest.max_reruns,
            rerun_limit_reached=latest.rerun_count >= latest.max_reruns,
            bias_echo=latest.bias_echo,
            reflection_fatigue=latest.reflection_fatigue,
            fatigue_threshold_exceeded=latest.fatigue_threshold_exceeded,
            force_finalize=_is_forced(family, now_ns),
            rerun_reason=trace.rerun_reason,
            rerun_trigger=trace.rerun_trigger,
            alignment_score=alignment,
            drift_score=drift,
            summary_valid=trace.summary_valid,
            reflection_persona=trace.reflection_persona,
        )
    )


def _is_forced(family: FamilyStatus, now_ns: int) -> bool:
    """Return whether a family was ended by a limit that was not lifted since, or by a repeated bias.

    Nobody can lift the limit on repeated biases.
    """
    triggers = family.latest.rerun_trigger if family.latest.force_finalize else ()
    return (
        "bias_echo" in triggers
        or ("max_reruns" in triggers and now_ns >= family.reruns_lifted_ns)
        or ("fatigue" in triggers and now_ns >= family.fatigue_lifted_ns)
    )


def to_the_millisecond(time_ns: int) -> str:
    """Format Unix nanoseconds as RFC 3339 in UTC, with milliseconds."""
    return f"{rfc3339(time_ns)[:-4]}Z"


def _scores(trace: LoopTrace) -> tuple[float, float]:
    return (
        NO_ALIGNMENT if trace.alignment_score is None else trace.alignment_score,
        ALL_DRIFT if trace.drift_score is None else trace.drift_score,
    )
