"""A call of a language model, as the events that ask for one carry it."""

from typing import Annotated, Any, Literal

import msgspec

from schemas.event import Milliseconds, Personal

Purpose = Literal["act", "respond", "clarify", "acknowledge", "tiebreak", "reflect"]
"""What a model is asked for; each may have a model of its own."""

Tokens = Annotated[int, msgspec.Meta(ge=0)]
"""A count of a model's tokens; where no tokenizer is at hand, an estimate from characters."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: Personal


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is to be asked.

    Attributes:
        purpose: Picks the model.
        messages: The prompt, oldest first.
        most_tokens: Length of the answer at most.
        answer_schema: JSON Schema that the answer must satisfy; None: free text.
        timeout_ms: How long the answer may take, retries included.
        stream_to: NATS inbox for partial text while the model speaks; empty: none.
    """

    purpose: Purpose
    messages: tuple[Said, ...]
    most_tokens: Annotated[int, msgspec.Meta(ge=1)] = 512
    answer_schema: dict[str, Any] | None = None
    timeout_ms: Milliseconds = 30_000
    stream_to: str = ""
