"""How the exchanges of forwarded inputs end: their sender asks its own model and reports the answer. Pure."""

from collections.abc import Mapping

import msgspec

from actors.responder.composing.composer import text_of
from actors.responder.end_of_exchange import UPSTREAM, end_of
from actors.responder.pending import ExchangeContext, Pending
from schemas.effectors.model_calls import Ended
from schemas.vocabulary.gateway import InputAbandoned, InputAnswered
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted

FORWARDED = "forward"
"""The reason of an end that another model answered."""

UPSTREAM_SILENT = "upstream_silent"
"""The reason of an end for which no answer of another model was reported until the deadline."""

_FINISH_REASONS: Mapping[str, Ended] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "content_filter": "content_filter",
}
"""The other model's finish reason -> how this product records it; any other is ``unknown``."""


def is_forwarded(pending: Pending) -> bool:
    """Whether the guards have let an input pass, and the answer of another model is awaited."""
    return pending.purpose == "forward" and pending.silent[0] == "DELIBERATIVE"


def with_answer(pending: Pending, event: InputAnswered) -> Pending:
    """Return a forwarded exchange with its model's answer, which reflex judges first; the first choice counts."""
    if not is_forwarded(pending) or pending.answer is not None:
        return pending
    first = event.choices[0] if event.choices else None
    finish_reason = first.finish_reason if first is not None else ""
    end = msgspec.structs.replace(
        end_of(pending, "DELIBERATIVE", "EXECUTED", FORWARDED, first.text if first is not None else ""),
        backend=UPSTREAM,
        model=event.model,
        finish_reason=_FINISH_REASONS.get(finish_reason, "unknown") if finish_reason else "",
    )
    return msgspec.structs.replace(pending, answer=end)


def end_of_passed_upstream(context: ExchangeContext, event: ReflexAnswerPassed) -> ResponseEmitted | None:
    """Reflex lets the answer of the other model pass."""
    return context.pending.answer if event.by == "upstream" else None


def end_of_blocked_upstream(context: ExchangeContext, event: ReflexAnswerBlocked) -> ResponseEmitted | None:
    """Reflex blocks the answer of the other model: a notice goes out in its place."""
    answer = context.pending.answer
    if answer is None or event.by != "upstream":
        return None
    end = end_of(context.pending, "DELIBERATIVE", "WITHHELD", event.faults[0], text_of("kept_back"))
    return msgspec.structs.replace(end, model=answer.model, finish_reason="content_filter")


def end_of_abandoned(context: ExchangeContext, event: InputAbandoned) -> ResponseEmitted | None:
    """The other model gave no answer, or nobody waits for it."""
    if not is_forwarded(context.pending) or context.pending.answer is not None:
        return None
    end = end_of(context.pending, "DELIBERATIVE", "FAILED", event.reason, text_of("unfinished"))
    return msgspec.structs.replace(end, backend=UPSTREAM)
