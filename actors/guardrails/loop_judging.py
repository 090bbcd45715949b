"""The judgement of one loop: whether it runs again, and why. Pure arithmetic over its scores and its family.

A loop is one pass of a deliberation, its family that pass with its reruns. Of its two scores, alignment is how well the
answer fits its question, drift how far it strays from it. Fatigue grows with reruns that improve neither.

The triggers are checked in this order: the rerun limit, a bias echo (too many families show the same bias) and fatigue
end a family, whatever its scores; scores beyond their thresholds, or an invalid summary, order a rerun; else the family
is finalized. *Summary* is the API's word for the judgement as a whole, no text: it is invalid if the scores are not
good enough for one (``summary_alignment``, ``summary_drift``), or the critics conflict. All triggers that apply are
recorded, and the first is the reason. A limit that is lifted is no trigger; a bias echo cannot be lifted.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from actors.guardrails.bias import Biases, count_families, repeated_tags
from actors.guardrails.loop_family import DECIMALS, Family, Loop, best_of, in_force, loop_name, split_loop_id, until_ns
from actors.guardrails.settings import GuardrailsSettings
from schemas.event import Event
from schemas.vocabulary.guardrails import (
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRerunOrdered,
    LoopTrace,
    Trigger,
)

REASONS: Mapping[Trigger, str] = {
    "max_reruns": "max_reruns_reached",
    "bias_echo": "bias_echo_detected",
    "fatigue": "fatigue_threshold_exceeded",
    "alignment": "alignment_threshold_not_met",
    "drift": "drift_threshold_exceeded",
    "summary": "summary_invalid",
    "conflict": "critics_conflict",
}
"""Trigger -> the reason that is recorded for it."""

NO_ISSUES, NO_RESULT = "no_issues_detected", "no_reflection_result"
"""The reasons without a trigger: both scores are good; a score is missing."""

_LIMITS: frozenset[Trigger] = frozenset({"max_reruns", "bias_echo", "fatigue"})
"""The triggers that end a family."""


class FinishedLoop(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a finished loop: its scores (None: not scored), who gave them (``source``), and its biases.

    ``critics_conflict``: its critics contradict each other. The personas name the roles in which it was written and
    judged. ``source``: its sender gave the scores (``caller``), or appraisal did, by the answer's ``features``, or a
    model (``llm``), or nobody. ``max_reruns`` is the limit that the loop names for its family. ``completion`` is the id
    of the event that is judged, if a critic was asked meanwhile.
    """

    loop_id: str
    alignment: float | None = None
    drift: float | None = None
    critics_conflict: bool = False
    bias_tags: tuple[str, ...] = ()
    orchestrator_persona: str
    reflection_persona: str
    source: Literal["caller", "features", "llm", "none"]
    max_reruns: int | None = None
    completion: str = ""


class _Fatigue(msgspec.Struct, frozen=True):
    """A family's fatigue after a loop, by how much the loop changed it, and whether the loop improved a score."""

    level: float
    change: float
    improved: bool


def judge(family: Family, biases: Biases, finished: FinishedLoop, now_ns: int, settings: GuardrailsSettings) -> Event:
    """Return the decision on a loop, given its family before it and the biases of its agent."""
    name, depth = split_loop_id(finished.loop_id)
    alignment, drift = _rounded(finished.alignment), _rounded(finished.drift)
    reruns = max(family.reruns, depth)
    own_limit = finished.max_reruns if finished.max_reruns is not None else family.max_reruns
    max_reruns = settings.max_reruns if own_limit is None else own_limit
    counted = count_families(biases, finished.bias_tags, name, now_ns, settings)
    fatigue = _fatigue(family, alignment, drift, settings)
    at_limit = reruns >= max_reruns
    fatigued = fatigue.level >= settings.fatigue_threshold
    reruns_lifted = in_force(family.reruns_lifted, now_ns) if at_limit else None
    fatigue_lifted = in_force(family.fatigue_lifted, now_ns) if fatigued else None
    lifted = reruns_lifted or fatigue_lifted
    echoes = repeated_tags(counted, settings)
    checks: tuple[tuple[Trigger, bool], ...] = (
        ("max_reruns", at_limit and reruns_lifted is None),
        ("bias_echo", bool(echoes)),
        ("fatigue", fatigued and fatigue_lifted is None),
        *_rerun_checks(alignment, drift, finished, settings),
    )
    triggers = tuple(trigger for trigger, applies in checks if applies)
    forced = not _LIMITS.isdisjoint(triggers)
    rerun = bool(triggers) and not forced
    trace = LoopTrace(
        loop_id=finished.loop_id,
        family=name,
        rerun_of=loop_name(name, depth - 1) if depth else "",
        rerun_depth=depth,
        rerun_count=reruns + rerun,
        max_reruns=max_reruns,
        alignment_score=alignment,
        drift_score=drift,
        summary_valid=_is_valid(alignment, drift, finished, settings),
        bias_echo=bool(echoes),
        repeated_tags=echoes,
        repetition_counts=counted,
        reflection_fatigue=fatigue.level,
        fatigue_increment=fatigue.change,
        fatigue_increased=fatigue.change > 0.0,
        fatigue_threshold_exceeded=fatigued,
        improvement_detected=fatigue.improved,
        rerun_trigger=triggers,
        rerun_reason=_reason(triggers, alignment, drift),
        force_finalize=forced,
        overridden_by=lifted.by if lifted is not None else "",
        orchestrator_persona=finished.orchestrator_persona,
        reflection_persona=finished.reflection_persona,
        source=finished.source,
        completion=finished.completion,
        own_limit=own_limit is not None,
        fatigue_lifted_ns=until_ns(family.fatigue_lifted, now_ns),
        reruns_lifted_ns=until_ns(family.reruns_lifted, now_ns),
    )
    trace = msgspec.structs.replace(trace, rerun_reason_detail=_detail(trace, settings))
    best_before = (family.best,) if family.best is not None else ()
    best = best_of((*best_before, Loop(finished.loop_id, "", alignment, drift))).id
    if rerun:
        return GuardrailsRerunOrdered(trace=trace, new_loop_id=loop_name(name, trace.rerun_count), best=best)
    return GuardrailsForceFinalized(trace=trace, best=best) if forced else GuardrailsFinalized(trace=trace, best=best)


def _rerun_checks(
    alignment: float | None, drift: float | None, finished: FinishedLoop, settings: GuardrailsSettings
) -> tuple[tuple[Trigger, bool], ...]:
    """Return the triggers of a rerun, and whether each applies; none if a score is missing."""
    if alignment is None or drift is None:
        return ()
    return (
        ("alignment", alignment < settings.alignment_threshold),
        ("drift", drift > settings.drift_threshold),
        ("summary", not _is_valid(alignment, drift, finished, settings)),
        ("conflict", finished.critics_conflict),
    )


def _is_valid(
    alignment: float | None, drift: float | None, finished: FinishedLoop, settings: GuardrailsSettings
) -> bool:
    if alignment is None or drift is None or finished.critics_conflict:
        return False
    return alignment >= settings.summary_alignment and drift <= settings.summary_drift


def _fatigue(family: Family, alignment: float | None, drift: float | None, settings: GuardrailsSettings) -> _Fatigue:
    """Return a family's fatigue after a loop. The first loop does not change it; a rerun is compared with the last."""
    if not family.loops:
        return _Fatigue(family.fatigue, 0.0, False)
    before = family.loops[-1]
    gains = (_gain(before.alignment, alignment), _gain(drift, before.drift))
    improved = max(gains) >= settings.improvement_threshold
    step = -settings.fatigue_decay if improved else settings.fatigue_increment
    level = round(min(settings.max_fatigue, max(0.0, family.fatigue + step)), DECIMALS)
    return _Fatigue(level, round(level - family.fatigue, DECIMALS), improved)


def _gain(lower: float | None, higher: float | None) -> float:
    """Return by how much a score rose; -1, the least that is possible, if either is unknown."""
    return -1.0 if lower is None or higher is None else round(higher - lower, DECIMALS)


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, DECIMALS)


def _reason(triggers: tuple[Trigger, ...], alignment: float | None, drift: float | None) -> str:
    if triggers:
        return REASONS[triggers[0]]
    return NO_RESULT if alignment is None or drift is None else NO_ISSUES


def _detail(trace: LoopTrace, settings: GuardrailsSettings) -> str:
    """Return the numbers behind a judgement, each with its limit. Events record numbers, not sentences."""
    measures = [_measure_text(trigger, trace, settings) for trigger in trace.rerun_trigger]
    return "; ".join(measures) or f"alignment {_number(trace.alignment_score)}, drift {_number(trace.drift_score)}"


def _measure_text(trigger: Trigger, trace: LoopTrace, settings: GuardrailsSettings) -> str:
    match trigger:
        case "max_reruns":
            return f"reruns {trace.rerun_count} >= {trace.max_reruns}"
        case "bias_echo":
            counted = ", ".join(f"{tag} {trace.repetition_counts[tag]}" for tag in trace.repeated_tags)
            return f"biases {counted} >= {settings.bias_threshold}"
        case "fatigue":
            return f"fatigue {trace.reflection_fatigue:g} >= {settings.fatigue_threshold:g}"
        case "alignment":
            return f"alignment {_number(trace.alignment_score)} < {settings.alignment_threshold:g}"
        case "drift":
            return f"drift {_number(trace.drift_score)} > {settings.drift_threshold:g}"
        case "summary":
            return f"summary {', '.join(_summary_faults(trace, settings)) or 'conflict'}"
        case "conflict":
            return "conflict"


def _summary_faults(trace: LoopTrace, settings: GuardrailsSettings) -> Iterator[str]:
    alignment, drift = trace.alignment_score, trace.drift_score
    if alignment is not None and alignment < settings.summary_alignment:
        yield f"alignment {alignment:g} < {settings.summary_alignment:g}"
    if drift is not None and drift > settings.summary_drift:
        yield f"drift {drift:g} > {settings.summary_drift:g}"


def _number(score: float | None) -> str:
    return "none" if score is None else f"{score:g}"
