"""Settings of reflex."""

from typing import Annotated, Literal

import msgspec

from actors.reflex.library import Profile

Role = Literal["system", "user", "tool", "document"]


class ReflexSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What reflex decides with.

    Attributes:
        profile: The pattern library. ``seed``: 16 signatures in four sets (source R 2.1).
        scanned_layers: The roles whose layers are scanned besides the input's text. Without ``system``: an operator's
            prompt that quotes attacks in order to forbid them would block every exchange.
        max_matches: Matches an event lists at most, 1 to 1,000: what bounds it when a long text repeats them.
        latency_budget_ms: What the shell holds measured times against (source R 7); no decision depends on it.
    """

    profile: Profile = "seed"
    scanned_layers: tuple[Role, ...] = ("user", "tool", "document")
    max_matches: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 32
    latency_budget_ms: Annotated[float, msgspec.Meta(gt=0.0)] = 10.0
