"""One function for each kind of event that can end an exchange; it returns the end, or None. Pure.

A mode is how the router decided to answer: in substance, by asking back, and so on; ACT first looks things up, the
other modes are *terminal*. The composer answers by fixed sentences where no model does. A motif is a precedent (an
earlier situation with its outcome) that did harm. The breaker's stance says how careful answers to a session have to
be.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from actors.responder.composing.composer import Recall, compose, text_of
from actors.responder.composing.memories import (
    entities_of,
    fact_line,
    memories_of,
    not_in_turns,
    quotable,
    without_retired,
)
from actors.responder.composing.prompting import PURPOSES, time_to_ask
from actors.responder.composing.quoting import quote
from actors.responder.drafts import (
    RERUN_FAILED,
    end_by_best_draft,
    end_of_blocked_draft,
    end_of_failed_guardrails,
    end_of_finalized,
    end_of_forced,
    end_of_late_rerun,
    end_of_passed_draft,
    end_of_repeated_loop,
)
from actors.responder.end_of_exchange import PRECEDENT, end_of
from actors.responder.forwarding import (
    UPSTREAM_SILENT,
    end_of_abandoned,
    end_of_blocked_upstream,
    end_of_passed_upstream,
    is_forwarded,
)
from actors.responder.pending import STAGES, ExchangeContext
from schemas.catalogue import CATALOGUE, entry_of, failure_of
from schemas.event import Event, Failed, topic_of
from schemas.input_path import STAGE_OF
from schemas.vocabulary.appraisal import AppraisalFailed
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate, ArbiterPassed
from schemas.vocabulary.breaker import BreakerTerminated, BreakerTripped, BreakerWithheld
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.coherence import UNREAD, CoherenceRejected
from schemas.vocabulary.gateway import InputAbandoned, InputAnswered, InputReceived
from schemas.vocabulary.guardrails import (
    GuardrailsFailed,
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
)
from schemas.vocabulary.intuition import IntuitionRejected
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed, ReflexBlocked
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested, Stage
from schemas.vocabulary.router import Mode, ModeSelected

LLM_FAILED = "llm_failed"
"""The first part of the reason when the composer answers in a model's place: ``llm_failed:no_model``."""

CHECKED = "check"
"""The reason of an end when all guards let an input pass that was only sent to be checked."""

_REQUEST = topic_of(ResponseRequested)
_ANSWER_TOPICS = frozenset({_REQUEST, topic_of(LlmCompleted)})
"""Names of the events that appraisal reads besides inputs: its failure on one of them says nothing about the input."""

_DEADLINES = frozenset({topic_of(InputReceived), topic_of(ArbiterEscalated)})
"""Names of the events whose timers are deadlines of an exchange."""

_MOST_QUOTED = 3
"""Most memories that the composer quotes."""

PASSES: Mapping[type[Event], Stage] = {
    entry.event: STAGE_OF[entry.owner] for entry in CATALOGUE.values() if entry.verdict == "passes"
}
"""The events by which each stage lets an input go on."""


PARALLEL_STAGES: frozenset[Stage] = frozenset({"COHERENCE", "BREAKER"})
"""The stages that may decide before an earlier one: appraisal and the breaker do not wait for reflex."""


EndFunction = Callable[[ExchangeContext, Any], ResponseEmitted | None]
"""(context, event) -> the end of the exchange, or None to wait. ``END_FUNCTIONS`` has one for each type of event."""


def end_of_reflex_block(context: ExchangeContext, event: ReflexBlocked) -> ResponseEmitted:
    """A known threat is refused."""
    return end_of(context.pending, "REFLEX", "BLOCKED", event.pattern, text_of("refused"))


def end_of_intuition_rejection(context: ExchangeContext, event: IntuitionRejected) -> ResponseEmitted:
    """A learned danger is refused; the reason names what recognised it."""
    reason = event.motif if event.detector == "motif" else event.detector
    return end_of(context.pending, "INTUITION", "REJECTED", reason, text_of("learned"))


def end_of_coherence_rejection(context: ExchangeContext, event: CoherenceRejected) -> ResponseEmitted:
    """An input is refused that conflicts with rules or facts, or of which too much could not be read."""
    if event.violations == (UNREAD,):
        return end_of(context.pending, "COHERENCE", "REJECTED", "UNREAD", text_of("unread"))
    return end_of(context.pending, "COHERENCE", "REJECTED", "DISSONANT", text_of("dissonant"))


def end_of_breaker_trip(context: ExchangeContext, event: BreakerTripped) -> ResponseEmitted:
    """The input that trips the breaker is not answered."""
    return end_of(context.pending, "BREAKER", "WITHHELD", event.violation, text_of("tripped"))


def end_of_breaker_withholding(context: ExchangeContext, event: BreakerWithheld) -> ResponseEmitted:
    """An input that the breaker withholds gets a fixed notice."""
    notice = "terminated" if event.standing.state == "TERMINATED" else "withheld"
    reason = event.standing.state.lower() if event.because == "state" else event.because
    return end_of(context.pending, "BREAKER", "WITHHELD", reason, text_of(notice))


def end_of_breaker_termination(context: ExchangeContext, event: BreakerTerminated) -> ResponseEmitted:
    """The input that ends its session for good is not answered."""
    return end_of(context.pending, "BREAKER", "WITHHELD", event.reason, text_of("terminated"))


def end_of_arbiter_denial(context: ExchangeContext, event: ArbiterDenied) -> ResponseEmitted:
    """The arbiter's denial ends the exchange; it never continues to deliberation."""
    return end_of(context.pending, "ARBITER", "REJECTED", event.reason, text_of("denied"))


def end_of_immediate_answer(context: ExchangeContext, event: ArbiterImmediate) -> ResponseEmitted:
    """An input close to a precedent is answered with the text recorded with that precedent."""
    end = end_of(context.pending, "ARBITER", "EXECUTED", event.precedent, event.answer)
    return msgspec.structs.replace(end, backend=PRECEDENT)


def no_end_yet(context: ExchangeContext, event: InputAnswered) -> None:
    """The sender's model has answered: reflex judges the answer next."""


def end_of_passed_check(context: ExchangeContext, event: ArbiterPassed) -> ResponseEmitted | None:
    """Every guard has let the input pass: a check ends now; the sender of a forwarded input asks its model next."""
    return end_of(context.pending, "ARBITER", "PASSED", CHECKED, "") if context.pending.purpose == "check" else None


def end_of_failed_stage(context: ExchangeContext, event: Failed) -> ResponseEmitted:
    """If an actor could not decide, the exchange ends: an input that is not cleared is not answered."""
    actor = entry_of(event).owner
    return end_of(context.pending, STAGE_OF[actor], "FAILED", f"{actor}_failed", text_of("unfinished"))


def end_of_failed_appraisal(context: ExchangeContext, event: Failed) -> ResponseEmitted | None:
    """Appraisal failed: on the input, which is then not answered, or on a model's answer, which then is not judged."""
    if context.pending.awaits == "guardrails":
        return end_by_best_draft(context, "appraisal_failed")
    if event.failed_topic in _ANSWER_TOPICS:
        return None
    return end_of_failed_stage(context, event)


def end_of_deadline(context: ExchangeContext, event: ClockFired) -> ResponseEmitted | None:
    """Nothing ended the exchange in time; the silent stage is named. Timers of other kinds end nothing.

    An answer that was still to be judged or improved goes out as it is.
    """
    if event.set_by in _DEADLINES and context.pending.drafts:
        late = context.pending.awaits in ("model", "reflex")
        return end_by_best_draft(context, f"{RERUN_FAILED}:deadline" if late else "guardrails_silent")
    if event.set_by in _DEADLINES and context.pending.unread is not None:
        return end_of(context.pending, "REFLEX", "FAILED", "deadline", text_of("unfinished"))
    if event.set_by == topic_of(ArbiterEscalated):
        return end_of(context.pending, "DELIBERATIVE", "FAILED", "deliberation_deadline", text_of("unfinished"))
    if event.set_by != topic_of(InputReceived):
        return None
    if context.pending.answer is not None:
        return end_of(context.pending, "REFLEX", "FAILED", "deadline", text_of("unfinished"))
    reason = UPSTREAM_SILENT if is_forwarded(context.pending) else "deadline"
    return end_of(context.pending, context.pending.silent[0], "FAILED", reason, text_of("unfinished"))


def end_of_mode(context: ExchangeContext, event: ModeSelected) -> ResponseEmitted | None:
    """A terminal mode is answered by the composer, or by the model that is asked; for ACT a loop runs first."""
    mode = event.terminal_mode
    if mode is None or context.pending.asked:
        return None
    if asks_model(context, mode):
        return _without_model(context, event, "no_time") if time_to_ask(context) <= 0 else None
    return _composed(context, event, mode, reason=mode)


def end_of_llm_answer(context: ExchangeContext, event: LlmCompleted) -> ResponseEmitted | None:
    """A model's text answers only the request that asked for it; reflex reads it first.

    If the text is empty, reflex is not waited for.
    """
    pending = context.pending
    if not pending.asked or event.request != pending.asked or pending.awaits != "model":
        return None
    return end_without_model(context, "answer_empty")


def end_of_passed_answer(context: ExchangeContext, event: ReflexAnswerPassed) -> ResponseEmitted | None:
    """Reflex lets an answer pass: that of the sender's model, or one that guardrails judge next."""
    return end_of_passed_upstream(context, event) or end_of_passed_draft(context, event)


def end_of_blocked_answer(context: ExchangeContext, event: ReflexAnswerBlocked) -> ResponseEmitted | None:
    """Reflex blocks an answer; the exchange ends without it."""
    return end_of_blocked_upstream(context, event) or end_of_blocked_draft(context, event)


def end_of_llm_failure(context: ExchangeContext, event: LlmFailed) -> ResponseEmitted | None:
    """If the model fails, the composer answers, and the reason says so."""
    pending = context.pending
    if pending.awaits != "model" or event.failed_topic != _REQUEST or event.request not in ("", pending.asked):
        return None  # a failure on an unreadable request names none; an exchange waits for one request at a time
    return end_without_model(context, event.reason)


END_FUNCTIONS: Mapping[type[Event], EndFunction] = {
    **{failure_of(actor): end_of_failed_stage for actor in STAGE_OF},
    ReflexBlocked: end_of_reflex_block,
    IntuitionRejected: end_of_intuition_rejection,
    AppraisalFailed: end_of_failed_appraisal,
    CoherenceRejected: end_of_coherence_rejection,
    BreakerTripped: end_of_breaker_trip,
    BreakerWithheld: end_of_breaker_withholding,
    BreakerTerminated: end_of_breaker_termination,
    ArbiterDenied: end_of_arbiter_denial,
    ArbiterImmediate: end_of_immediate_answer,
    ArbiterPassed: end_of_passed_check,
    InputAnswered: no_end_yet,
    ReflexAnswerPassed: end_of_passed_answer,
    ReflexAnswerBlocked: end_of_blocked_answer,
    InputAbandoned: end_of_abandoned,
    ModeSelected: end_of_mode,
    LlmCompleted: end_of_llm_answer,
    LlmFailed: end_of_llm_failure,
    GuardrailsFinalized: end_of_finalized,
    GuardrailsForceFinalized: end_of_forced,
    GuardrailsRerunOrdered: end_of_late_rerun,
    GuardrailsRepeated: end_of_repeated_loop,
    GuardrailsFailed: end_of_failed_guardrails,
    ClockFired: end_of_deadline,
}
"""Every event that can end an exchange. A new stage adds its verdicts here."""


def must_wait(end: ResponseEmitted, silent: tuple[Stage, ...]) -> bool:
    """Whether an end must wait for the verdict of an earlier stage; ``silent`` are the stages without a verdict so far.

    Stages that work in parallel race each other; which one ends an exchange must not depend on which is faster.
    """
    return end.stage in PARALLEL_STAGES and STAGES.index(silent[0]) < STAGES.index(end.stage)


def overrules(end: ResponseEmitted, held: ResponseEmitted) -> bool:
    """Whether an end replaces the held one: the end of an earlier stage does, even if a deadline caused it."""
    return STAGES.index(end.stage) < STAGES.index(held.stage)


def asks_model(context: ExchangeContext, mode: Mode) -> bool:
    """Whether a model is to be asked for an answer in ``mode``."""
    return context.settings.backend == "llm" and mode in PURPOSES


def end_without_model(context: ExchangeContext, why: str) -> ResponseEmitted | None:
    """Return the end if a model gave no answer: with its best answer so far, else with the composer's."""
    if context.pending.drafts:
        return end_by_best_draft(context, f"{RERUN_FAILED}:{why}")
    selected = context.pending.selected
    return _without_model(context, selected, why) if selected is not None else None


def _without_model(context: ExchangeContext, event: ModeSelected, why: str) -> ResponseEmitted | None:
    mode = event.terminal_mode
    return None if mode is None else _composed(context, event, mode, reason=f"{LLM_FAILED}:{why}")


def _composed(context: ExchangeContext, event: ModeSelected, mode: Mode, *, reason: str) -> ResponseEmitted:
    """Return the end with the composer's answer in a mode."""
    guarded = context.pending.stance == "guarded"
    memories = () if guarded else without_retired(memories_of(context), context.pending.retired)
    limit = context.settings.quote_limit
    memories_shown = quotable(not_in_turns(memories, context.turns), context.settings.answering_energy)
    recall = Recall(
        earlier=tuple(quote(turn.said, limit) for turn in context.turns),
        memories=tuple(each.text for each in memories_shown[:_MOST_QUOTED]),
        told=tuple(quote(fact_line(each), limit) for each in context.pending.told),
        gone=tuple(quote(fact_line(each), limit) for each in context.pending.retired),
        lack="unattached" if context.settings.backend == "composer" else "silent",
        guarded=guarded,
    )
    answer = compose(mode, context.pending.text, event, recall, limit)
    if answer is None:
        end = end_of(context.pending, "DELIBERATIVE", "FAILED", "mode_not_answerable", text_of("unfinished"))
        return msgspec.structs.replace(end, mode=mode)
    end = end_of(context.pending, "DELIBERATIVE", "EXECUTED", reason, answer)
    entities = entities_of(memories) if mode in PURPOSES else ()
    return msgspec.structs.replace(end, mode=mode, entities=entities)
