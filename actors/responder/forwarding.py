"""Inputs that whoever sent them has answered by a model of its own: how their exchanges end. Pure."""

from collections.abc import Mapping

import msgspec

from actors.responder.composer import text_of
from actors.responder.ending import UPSTREAM, end_of
from actors.responder.pending import Case, Pending
from schemas.calls import Ended
from schemas.vocabulary.gateway import InputAbandoned, InputAnswered
from schemas.vocabulary.responder import ResponseEmitted

FORWARDED = "forward"
"""The reason of an end that another's model answered."""

SILENT = "upstream_silent"
"""The reason of an end of which nobody told what its model said, until the deadline."""

_ENDED: Mapping[str, Ended] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "content_filter": "content_filter",
}


def is_forwarded(pending: Pending) -> bool:
    """Whether the guards have let an input pass, and the word of another's model is waited for."""
    return pending.purpose == "forward" and pending.silent[0] == "DELIBERATIVE"


def told(case: Case, event: InputAnswered) -> ResponseEmitted | None:
    """Another's model has answered: its first choice is the exchange's answer."""
    if not is_forwarded(case.pending):
        return None
    first = event.choices[0] if event.choices else None
    ended = first.finish_reason if first is not None else ""
    return msgspec.structs.replace(
        end_of(case.pending, "DELIBERATIVE", "EXECUTED", FORWARDED, first.text if first is not None else ""),
        backend=UPSTREAM,
        model=event.model,
        finish_reason=_ENDED.get(ended, "unknown") if ended else "",
    )


def abandoned(case: Case, event: InputAbandoned) -> ResponseEmitted | None:
    """Another's model gave no answer, or nobody waits for it."""
    if not is_forwarded(case.pending):
        return None
    end = end_of(case.pending, "DELIBERATIVE", "FAILED", event.reason, text_of("unfinished"))
    return msgspec.structs.replace(end, backend=UPSTREAM)
