"""The state of the whole set at a point of the log, and who serves which stage now."""

import msgspec

from events.ledger import Overview
from schemas.availability import Lack


class StageHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Who serves a stage, now.

    ``served`` of its ``partitions`` are; ``lack`` says why the others are not, None where there are none. ``needed``
    says whether the set is sound without it. ``slow`` decisions took longer than its budget since its workers began,
    of late up to ``worst_ms``. ``waiting`` messages wait to be decided, in all its workers together: its lag.
    """

    stage: str
    needed: bool
    served: int
    partitions: int
    lack: Lack | None = None
    slow: int = 0
    worst_ms: float = 0.0
    waiting: int = 0


class LiveHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What no log tells: its own ``head`` as the broker says it, and who serves which stage; both of this moment."""

    head: int
    stages: tuple[StageHealth, ...]


class SetOverview(msgspec.Struct, frozen=True, kw_only=True):
    """How the set was at a point of the log; ``now`` is null where the point has passed."""

    recorded: Overview
    now: LiveHealth | None
