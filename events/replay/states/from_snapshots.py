"""Folding partitions up to a point from the nearest snapshots beside a ledger, and saving further ones there.

Snapshots are neither used nor saved where a fold has to begin with the first event, to be right or to report what it
meets: the log was repartitioned or has lost events, or rows are missing or damaged. None is saved of a partition that
received an event which this release cannot read; and none once an event with sealed words was read, since a snapshot
would hold them for good.
"""

from collections.abc import Callable, Sequence
from typing import Any

from events.partition_fold import View
from events.replay.replay import ActorPartition, Replay
from events.replay.run_replay import Point, fold_upto
from events.replay.sources import LedgerSource, Source
from events.replay.states.snapshot_folder import FoldStart, SnapshotFolder
from events.routes import partition_filters
from schemas.actor import Actor

MIN_SEQUENCES = 50_000
"""Length of a log, in sequences, from which on snapshots are used; a shorter one is folded as fast from its start."""

SPACING_OF_ONE, SPACING_OF_MANY = 20_000, 100_000
"""Sequences from one snapshot to the next: of a partition that is folded alone, and of many, whose states are large."""

ActorsWithPartition = Sequence[tuple[Actor[Any], str]]
"""Actors, each with the name of one of its partitions."""


async def fold_from_nearest(
    source: Source, replay: Replay, partitions: ActorsWithPartition, upto: Point, progress: Callable[[int], None]
) -> None:
    """Fold some partitions up to a point; the replay's views have their states.

    Args:
        source: Where events come from.
        replay: What folds them; nothing was fed to it yet.
        partitions: What it folds: actors, each with a partition.
        upto: How far to go.
        progress: Called with the sequence reached, now and then.

    Raises:
        Misconfigured, LogError: as ``events.replay.run_replay.run_replay`` does.
    """
    filters = partition_filters(*partitions[0], source.partitions) if len(partitions) == 1 else ()
    folder = await _folder_of(source) if isinstance(source, LedgerSource) else None
    if folder is None or not isinstance(source, LedgerSource):
        await fold_upto(source, replay, upto, filters=filters, progress=progress)
        return
    last = min(upto.seq, source.last_seq_upto(upto.time_ns))
    starts = {
        (actor.name, name): start
        for actor, name in partitions
        if (start := folder.nearest(actor, name, last)) is not None
    }
    for actor, name in partitions:
        if (start := starts.get((actor.name, name))) is not None:
            replay.begin_at(actor, name, start.checkpoint)
    after = min((start.after for start in starts.values()), default=0) if len(starts) == len(partitions) else 0
    spacing = SPACING_OF_ONE if len(partitions) == 1 else SPACING_OF_MANY
    keep = _SnapshotSaver(source, folder, replay, spacing, after, progress).on_batch
    await fold_upto(source, replay, upto, after=after, filters=filters, progress=keep)


async def snapshot_keeper(source: Source, replay: Replay, progress: Callable[[int], None]) -> Callable[[int], None]:
    """Return ``progress``, to be called with each sequence that a replay from the first event was fed up to.

    Where snapshots may be saved, it also saves some at intervals.
    """
    if replay.verifies or not isinstance(source, LedgerSource) or (folder := await _folder_of(source)) is None:
        return progress
    return _SnapshotSaver(source, folder, replay, SPACING_OF_MANY, 0, progress).on_batch


async def _folder_of(source: LedgerSource) -> SnapshotFolder | None:
    """Return the folder of snapshots of a ledger; None if states have to be folded from the first event."""
    if not source.keeps_snapshots or source.partitions.former:
        return None
    info = await source.info()
    whole = info.first_seq == 1 and info.messages == info.last_seq
    if info.last_seq < MIN_SEQUENCES or not whole or (await source.losses()).found:
        return None
    return SnapshotFolder(source.file, source.recorded_head, info.last_seq)


class _SnapshotSaver:
    """Saves snapshots of all views of a replay, every ``spacing`` sequences."""

    def __init__(
        self,
        source: LedgerSource,
        folder: SnapshotFolder,
        replay: Replay,
        spacing: int,
        after: int,
        progress: Callable[[int], None],
    ) -> None:
        self._source, self._folder, self._replay, self._spacing = source, folder, replay, spacing
        self._progress = progress
        self._next = (after // spacing + 1) * spacing

    def on_batch(self, reached: int) -> None:
        """Report progress, and save snapshots if it is time; everything up to ``reached`` was fed."""
        self._progress(reached)
        if reached < self._next:
            return
        self._next = (reached // self._spacing + 1) * self._spacing
        if self._source.met_sealed or self._source.damage.is_found:
            return
        for key, view in self._replay.views.items():
            self._save(key, view, reached)

    def _save(self, key: ActorPartition, view: View, reached: int) -> None:
        if view.open_decision or view.fold_errors or view.passed_over or view.lost_causes:
            return
        if self._replay.has_unread(key):  # whoever folds on from here would not know of it
            return
        # What waits is read again; it was not folded.
        after = view.waiting[0].stored.seq - 1 if view.waiting else reached
        settled = self._replay.is_settled(key)  # recorded events show what was decided on every message
        self._folder.save(view.actor, view.partition, FoldStart(view.checkpoint(), after), reached, settled=settled)
