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

READS_AT_ONCE = 4
"""Partitions of a process that read their past at a time; the others wait for their turn.

A process has some three hundred partitions, and each reads by a consumer of its own. If all read at once on a busy
machine, as after a restart of the broker, each consumer gets so small a share that it seems silent: all of them are
given up and made again, and none reaches its end. A few at a time reach it. Together they also must not ask for more
than the server buffers for a slow client (``pull_protocol.MOST_WAITING``): it would disconnect the process, and all
would begin again.
"""

STANDBY_BACKLOG = 1_000
"""Most messages that a partition which stands by keeps until an event of its leader shows what they led to.

Some actors rarely write one. If more messages wait, the partition itself decides which led to no event, and folds
those.
"""


class Role(StrEnum):
    """What a shard (one partition in this process) does with its messages."""

    RECOVERING = "recovering"
    STANDBY = "standby"
    LEADING = "leading"


class Counters(msgspec.Struct):
    """What happened in a process, over all its shards.

    Attributes:
        decided: Messages decided, also those without an event as the result.
        emitted: Events built from decisions; those that a conflict discards are among them.
        failed: Decisions that failed, so that a failure is recorded.
        conflicts: Times that a shard lost its state to another writer, or to an append whose outcome is unknown.
        recoveries: Times that a shard folded its past from the log.
        takeovers: Times that a shard that stood by began to lead.
        snapshots: Snapshots saved.
        snapshots_used: Recoveries that began with a snapshot.
        over_budget: Decisions that took longer than their actor's latency budget.
    """

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

    Attributes:
        position: Returns the sequence up to which messages were dispatched.
        scheduler: Gives shards their turns to decide.
        offload: Runs a function in another thread, while the event loop continues.
        warming: Held by a shard while it builds in advance what its first decision would compute and cache, such as an
            index: one shard at a time does so.
        reply: Sends a copy of an answer to an inbox.
        source: The beginning of the source that envelopes name; the shard adds its actor and partition.
        build: The version of the code, for envelopes.
        snapshot_every: Messages of a partition between two snapshots; more for a large state.
        standby_backlog: Most messages that a partition which stands by keeps; see :data:`STANDBY_BACKLOG`.
        losses: The recorded losses of the log.
        gap_check: Records gaps of the log that nobody has recorded yet.
        shared_reader: Reads a range of the log that has gaps once for all shards.
        reading: Held by each shard that reads its past through filters of its own; see ``READS_AT_ONCE``.
        recovery_warnings: Limits how often a waiting recovery is logged.
    """

    log: Log
    snapshots: Snapshots
    committer: Committer
    clock: Clock
    tasks: asyncio.TaskGroup
    position: Callable[[], int]
    scheduler: FairScheduler
    offload: Callable[[Callable[[], None]], Awaitable[None]]
    warming: asyncio.Lock
    reply: Callable[[str, Group], Awaitable[None]]
    source: str
    build: str
    snapshot_every: int
    standby_backlog: int
    counters: Counters
    measurements: Measurements
    losses: Losses
    gap_check: GapCheck
    shared_reader: SharedReader
    reading: asyncio.Semaphore
    recovery_warnings: WarningBackoff
