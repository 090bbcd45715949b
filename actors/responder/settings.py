"""The responder's settings."""

from typing import Annotated, Literal

import msgspec

from schemas.event import Milliseconds


class ResponderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are written, and what is remembered for how long.

    Attributes:
        backend: Who writes the answers; ``composer`` needs no language model.
        session_lifetime_ms: A person's words are remembered no longer than this after they were answered,
            and at least half as long: dropped at the partition's first message past it.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
        quote_limit: Longest quote of a person's words in an answer or in memory, in characters.
    """

    backend: Literal["composer"] = "composer"
    session_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    ended_lifetime_ms: Milliseconds = 600 * 1000
    quote_limit: Annotated[int, msgspec.Meta(ge=20, le=2000)] = 200
