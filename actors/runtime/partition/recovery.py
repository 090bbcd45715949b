"""Folds the past of one partition: its newest usable snapshot, then the log after that."""

from typing import Any

import msgspec

from actors.runtime.context import Context
from actors.runtime.gap_reader import MOST_SEQUENCES
from events.decoding import decode
from events.errors import Misconfigured
from events.loggers import get_logger
from events.partition_view import Checkpoint, Delivery, View
from events.routes import lineage, partition_filters
from events.snapshot import last_known_loss, matches_log, snapshot_key, unpack
from schemas.actor import Actor
from schemas.catalogue import prefixes_of
from schemas.subjects import Partitions

_logger = get_logger("neuraxis.shard")


class FoldedHistory(msgspec.Struct, frozen=True):
    """A partition's fold, the sequence after which the log was read, and that of the last loss known at the time."""

    view: View
    after: int
    last_loss: int


async def fold_history(actor: Actor[Any], partition: str, context: Context, upto: int) -> FoldedHistory:
    """Fold the messages of a partition up to the sequence ``upto``; raises LogError."""
    data = await context.snapshots.load(snapshot_key(actor, partition), context.log.trimmed_through)
    last_loss = context.losses.last_seq
    checkpoint = await _usable_checkpoint(actor, partition, context, data) if data is not None else None
    partitions = context.log.partitions
    if checkpoint is not None:
        view = View(actor, partition, partitions, checkpoint)
        after = view.position
        await _fold(view, context, partitions, after, upto)
        return FoldedHistory(view, after, last_loss)
    if trimmed := context.log.trimmed_through:
        raise Misconfigured(
            f"the log begins behind sequence {trimmed}, and {actor.name} partition {partition} has no snapshot that "
            "this release can use: stop the workers, and run `neuraxis log trim --snapshots` where the ledger is"
        )
    # From the start: as the partitions that this one was divided from, one after another, and then as itself.
    reached, names = 0, lineage(actor, partition, partitions)
    generations = partitions.generations[-len(names) :]
    view = View(actor, names[0], generations[0][1])
    for name, (through, counts) in zip(names, generations, strict=True):
        if name != view.partition:
            view = view.divided(name, counts)
        await _fold(view, context, counts, reached, min(through, upto))
        reached = through
    return FoldedHistory(view, 0, last_loss)


async def _fold(view: View, context: Context, partitions: Partitions, after: int, upto: int) -> None:
    """Fold into a view what its partition consumed and wrote between two sequences; raises LogError."""

    def receive(delivery: Delivery, own: bool) -> None:
        if own:
            view.apply_own(delivery)
        else:
            view.receive(delivery)

    actor, own_prefixes = view.actor, frozenset(prefixes_of(view.actor.name))

    async def through_filters(begin: int, end: int) -> None:
        filters = partition_filters(actor, view.partition, partitions)
        async with context.reading:
            async for batch in context.log.history(filters, begin, end):
                for stored in batch:
                    receive(decode(stored), stored.subject.split(".", 3)[3].split(".", 1)[0] in own_prefixes)

    reached = after
    for begin, end in context.losses.ranges_with_gaps(after, upto, MOST_SEQUENCES):
        await through_filters(reached, begin)
        if not context.losses.has_gap(begin + 1, end):
            await context.shared_reader.read(actor, view.partition, begin, end, receive, partitions)
        reached = end
    await through_filters(reached, upto)


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
    fenced = checkpoint.own_last if checkpoint.fenced is None else checkpoint.fenced
    if 0 < fenced <= context.log.trimmed_through:  # the fence counts no event any more
        return msgspec.structs.replace(checkpoint, fenced=0)
    return checkpoint
