"""What came of an input that was fed: its exchange's end, or why it has none."""

import msgspec

from deploy.feeding.lines import Id
from schemas.model_calls import Cut


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An exchange and its end; what ``feed`` prints, an object a line.

    ``id`` is the line's own, else its number; ``turn`` counts a conversation's inputs from 1 and is left out elsewhere.
    ``latency_ms`` is from sending the input until its end was heard, as this process saw it. ``finish_reason`` is there
    where a model's answer may not be whole, ``cuts`` where its prompt was too long for it.
    """

    id: Id
    turn: int = 0
    exchange: str
    stage: str
    action: str
    reason: str
    mode: str | None
    response: str
    latency_ms: float
    finish_reason: str = ""
    cuts: tuple[Cut, ...] = ()


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An input that was not accepted, or whose end was not heard: then ``exchange`` names it."""

    line: int
    id: Id = None
    exchange: str = ""
    code: str
    detail: str
