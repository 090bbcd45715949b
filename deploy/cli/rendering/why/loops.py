"""Loops, and the judgements of guardrails on them, as lines for people. Pure.

A loop is one pass of a deliberation, whose answer is judged; with its reruns it is a family. Alignment is how well the
answer addresses the question, drift how far it strays from it, and fatigue grows with reruns that improve nothing; all
are in [0, 1]. The summary of the critics is valid if both scores are good enough and the critics do not contradict each
other. The triggers that spoke are the reasons for a rerun and the limits against one. A persona is the role that a
model was told to play: one judged the loop, and another, the orchestrator's, asked for the answer.
"""

from rich.console import RenderableType
from rich.text import Text

from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.model_calls import call_text
from deploy.cli.rendering.why.lines import Lines, lines_on
from schemas.vocabulary.guardrails import (
    AppraisalRequested,
    CritiqueRequested,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsOverridden,
    GuardrailsRefused,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
    LoopTrace,
)
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden


@lines_on.register
def _completed(event: LoopCompleted) -> Lines:
    scores = f"alignment {_score(event.alignment_score)}, drift {_score(event.drift_score)}"
    line = Text(f"loop {printable(event.loop_id)} is {printable(event.reflection_status)}: {scores}")
    line.append(", critics in conflict" if event.critics_conflict else "")
    line.append(f", biases {printable(', '.join(event.bias_tags))}" if event.bias_tags else "")
    lifted = _lifted(event.override_fatigue, event.override_max_reruns)
    return [line, Text(f"overrides {lifted}, by {quoted_line(event.override_by)}", "yellow")] if lifted else [line]


@lines_on.register
def _ordered_override(event: LoopOverridden) -> Lines:
    lifted = _lifted(event.override_fatigue, event.override_max_reruns) or "nothing"
    by = f"by {quoted_line(event.override_by)}: {quoted_line(event.override_reason)}"
    return [Text(f"loop {printable(event.loop_id)}: overrides {lifted}, {by}")]


@lines_on.register
def _finalized(event: GuardrailsFinalized) -> Lines:
    return _trace(event.trace, Text("finalized", "bold green").append(f", best loop {printable(event.best)}"))


@lines_on.register
def _forced(event: GuardrailsForceFinalized) -> Lines:
    return _trace(event.trace, Text("finalized by force", "bold yellow").append(f", best loop {printable(event.best)}"))


@lines_on.register
def _rerun(event: GuardrailsRerunOrdered) -> Lines:
    verdict = Text("runs again", "bold yellow").append(f" as {printable(event.new_loop_id)}")
    return _trace(event.trace, verdict.append(f", best so far {printable(event.best)}"))


def _trace(trace: LoopTrace, verdict: Text) -> Lines:
    line = Text(f"loop {printable(trace.loop_id)} ").append_text(verdict)
    line.append(f": {trace.rerun_reason} ({printable(trace.rerun_reason_detail)})")
    scores = f"alignment {_score(trace.alignment_score)}, drift {_score(trace.drift_score)} by {trace.source}"
    summary = f"summary {'valid' if trace.summary_valid else 'invalid'}"
    reruns = f"rerun {trace.rerun_count} of {trace.max_reruns}"
    fatigue = f"fatigue {trace.reflection_fatigue:g} ({trace.fatigue_increment:+g})"
    lines: list[RenderableType] = [line, Text(f"{scores}, {summary}, {reruns}, {fatigue}")]
    if trace.repetition_counts:
        counted = ", ".join(f"{tag} in {count} loops" for tag, count in trace.repetition_counts.items())
        lines.append(Text(f"biases: {printable(counted)}", "yellow" if trace.bias_echo else "dim"))
    triggers = f"spoke: {', '.join(trace.rerun_trigger)}; " if trace.rerun_trigger else ""
    judged = f"{triggers}judged by {printable(trace.reflection_persona)} for {printable(trace.orchestrator_persona)}"
    overridden = f"; a limit was overridden by {quoted_line(trace.overridden_by)}" if trace.overridden_by else ""
    return [*lines, Text(f"{judged}{overridden}", "dim")]


@lines_on.register
def _repeated(event: GuardrailsRepeated) -> Lines:
    return [Text(f"loop {printable(event.loop_id)} was judged before, by {printable(event.decided)}")]


@lines_on.register
def _refused(event: GuardrailsRefused) -> Lines:
    return [Text(f"loop {printable(event.loop_id)} refused: {event.reason}", "yellow")]


@lines_on.register
def _overridden(event: GuardrailsOverridden) -> Lines:
    lifted = _lifted(event.override_fatigue, event.override_max_reruns) or "nothing"
    line = Text(f"family {printable(event.family)}: {lifted} overridden for {event.lasts_ms / 60_000:g} minutes")
    return [line.append(f", by {quoted_line(event.overridden_by)}: {quoted_line(event.override_reason)}")]


@lines_on.register
def _appraisal(event: AppraisalRequested) -> Lines:
    asked = Text(f"loop {printable(event.loop_id)}: appraisal is asked for its scores")
    return [
        asked,
        Text(f"question: {quoted_line(event.question)}", "dim"),
        Text(f"answer: {quoted_line(event.answer)}", "dim"),
    ]


@lines_on.register
def _critique(event: CritiqueRequested) -> Lines:
    return [Text(f"loop {printable(event.loop_id)}, {call_text(event.call)}")]


def _lifted(fatigue: bool, reruns: bool) -> str:
    """Return which limits an override lifts, in words; empty for none."""
    return " and ".join([*(["fatigue"] if fatigue else []), *(["the rerun limit"] if reruns else [])])


def _score(score: float | None) -> str:
    return "unknown" if score is None else f"{score:g}"
