"""The result of an input that was fed: the end of its exchange, or why there is none."""

import msgspec

from deploy.feeding.lines import Id
from schemas.effectors.model_calls import Cut


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An exchange and its end; ``feed`` prints one such object on each line.

    ``id`` is the line's own, else its number. ``turn`` counts a conversation's inputs from 1; single inputs have none.
    ``latency_ms`` is measured by this process, from sending the input to receiving its end. ``finish_reason`` is set if
    a model's answer may be incomplete, ``cuts`` if its prompt was too long and was cut.
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
    """An input that was not accepted, or whose end did not come; in the second case ``exchange`` is set."""

    line: int
    id: Id = None
    exchange: str = ""
    code: str
    detail: str
