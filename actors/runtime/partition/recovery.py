"""Folds the past of one partition: its newest usable snapshot, then the log after that."""

from typing import Any

import msgspec

from actors.runtime.context import Context
from actors.runtime.gap_reader import MOST_SEQUENCES
from events.codec import decode
from events.loggers import get_logger
from events.partition_view import Checkpoint, Delivery, View
from events.routes import partition_filters
from events.snapshot import last_known_loss, matches_log, snapshot_key, unpack
from schemas.actor import Actor
from schemas.catalogue import prefixes_of

_logger = get_logger("neuraxis.shard")


class FoldedHistory(msgspec.Struct, frozen=True):
    """A partition's fold, the sequence after which the log was read, and that of the last loss known at the time."""

    view: View
    after: int
    losses: int


async def fold_history(actor: Actor[Any], partition: str, context: Context, upto: int) -> FoldedHistory:
    """Fold the messages of a partition up to the sequence ``upto``; raises LogError."""
    data = await context.snapshots.load(snapshot_key(actor, partition))
    losses = context.losses.last_seq
    checkpoint = await _usable_checkpoint(actor, partition, context, data) if data is not None else None
    view = View(actor, partition, context.log.partitions, checkpoint)
    after = view.position

    def receive(delivery: Delivery, own: bool) -> None:
        if own:
            view.apply_own(delivery)
        else:
            view.receive(delivery)

    own_prefixes = frozenset(prefixes_of(actor.name))

    async def through_filters(begin: int, end: int) -> None:
        async for batch in context.log.history(partition_filters(actor, partition), begin, end):
            for stored in batch:
                receive(decode(stored), stored.subject.split(".", 3)[3].split(".", 1)[0] in own_prefixes)

    reached = after
    for begin, end in context.losses.ranges_with_gaps(after, upto, MOST_SEQUENCES):
        await through_filters(reached, begin)
        if not context.losses.has_gap(begin + 1, end):
            await context.shared_reader.read(actor, partition, begin, end, receive)
        reached = end
    await through_filters(reached, upto)
    return FoldedHistory(view, after, losses)


async def _usable_checkpoint(actor: Actor[Any], partition: str, context: Context, data: bytes) -> Checkpoint | None:
    checkpoint = unpack(actor, partition, data)
    if checkpoint is None:
        return None
    reached = max(checkpoint.position, checkpoint.own_last)
    since = last_known_loss(data)
    if not context.losses.leaves_untouched(reached, since) or not await matches_log(context.log, checkpoint):
        # The log lost messages (a truncated file, a power cut before a sync): the snapshot may hold events that no
        # longer exist.
        _logger.error("snapshot_ahead_of_log", actor=actor.name, partition=partition, place=reached)
        return None
    context.counters.snapshots_used += 1
    return checkpoint
