"""Folds the past of one partition: its newest usable checkpoint, then the log after that.

The checkpoint is the one kept in memory if the partition was led here before, else its snapshot. A leader that was
paused, or that hands over, may have read further than its successor. Then the first events of the successor belong
before the checkpoint's position. Such a checkpoint is passed over, since no fold from it has the order of the log.
"""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from actors.runtime.context import Context
from actors.runtime.gap_reader import MOST_SEQUENCES
from events.decoding import Unreadable, decode
from events.errors import Misconfigured
from events.loggers import get_logger
from events.partition_fold import Checkpoint, Delivery, View
from events.routes import lineage, partition_filters
from events.snapshot import last_known_loss, matches_log, snapshot_key, unpack
from schemas.actor import Actor
from schemas.catalogue import prefixes_of
from schemas.errors import UnknownTopic, UnknownVersion
from schemas.subjects import Partitions

_logger = get_logger("neuraxis.shard")


_NEWER = frozenset({UnknownTopic.code, UnknownVersion.code})
"""Error codes of messages that a newer release writes as a matter of course: a new event, or a new meaning of one."""


def is_of_newer_release(unreadable: Unreadable) -> bool:
    """Return whether a message cannot be read here since a newer release wrote it."""
    return unreadable.code in _NEWER


class Kept(msgspec.Struct, frozen=True):
    """A checkpoint that a partition keeps in memory: its state before the first event that is not acknowledged.

    Attributes:
        last_loss: The sequence of the last record of a loss that was known when the fold to this state began.
        unproved_after: The log is not proved complete from this sequence on; None: it is, up to the checkpoint.
    """

    checkpoint: Checkpoint
    last_loss: int
    unproved_after: int | None


class FoldedHistory(msgspec.Struct, frozen=True):
    """What folding a partition's past led to.

    Attributes:
        after: The log is not proved complete from this sequence on.
        last_loss: The sequence of the last record of a loss that was known when the fold began.
        snapshot_is_bad: Whether the partition's snapshot had to be passed over, so that it needs a new one.
    """

    view: View
    after: int
    last_loss: int
    snapshot_is_bad: bool = False


async def fold_history(
    actor: Actor[Any], partition: str, context: Context, upto: int, kept: Kept | None = None
) -> FoldedHistory:
    """Fold the messages of a partition up to the sequence ``upto``; raises LogError."""
    partitions = context.log.partitions
    snapshot_is_bad = False
    async for checkpoint, after in _usable_checkpoints(actor, partition, context, kept):
        last_loss = context.losses.last_seq
        view = View(actor, partition, partitions, checkpoint)
        await _fold(view, context, partitions, checkpoint.position, upto)
        if not view.misplaced:
            return FoldedHistory(view, after, last_loss)
        snapshot_is_bad = kept is None or checkpoint is not kept.checkpoint
        _logger.warning(
            "checkpoint_passed_over",
            actor=actor.name,
            partition=partition,
            place=checkpoint.position,
            reason="another leader's event belongs before it",
        )
    last_loss = context.losses.last_seq
    if trimmed := context.log.trimmed_through:
        raise Misconfigured(
            f"the log begins behind sequence {trimmed}, and {actor.name} partition {partition} has no snapshot that "
            "this release can use: stop the workers, and run `neuraxis log trim --snapshots` where the ledger is"
        )
    # From the start: as the partitions that this one was divided from, one after another, and then as itself. Each
    # generation is the partition counts that were in force through a sequence.
    reached, names = 0, lineage(actor, partition, partitions)
    generations = partitions.generations[-len(names) :]
    view = View(actor, names[0], generations[0][1])
    for name, (through, counts) in zip(names, generations, strict=True):
        if name != view.partition:
            view = view.divided(name, counts)
        await _fold(view, context, counts, reached, min(through, upto))
        reached = through
    return FoldedHistory(view, 0, last_loss, snapshot_is_bad)


async def _fold(view: View, context: Context, partitions: Partitions, after: int, upto: int) -> None:
    """Fold into a view what its partition consumed and wrote between two sequences; raises LogError."""

    def receive(delivery: Delivery, own: bool) -> None:
        if own and isinstance(delivery, Unreadable) and is_of_newer_release(delivery):
            view.pass_over(delivery)  # workers of that release are to lead it
        elif own:
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
        if not context.losses.has_gap(begin + 1, end):  # a gap alone holds nothing to read
            await context.shared_reader.read(actor, view.partition, begin, end, receive, partitions)
        reached = end
    await through_filters(reached, upto)


async def _usable_checkpoints(
    actor: Actor[Any], partition: str, context: Context, kept: Kept | None
) -> AsyncIterator[tuple[Checkpoint, int]]:
    """Yield what to begin with, the best first, each with the sequence from which the log is not proved complete."""
    # The message at its position must be in the log still: then what follows has not been trimmed meanwhile either.
    if kept is not None and kept.checkpoint.position > context.log.trimmed_through:
        usable = await _usable(actor, partition, context, kept.checkpoint, kept.last_loss)
        if usable is not None:
            yield usable, usable.position if kept.unproved_after is None else kept.unproved_after
    data = await context.snapshots.load(snapshot_key(actor, partition), context.log.trimmed_through)
    checkpoint = None if data is None else unpack(actor, partition, data)
    if data is not None and checkpoint is not None:
        usable = await _usable(actor, partition, context, checkpoint, last_known_loss(data))
        if usable is not None:
            context.counters.snapshots_used += 1
            yield usable, usable.position


async def _usable(
    actor: Actor[Any], partition: str, context: Context, checkpoint: Checkpoint, since: int
) -> Checkpoint | None:
    """Return a checkpoint if the log still holds what was folded into it, else None.

    Its fence is changed where the event that it names was trimmed. ``since`` is the last recorded loss that it knows.
    """
    reached = max(checkpoint.position, checkpoint.own_last)
    if not context.losses.leaves_untouched(reached, since) or not await matches_log(context.log, checkpoint):
        # The log lost messages (a truncated file, a power cut before a sync): the snapshot may hold events that no
        # longer exist.
        _logger.error("snapshot_ahead_of_log", actor=actor.name, partition=partition, place=reached)
        return None
    fenced = checkpoint.own_last if checkpoint.fenced is None else checkpoint.fenced
    if 0 < fenced <= context.log.trimmed_through:  # the last fenced event was removed: the broker knows none
        return msgspec.structs.replace(checkpoint, fenced=0)
    return checkpoint
