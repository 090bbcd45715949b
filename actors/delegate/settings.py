"""Settings of the effector that asks specialists (NATS micro services that answer questions)."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds


class DelegateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of asking specialists.

    Attributes:
        discovery_ms: Time in which a specialist must answer the search for it.
        longest_ms: Longest time for one question, whatever its request says.
        most_answer_bytes: Largest size of an answer's message; a larger one is refused.
        concurrency: Questions asked at the same time.
    """

    discovery_ms: Milliseconds = 1_000
    longest_ms: Milliseconds = 60_000
    most_answer_bytes: Annotated[int, msgspec.Meta(ge=256, le=512 * 1024)] = 16 * 1024
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=256)] = 8
