"""What the process provides to each of its partitions, and the role of a partition there."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum

import msgspec

from actors.runtime.clock import Clock
from actors.runtime.committer import Committer, Group
from actors.runtime.fair_scheduler import FairScheduler
from actors.runtime.gap_reader import SharedReader
from actors.runtime.measurements import Measurements
from actors.runtime.partition.gap_check import GapCheck
from events.log import Log, Snapshots
from events.losses import Losses
from events.warning_backoff import WarningBackoff


class Role(StrEnum):
    """What a shard (one partition in this process) does with its messages."""

    RECOVERING = "recovering"
    STANDBY = "standby"
    LEADING = "leading"


class Counters(msgspec.Struct):
    """What happened in a process, over all its shards."""

    decided: int = 0
    emitted: int = 0
    failed: int = 0
    conflicts: int = 0
    recoveries: int = 0
    takeovers: int = 0
    snapshots: int = 0
    snapshots_used: int = 0
    over_budget: int = 0


class Context(msgspec.Struct, frozen=True):
    """What a shard needs from its process.

    ``position`` returns the sequence up to which messages were dispatched. ``reply`` sends a copy of an answer to an
    inbox. ``snapshot_every`` is a number of messages. ``losses`` are the recorded losses of the log. ``wholeness``
    records gaps that nobody has recorded yet. ``shared`` reads a stretch of the log that has gaps once for all shards.
    ``held_up`` limits how often a waiting recovery is logged. ``offload`` runs a function in another thread, while the
    event loop continues. ``measurements`` is what the process measures.
    """

    log: Log
    snapshots: Snapshots
    committer: Committer
    clock: Clock
    tasks: asyncio.TaskGroup
    position: Callable[[], int]
    turns: FairScheduler
    offload: Callable[[Callable[[], None]], Awaitable[None]]
    warming: asyncio.Lock
    reply: Callable[[str, Group], Awaitable[None]]
    source: str
    build: str
    snapshot_every: int
    counters: Counters
    measurements: Measurements
    losses: Losses
    wholeness: GapCheck
    shared: SharedReader
    held_up: WarningBackoff
