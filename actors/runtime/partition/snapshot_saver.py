"""Saves the snapshots of one partition when they are due, while the partition goes on."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from actors.runtime.context import Context
from events.errors import LogError
from events.loggers import get_logger
from events.partition_fold import Checkpoint, View
from events.snapshot import packing, snapshot_key
from schemas.actor import Actor

BYTES_A_MESSAGE = 4096
"""A snapshot of so many bytes is saved for each message that was folded since the last one, at most."""

_logger = get_logger("neuraxis.shard")


class SnapshotSaver:
    """Knows when a snapshot is due, and whether the latest was saved.

    Attributes:
        draining: Whether a snapshot is due: nothing is decided until every earlier decision is acknowledged.
        unsaved: Whether the latest snapshot could not be saved.
        last_loss: The sequence of the last record of a loss that was known when the partition was read back.
    """

    def __init__(self, actor: Actor[Any], partition: str, context: Context) -> None:
        self.draining = False
        self.unsaved = False
        self._actor = actor
        self._partition = partition
        self._context = context
        self._folded = 0  # messages since the last snapshot
        self.last_loss = 0
        self._renew_after = 0  # the snapshot is replaced once this sequence is folded; 0: it need not be
        self._renewing = 0  # the same, of the latest replacement that has become due
        self._saving: asyncio.Task[None] | None = None
        self._last_bytes = 0  # of the latest snapshot

    def begin(self, last_loss: int) -> None:
        """Note that the partition was read back. ``last_loss`` is the sequence of the last known record of a loss."""
        self._folded, self.last_loss = 0, last_loss

    def count(self) -> None:
        """Note that one more message was folded."""
        self._folded += 1

    def drain_if_due(self) -> None:
        """Make a snapshot due if enough messages were folded since the last one: the more, the larger that was.

        So saving costs each message the same, however large the state grows.
        """
        if self._folded >= max(self._context.snapshot_every, self._last_bytes // BYTES_A_MESSAGE):
            self.draining = True

    def renew(self, seq: int) -> None:
        """Replace the stored snapshot as soon as everything up to ``seq`` is folded.

        It is damaged, or of no use to a later leader, or may hold text that was to be forgotten by then.
        """
        self._renew_after = seq

    def check_renewal(self, view: View) -> None:
        """Make a snapshot due if the stored one is to be replaced and the view has folded what the new one needs."""
        incomplete = bool(view.waiting) and view.waiting[0].stored.seq <= self._renew_after
        if self._renew_after and not incomplete and self._saving is None:
            self._renew_after, self._renewing = 0, self._renew_after
            self.draining = True

    def take(self, view: View, done: Callable[[], None]) -> None:
        """Take a snapshot now; once it is saved, or saving failed, ``done`` is called if another one is due by then."""
        self.draining = False
        self._folded = 0
        if self._saving is None:
            checkpoint = view.checkpoint()
            steps, upto = self._packing(checkpoint), self._upto(checkpoint)
            self._saving = self._context.tasks.create_task(self._save_in_background(steps, upto, done))

    async def close(self, view: View | None) -> None:
        """Wait for the snapshot that is being saved; then take a last one of ``view``, where one is needed."""
        if self._saving is not None:
            await asyncio.gather(self._saving, return_exceptions=True)
        if view is not None and (self._folded or self._renew_after):
            checkpoint = view.checkpoint()
            await self._save(await _done_in_turns(self._packing(checkpoint)), self._upto(checkpoint))

    def _packing(self, checkpoint: Checkpoint) -> Generator[None, None, bytes]:
        return packing(self._actor, self._partition, checkpoint, self.last_loss)

    def _upto(self, checkpoint: Checkpoint) -> int:
        """Return the sequence up to which a snapshot includes everything."""
        return max(checkpoint.position, self._renewing)

    async def _save_in_background(
        self, steps: Generator[None, None, bytes], upto: int, done: Callable[[], None]
    ) -> None:
        try:
            await self._save(await _done_in_turns(steps), upto)
        finally:
            self._saving = None
            if self._renew_after:
                done()

    async def _save(self, packed: bytes, upto: int) -> None:
        self._last_bytes = len(packed)
        try:
            await self._context.snapshots.save(snapshot_key(self._actor, self._partition), packed, upto)
            self._context.counters.snapshots += 1
            self.unsaved = False
        except LogError as error:
            self.unsaved = True
            _logger.warning("snapshot_not_saved", actor=self._actor.name, partition=self._partition, error=error.code)


async def _done_in_turns(steps: Generator[None, None, bytes]) -> bytes:
    """Return the result of a generator; other tasks run between its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: bytes = done.value
            return result
        await asyncio.sleep(0)
