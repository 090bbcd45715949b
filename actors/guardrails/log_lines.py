"""Guardrails' lines in the worker's log: the decision on a loop, with its numbers. They contain no person's text.

A loop is one pass of a deliberation, such as a model's answer.
"""

from schemas.event import Event
from schemas.vocabulary.guardrails import (
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRerunOrdered,
    LoopTrace,
)


def log_lines(event: Event, latency_ms: float) -> tuple[str, ...]:
    """Return an event's lines for the worker's log; ``latency_ms`` is how long its decision took."""
    match event:
        case GuardrailsFinalized(trace=trace, best=best):
            return (f"{_line(trace, 'finalized')}, best {best}",)
        case GuardrailsForceFinalized(trace=trace, best=best):
            return (f"{_line(trace, 'finalized by force')}, best {best}",)
        case GuardrailsRerunOrdered(trace=trace, new_loop_id=new_loop_id):
            return (f"{_line(trace, f'runs again as {new_loop_id}')}, rerun {trace.rerun_count} of {trace.max_reruns}",)
    return ()


def _line(trace: LoopTrace, what: str) -> str:
    """Fatigue, in [0, 1], grows with reruns that improve nothing; ``by`` is where the scores are from."""
    scores = f"alignment: {_score(trace.alignment_score)}, drift: {_score(trace.drift_score)}"
    return (
        f"[GUARDRAILS] Loop {trace.loop_id} {what}: {trace.rerun_reason} "
        f"({scores}, fatigue: {trace.reflection_fatigue:.2f}, by {trace.source})"
    )


def _score(score: float | None) -> str:
    return "none" if score is None else f"{score:.2f}"
