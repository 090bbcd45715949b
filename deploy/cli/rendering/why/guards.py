"""The numbers of the guards between reflex and the router, as lines for people. Pure.

A motif is the signature of a precedent that did harm. A layer is one text of the input, with its role. The coherence
index says how well the swarm, that is, all actors, works together. A standing is the state of a session's breaker after
an event. The detector is what rejects an input: the motifs, or a learned scorer.
``docs/decisions-explained.md`` explains every number.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from actors.swarm.asked_stages import ASKED_STAGES
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.model_calls import call_text
from deploy.cli.rendering.why.lines import Lines, lines_on, numbers_in
from schemas.input_path import REQUIRED
from schemas.unread import Unread
from schemas.vocabulary.appraisal import (
    AnswerAppraised,
    AppraisalCompleted,
    AppraisalJudged,
    Judgement,
    JudgementRequested,
    LayerTrust,
)
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate, ArbiterPassed
from schemas.vocabulary.breaker import (
    BreakerAttemptFailed,
    BreakerCalmed,
    BreakerCleared,
    BreakerFilled,
    BreakerRecovered,
    BreakerRecoveryStarted,
    BreakerReset,
    BreakerTerminated,
    BreakerTripped,
    BreakerWarned,
    BreakerWithheld,
    Standing,
)
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.intuition import (
    IntuitionPassed,
    IntuitionRejected,
    IntuitionResultPassed,
    IntuitionResultRejected,
    Similar,
)
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.swarm import OverBudget, StageFound, StageLost, SwarmMeasured, WithinBudget

JUDGEMENTS: Mapping[Judgement, str] = {
    "over_budget": "a model was not asked: the session has used up its calls of this hour",
    "awaited": "a model is asked, and its word counts when it comes",
    "heard": "a model's word is in these numbers",
    "missing": "a model was asked and gave no usable word: the local numbers stand",
}
"""A model's share in an appraisal -> its text."""


@lines_on.register
def _intuition_rejected(event: IntuitionRejected) -> Lines:
    line = Text(f"{event.detector} in {printable(event.layer)}", "bold red").append(": ")
    line.append(
        f"nearest motif {_name(event.motif)}, similarity {event.similarity:g} (threshold {event.threshold:g}), "
    )
    line.append(f"severity {event.severity:g}; {_score(event.score)}, its threshold {event.score_threshold:g}")
    return [line, *unread_lines(event.unread), *_precedents(event.precedents), _models(event.model)]


@lines_on.register
def _intuition_passed(event: IntuitionPassed) -> Lines:
    nearest = f"nearest motif {_name(event.nearest)}, similarity {event.similarity:g}"
    line = Text(f"{nearest if event.nearest else 'no motif shares a shingle'}; {_score(event.score)}")
    allowed = allowed_lines(event.allowed)
    return [line, *allowed, *unread_lines(event.unread), *_precedents(event.precedents), _models(event.model)]


@lines_on.register
def _result_read(event: IntuitionResultPassed | IntuitionResultRejected) -> Lines:
    """Return how intuition judged a tool's result."""
    line = Text("let pass")
    if isinstance(event, IntuitionResultRejected):
        line = Text(f"withheld by the {event.detector}, whose threshold is ", "bold red")
        line.append(f"{event.threshold if event.detector == 'motif' else event.score_threshold:g}")
    nearest = event.motif if isinstance(event, IntuitionResultRejected) else event.nearest
    line.append(f": nearest motif {_name(nearest)}, similarity {event.similarity:g}; {_score(event.score)}")
    return [line, *unread_lines(event.unread), _models(event.model)]


def allowed_lines(names: Sequence[str]) -> Lines:
    """Return a line that names the allowances by which parts of an input were not judged; no line if there are none."""
    return [Text(f"not judged, as allowed by {printable(', '.join(names))}", "yellow")] if names else []


def unread_lines(unread: Sequence[Unread]) -> Lines:
    """Return a line for each part that a guard did not read: how much, where, which bound was reached, its weight."""
    return [Text(f"not looked at: {_unread_text(each)}", "yellow") for each in unread]


def _unread_text(each: Unread) -> str:
    where = f" in {printable(each.layer)}" if each.layer else ""
    return f"{each.amount:,} of {printable(each.what)}{where} (bound: {printable(each.why)}), weighs {each.share:g}"


def _score(score: float | None) -> str:
    return "scorer off" if score is None else f"score {score:g}"


def _precedents(precedents: Sequence[Similar]) -> Lines:
    return [
        Text(
            f"precedent {_name(each.precedent)}: similarity {each.similarity:g}, {printable(each.situation)}, "
            f"{each.action}, {each.outcome}, harm {each.harm_level:g}{', with an answer' if each.answer else ''}",
            "dim",
        )
        for each in precedents
    ]


@lines_on.register
def _appraisal_completed(event: AppraisalCompleted) -> Lines:
    topic = Text(f"topic {_name(event.conversation_topic)}{' (new)' if event.is_new_topic else ''}")
    topic.append(f", confidence {event.topic_confidence:g}, nearest {_name(event.similar_topic)}")
    affect = Text(f"valence {event.valence:g}, arousal {event.arousal:g}, novelty {event.novelty:g}")
    affect.append(f", uncertainty {event.uncertainty:g}")
    proposal = Text(f"proposes to {event.proposed_action}")
    proposal.append(", affects the swarm" if event.affects_swarm else "")
    if event.risks.harm:
        proposal.append(", risk of harm", "bold red")
    if event.risks.layer_0:  # the system's own rules
        proposal.append(", risk to layer 0", "bold red")
    allowed = allowed_lines(event.allowed)
    judgement = [Text(JUDGEMENTS[event.judgement], "yellow")] if event.judgement in JUDGEMENTS else []
    return [topic, affect, proposal, *_turn(event), *allowed, *judgement, _layers(event.layers), _models(event.models)]


@lines_on.register
def _judgement_requested(event: JudgementRequested) -> Lines:
    line = Text(f"{counted(len(event.layers), 'part')} left open: {call_text(event.call)}")
    line.append("; the input waits for the answer" if event.waits else "; the input goes on meanwhile")
    return [line, _layers(event.layers)]


@lines_on.register
def _appraisal_judged(event: AppraisalJudged) -> Lines:
    if event.reason:
        why = printable(event.reason)
        return [Text(f"the local numbers stand, since no model's word can be had: {why}", "yellow")]
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("layer")
    for heading in ("local", "model", "sees", "counts", "the model's share"):
        grid.add_column(heading, justify="right")
    for part, layer in zip(event.parts, event.layers, strict=True):
        local, by_model, counts, share = (
            f"{each:.3f}" for each in (part.local, part.falsehood, layer.falsehood, part.share)
        )
        grid.add_row(printable(part.layer), local, by_model, part.kind, counts, share)
    late = ", after the input had gone on" if event.late else ""
    return [Text(f"falsehood by {printable(event.model) or 'a model'}{late}"), grid]


def _turn(event: AppraisalCompleted) -> Lines:
    """Return as which kind of turn the input was read: the probability of each kind."""
    if event.turn is None:
        return []
    kinds = sorted(numbers_in(event.turn), key=lambda kind: -kind[1])
    return [Text(f"read as {', '.join(f'{name} {share:.2f}' for name, share in kinds)}")]


@lines_on.register
def _answer_appraised(event: AnswerAppraised) -> Lines:
    line = Text(f"answer of loop {printable(event.loop_id)}: alignment {event.alignment:g}, drift {event.drift:g}")
    line.append("" if event.judged else ", neutral: too few words to judge by")
    line.append(f", biases {printable(', '.join(event.bias_tags))}" if event.bias_tags else "")
    return [line, _models(event.models)]


def _layers(layers: Sequence[LayerTrust]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("layer")
    for heading in ("characters", "truth", "indeterminacy", "falsehood", "unread"):
        grid.add_column(heading, justify="right")
    for layer in layers:
        shares = (f"{each:.3f}" for each in (layer.truth, layer.indeterminacy, layer.falsehood))
        grid.add_row(printable(layer.layer), str(layer.characters), *shares, str(layer.unread))
    return grid


@lines_on.register
def entropy(event: CoherencePassed | CoherenceRejected) -> Lines:
    """Return the entropy of what an input asks for, its threshold, and its three parts."""
    dissonant = event.entropy > event.threshold
    line = Text().append(f"entropy {event.entropy:g}", "bold red" if dissonant else "bold")
    line.append(f" {'above' if dissonant else 'within'} the threshold {event.threshold:g}")
    parts = Text(f"knowledge {event.knowledge:g} (from {event.similar} similar precedents)")
    parts.append(f", swarm {event.swarm:g} (coherence index {event.sci:g}), constitutional {event.constitutional}")
    if event.violations:
        parts.append(f": {printable(', '.join(event.violations))}", "bold red")
    missed = [Text(f"unread {event.unread:g}: {_unread_text(event.unread_of)}", "yellow")] if event.unread_of else []
    return [line, parts, *missed]


@lines_on.register
def _breaker_tripped(event: BreakerTripped) -> Lines:
    return [Text(f"{event.violation} in {printable(event.layer)}", "bold red"), *_standing(event.standing)]


@lines_on.register
def _breaker_terminated(event: BreakerTerminated) -> Lines:
    found = f", {event.violation} in {printable(event.layer)}" if event.violation else ""
    return [Text(f"terminated: {event.reason}{found}", "bold red"), *_standing(event.standing)]


@lines_on.register
def _recovery_started(event: BreakerRecoveryStarted) -> Lines:
    return [Text(f"recovery attempt begun by {event.by}"), *_standing(event.standing)]


@lines_on.register
def _breaker_reset(event: BreakerReset) -> Lines:
    return [Text(f"by {quoted_line(event.by)}: {quoted_line(event.why)}"), *_standing(event.standing)]


@lines_on.register
def _breaker_moved(event: BreakerCleared | BreakerRecovered | BreakerAttemptFailed | BreakerCalmed) -> Lines:
    return _standing(event.standing)


@lines_on.register
def _breaker_withheld(event: BreakerWithheld) -> Lines:
    why = {"unappraised": "nothing was appraised", "record_full": "no room for another session"}.get(event.because)
    return [*([Text(why, "bold red")] if why else []), *_standing(event.standing)]


@lines_on.register
def _breaker_warned(event: BreakerWarned) -> Lines:
    return [Text(f"in danger: {event.danger}", "bold yellow"), *_standing(event.standing)]


@lines_on.register
def _breaker_filled(event: BreakerFilled) -> Lines:
    return [Text(f"{event.terminated} terminated sessions are held, as many as may be", "bold red")]


def _standing(standing: Standing) -> Lines:
    colour = "green" if standing.state == "NORMAL" else "red"
    line = Text(f"{standing.state_before} → ").append(standing.state, f"bold {colour}")
    line.append(f", trust {standing.trust_before:g} → {standing.trust:g}, falsehood {standing.falsehood:g}")
    line.append(f", stance {standing.stance}")
    counts = f"violations {standing.violations}, attempts {standing.attempts}, turns of the attempt "
    return [line, Text(f"{counts}{standing.attempt_turns}", "dim")]


@lines_on.register
def _arbiter_denied(event: ArbiterDenied) -> Lines:
    return [Text(f"denied: {event.reason}", "bold red").append(_by_precedent(event.precedent, event.similarity))]


@lines_on.register
def _arbiter_immediate(event: ArbiterImmediate) -> Lines:
    line = Text("answered at once", "bold green").append(_by_precedent(event.precedent, event.similarity))
    return [line, Text(quoted_line(event.answer), "italic")]


@lines_on.register
def _arbiter_escalated(event: ArbiterEscalated) -> Lines:
    line = Text(f"escalated: {event.reason}{_by_precedent(event.nearest, event.similarity)}")
    return [line, Text(f"deadline {event.deadline_after_ms / 1000:g} s", "dim")]


@lines_on.register
def _arbiter_passed(event: ArbiterPassed) -> Lines:
    return [Text("let pass", "bold green").append(_by_precedent(event.nearest, event.similarity))]


@lines_on.register
def _answer_read(event: ReflexAnswerPassed | ReflexAnswerBlocked) -> Lines:
    faults = event.faults if isinstance(event, ReflexAnswerBlocked) else ()
    line = Text(f"withheld: {', '.join(faults)}", "bold red") if faults else Text("nothing to withhold it for")
    line = Text(f"by {event.by}: ").append(line).append(f", {event.leaked:.0%} of the system prompt in it")
    hosts = [Text(f"would carry words of the prompt to {', '.join(map(printable, event.hosts))}", "red")]
    found = [Text(f"{each.action} {each.pattern}: signature {quoted_line(each.signature)}") for each in event.matches]
    kinds = Counter(each.kind for each in event.secrets)
    masked = " (masked)" if isinstance(event, ReflexAnswerPassed) and event.masked else ""
    found += [Text(f"{counted(number, kind.replace('_', ' '))} in it{masked}", "red") for kind, number in kinds.items()]
    return [line, *(hosts if event.hosts else ()), *found, *unread_lines(event.unread)]


def _by_precedent(precedent: str, similarity: float) -> str:
    return f", precedent {_name(precedent)}, similarity {similarity:g}" if precedent else ""


@lines_on.register
def _swarm_measured(event: SwarmMeasured) -> Lines:
    line = Text(f"coherence index {event.sci:g}", "bold" if event.healthy else "bold red")
    line.append(f" ({'healthy' if event.healthy else 'not healthy'})")
    parts = f"precedent agreement {event.precedent_agreement:g}, health alignment {event.health_alignment:g}, "
    parts += f"delivered share {event.delivered_share:g}, decision consistency {event.decision_consistency:g}"
    lost = [Text(f"nobody serves {', '.join(event.lost)}", "red")] if event.lost else []
    return [line, Text(parts), *lost]


@lines_on.register
def _stage_lost(event: StageLost) -> Lines:
    where = f"{len(event.partitions)} of {event.of} partitions"
    return [Text(f"{event.actor}: {where} not served for {event.absent_ms:,} ms ({event.reason})", "bold red")]


@lines_on.register
def _stage_found(event: StageFound) -> Lines:
    left_out = (
        "" if event.actor in ASKED_STAGES.union(REQUIRED) else ", or it need not run and nobody hosts it any more"
    )
    return [Text(f"{event.actor}: all partitions are served again{left_out}")]


@lines_on.register
def _over_budget(event: OverBudget) -> Lines:
    within = f"within {event.window_s:g} s over {event.budget_ms:g} ms, the slowest {event.worst_ms:g} ms"
    return [Text(f"{event.actor}: {counted(event.count, 'decision')} {within}", "yellow")]


@lines_on.register
def _within_budget(event: WithinBudget) -> Lines:
    return [Text(f"{event.actor}: no decision over its budget for {event.quiet_s:g} s")]


def _models(models: str) -> Text:
    return Text(f"models {printable(models)}", "dim")


def _name(name: str) -> str:
    return printable(name) if name else "-"
