"""The measured availability of a running set: which stages nobody serves, and which decide too slowly.

Data only. A worker's shell measures it (``actors.runtime.membership.availability``). It enters decisions as events
(``swarm.stage_lost``).
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from schemas.subjects import Partitions

Lack = Literal["no_owner", "recovering", "stalled"]
"""Why a partition is not served.

``no_owner``: no living worker hosts it. ``recovering``: a worker hosts it, but does not lead it yet. ``stalled``: a
worker leads it, but its waiting messages are not decided.
"""


class UnservedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of a stage that is not served.

    Attributes:
        stage: The actor, effector, or ``ledger``.
        partition: Which partition of it.
        lack: Why.
        for_ms: For how long, as far as the measuring worker knows.
        seen: Whether the measuring worker has ever seen it served.
    """

    stage: str
    partition: str
    lack: Lack
    for_ms: int
    seen: bool


class Overrun(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions of a stage that took longer than its budget: how many, and the longest, in milliseconds."""

    budget_ms: float
    count: int
    worst_ms: float


class Availability(msgspec.Struct, frozen=True, kw_only=True):
    """What a shell has measured of all stages.

    Attributes:
        partitions: How many partitions there are.
        absent: Every partition that is not served, sorted by stage.
        overran: Stage -> its decisions over budget in the window that has just closed; None while no window has closed.
        quiet_ms: Stage -> time since its last decision over budget.
        window_ms: Length of a window.
        watched_ms: How long the measuring worker has measured. A stage without an entry in ``quiet_ms`` has been quiet
            for that long.
    """

    partitions: Partitions
    absent: tuple[UnservedPartition, ...]
    overran: Mapping[str, Overrun] | None
    quiet_ms: Mapping[str, int]
    window_ms: int
    watched_ms: int
