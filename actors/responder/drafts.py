"""Drafts: a model's answers that reflex and guardrails judge before anybody reads them. Pure.

Reflex reads an answer first. If reflex blocks it, it never becomes a draft and never goes out, whatever else fails.
Otherwise it is held as a draft until guardrails judge its loop (the pass of the deliberation that wrote it; a *rerun*
is another pass, which is to improve the answer). They end the deliberation and name the best answer, or have the model
asked again. If guardrails, or the stages that they depend on, fail or are silent, the best draft so far still goes out,
and the reason says so: a person is waiting for it. The soul is the text that says who the agent is.
"""

import msgspec

from actors.contract.answers.credentials import masked
from actors.responder.composing.composer import text_of
from actors.responder.composing.prompting import PURPOSES, WITH_SOUL, soul_of, time_to_ask
from actors.responder.end_of_exchange import MODEL, end_of
from actors.responder.identity import identity_of
from actors.responder.pending import Draft, ExchangeContext, Pending
from schemas.event import Failed, topic_of
from schemas.vocabulary.guardrails import (
    GuardrailsFinalized,
    GuardrailsForceFinalized,
    GuardrailsRepeated,
    GuardrailsRerunOrdered,
    LoopTrace,
)
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from schemas.vocabulary.router import Mode

RERUN_FAILED = "rerun_failed"
"""The part of the reason between the mode and the cause, if an answer could not be improved: ``mode:this:cause``."""


def with_reply(pending: Pending, event: LlmCompleted, source: str) -> Pending:
    """Return the exchange with a model's answer for reflex to read, if one is awaited and it is not empty.

    ``source`` is the id of the event.
    """
    if pending.awaits != "model" or event.request != pending.asked or not event.text.strip():
        return pending
    draft = Draft(
        source=source,
        loop_id=pending.loop_id,
        text=event.text,
        model=event.model,
        entities=pending.entities,
        finish_reason=event.ended,
        cuts=(*pending.cuts, *event.cuts),
    )
    return msgspec.structs.replace(pending, unread=draft, awaits="reflex")


def with_passed(pending: Pending, event: ReflexAnswerPassed) -> Pending:
    """Return the exchange after reflex has let the model's answer pass: it is a draft now."""
    draft = pending.unread
    if draft is None or draft.source != event.source:
        return pending
    spans = tuple((each.kind, *each.span) for each in event.secrets) if event.masked else ()
    draft = msgspec.structs.replace(draft, text=masked(draft.text, spans).strip())
    return msgspec.structs.replace(pending, unread=None, drafts=(*pending.drafts, draft), awaits="guardrails")


def end_of_passed_draft(context: ExchangeContext, event: ReflexAnswerPassed) -> ResponseEmitted | None:
    """An answer that reflex lets pass goes out at once if guardrails will not judge it; it is the last draft now."""
    pending = context.pending
    if pending.awaits != "guardrails" or pending.drafts[-1].source != event.source:
        return None
    if pending.loop_id and not pending.unjudged:
        return None
    return end_by_best_draft(context, pending.unjudged) if pending.loop_id else end_by_draft(context, "")


def end_of_blocked_draft(context: ExchangeContext, event: ReflexAnswerBlocked) -> ResponseEmitted | None:
    """An answer that reflex blocks never goes out: an earlier answer goes out in its place, or a notice."""
    pending = context.pending
    if pending.unread is None or pending.unread.source != event.source:
        return None
    if pending.drafts:
        return end_by_best_draft(context, f"{RERUN_FAILED}:{event.faults[0]}")
    end = end_of(pending, "DELIBERATIVE", "WITHHELD", event.faults[0], text_of("kept_back"))
    return msgspec.structs.replace(
        end,
        mode=_mode_of(pending),
        model=pending.unread.model,
        entities=pending.unread.entities,
        loop_id=pending.unread.loop_id,
        finish_reason="content_filter",
        cuts=pending.unread.cuts,
    )


def with_failure(pending: Pending, event: Failed) -> Pending:
    """Return the exchange after appraisal failed on the request or the answer: the answer will not be judged."""
    of_request, of_answer = (event.failed_topic == topic_of(each) for each in (ResponseRequested, LlmCompleted))
    if not (of_request and pending.awaits in ("model", "reflex")) and not (of_answer and pending.awaits == "reflex"):
        return pending
    return msgspec.structs.replace(pending, unjudged="appraisal_failed")


def with_best(pending: Pending, event: GuardrailsRerunOrdered) -> Pending:
    """Return the exchange after guardrails ordered a rerun: they also name the best answer so far."""
    return msgspec.structs.replace(pending, best=event.best) if is_awaited_judgement(pending, event.trace) else pending


def is_awaited_judgement(pending: Pending, trace: LoopTrace) -> bool:
    """Whether a judgement is the awaited one."""
    return pending.awaits == "guardrails" and trace.loop_id == pending.loop_id


def is_rerun_possible(context: ExchangeContext, event: GuardrailsRerunOrdered) -> bool:
    """Whether a model is to be asked again: a rerun was ordered, and there is enough time."""
    if not is_awaited_judgement(context.pending, event.trace) or _mode_of(context.pending) is None:
        return False
    return time_to_ask(context) >= context.settings.rerun_least_ms


def end_of_finalized(context: ExchangeContext, event: GuardrailsFinalized) -> ResponseEmitted | None:
    """A deliberation that ends well is answered with its best loop."""
    return end_by_draft(context, event.best) if is_awaited_judgement(context.pending, event.trace) else None


def end_of_forced(context: ExchangeContext, event: GuardrailsForceFinalized) -> ResponseEmitted | None:
    """A deliberation that a limit ends is also answered with its best loop; the reason names the limit."""
    if not is_awaited_judgement(context.pending, event.trace):
        return None
    return end_by_draft(context, event.best, event.trace.rerun_reason)


def end_of_late_rerun(context: ExchangeContext, event: GuardrailsRerunOrdered) -> ResponseEmitted | None:
    """If there is no time for a rerun, the exchange ends with the best answer so far."""
    if not is_awaited_judgement(context.pending, event.trace) or is_rerun_possible(context, event):
        return None
    return end_by_draft(context, event.best, f"{RERUN_FAILED}:no_time")


def end_of_failed_guardrails(context: ExchangeContext, event: Failed) -> ResponseEmitted | None:
    """If guardrails could not decide, the best draft goes out."""
    return end_by_best_draft(context, "guardrails_failed") if context.pending.awaits == "guardrails" else None


def end_of_repeated_loop(context: ExchangeContext, event: GuardrailsRepeated) -> ResponseEmitted | None:
    """If guardrails have judged a loop of this name before, its answer goes out unjudged.

    Another sender has completed a loop under the name of this one.
    """
    drafts = context.pending.drafts
    waits = context.pending.awaits == "guardrails" and bool(drafts) and drafts[-1].loop_id == event.loop_id
    return end_by_best_draft(context, "guardrails_repeated") if waits else None


def end_by_best_draft(context: ExchangeContext, why: str) -> ResponseEmitted | None:
    """Return the end with the best answer so far; None if there is none.

    ``why`` says why it was not judged or not improved. An answer that was judged is preferred to one that was not.
    """
    drafts = context.pending.drafts
    return end_by_draft(context, context.pending.best or drafts[-1].loop_id, why) if drafts else None


def end_by_draft(context: ExchangeContext, loop_id: str, why: str = "") -> ResponseEmitted | None:
    """Return the end with the answer of a loop; with the last answer if that loop is not known."""
    pending = context.pending
    mode = _mode_of(pending)
    if mode is None or not pending.drafts:
        return None
    draft = next((each for each in pending.drafts if each.loop_id == loop_id), pending.drafts[-1])
    soul = soul_of(context) if PURPOSES.get(mode) in WITH_SOUL else ""
    end = end_of(pending, "DELIBERATIVE", "EXECUTED", f"{mode}:{why}" if why else mode, draft.text)
    return msgspec.structs.replace(
        end,
        mode=mode,
        backend=MODEL,
        model=draft.model,
        entities=draft.entities,
        loop_id=draft.loop_id,
        finish_reason=draft.finish_reason,
        cuts=draft.cuts,
        identity=identity_of(soul, draft.text) if soul else None,
    )


def _mode_of(pending: Pending) -> Mode | None:
    return pending.selected.terminal_mode if pending.selected is not None else None
