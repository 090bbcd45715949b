"""The state of the whole set at a point of the log, and who serves which stage now."""

import msgspec

from events.ledger import Overview
from schemas.availability import Lack


class StageHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Who serves a stage now.

    Attributes:
        stage: Its name.
        needed: Whether every set needs it.
        served: How many of its partitions are served.
        partitions: How many it has.
        lack: Why the others are not served; None if all are.
        slow: Decisions that took longer than its time budget since its workers began.
        worst_ms: The longest of them lately, in milliseconds.
        waiting: Messages that wait to be decided, in all its workers together.
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
    """What is not in the log: ``head``, its last sequence at the broker, and who serves which stage; both as of now."""

    head: int
    stages: tuple[StageHealth, ...]


class SetOverview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the set at a point of the log; ``now`` is null unless that point is the end of the log."""

    recorded: Overview
    now: LiveHealth | None
