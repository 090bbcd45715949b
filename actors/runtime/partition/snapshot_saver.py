"""Saves the snapshots of one partition when they are due, while the partition goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from actors.runtime.context import Context
from events.errors import Conflict, LogError
from events.loggers import get_logger
from events.partition_fold import Checkpoint, View
from events.snapshot import pack, snapshot_key
from schemas.actor import Actor
from schemas.persistent import state_pieces

BYTES_PER_MESSAGE = 2_048
"""After a snapshot of more than ``snapshot_every`` times this many bytes, more messages pass before the next one.

Reading back this many bytes takes about as long as folding one message more, so a takeover takes at most twice as long.
Saving a state of 10 MB every thousand messages would keep the disk busy.
"""

_REST = 9
"""Rest after each piece of a large state, for other tasks, as a multiple of the time that encoding the piece took.

Encoded without a rest, ten megabytes delay every decision for seconds where the processor has little to spare.
"""

_PACKED_ASIDE = 1_000_000
"""From this size in bytes on, an encoded state is packed, with its checksum, in another thread."""

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
        self._due_after = context.snapshot_every  # messages until the next snapshot is due
        self.last_loss = 0
        self._renew_after = 0  # the snapshot is replaced once this sequence is folded; 0: it need not be
        self._renewing = 0  # the sequence of the latest replacement that has become due
        self._renewed = 0  # the sequence of the latest replacement that was saved
        self._saving: asyncio.Task[None] | None = None
        self._closing = False

    def begin(self, last_loss: int) -> None:
        """Note that the partition was read back. ``last_loss`` is the sequence of the last known record of a loss.

        Messages that were counted before still count: the stored snapshot lacks them, and a process that loses the
        connection to the broker again and again would never save another.
        """
        self.last_loss = last_loss

    def count(self) -> None:
        """Note that one more message was folded."""
        self._folded += 1

    def drain_if_due(self) -> None:
        """Make a snapshot due if enough messages were folded since the last one."""
        if self._folded >= self._due_after:
            self.draining = True

    def renew(self, seq: int) -> None:
        """Replace the stored snapshot as soon as everything up to ``seq`` is folded.

        The stored one is damaged, or of no use to a later leader, or may hold text that was to be forgotten by then.
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
            saving = self._save_in_background(view.checkpoint(), self.last_loss, self._renewing, done)
            self._saving = self._context.tasks.create_task(saving)

    async def close(self, view: View | None) -> None:
        """Wait for the snapshot that is being saved; then take a last one of ``view``, where one is needed."""
        self._closing = True
        if self._saving is not None:
            await asyncio.gather(self._saving, return_exceptions=True)
        if view is not None and (self._folded or self._renew_after):
            await self._save(view.checkpoint(), self.last_loss, self._renewing)

    async def _save_in_background(
        self, checkpoint: Checkpoint, last_loss: int, renewing: int, done: Callable[[], None]
    ) -> None:
        try:
            await self._save(checkpoint, last_loss, renewing)
        finally:
            self._saving = None
            if self._renew_after:
                done()

    async def _pieces(self, state: Any, *, hurried: bool) -> AsyncIterator[bytes]:
        """Encode a state piece by piece, with a rest behind each, unless somebody waits for the snapshot."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for piece in state_pieces(state):
            yield piece
            hurried = hurried or self._closing or bool(self._renew_after)
            await asyncio.sleep(0 if hurried else _REST * (loop.time() - began))
            began = loop.time()

    async def _save(self, checkpoint: Checkpoint, last_loss: int, renewing: int) -> None:
        """Save a checkpoint; everything up to its position, and up to ``renewing``, is in it."""
        key = snapshot_key(self._actor, self._partition)
        try:
            # Asked before the state is encoded, which may take long. If another process leads by then, what it saves is
            # newer and must not be replaced: that could bring back words that were forgotten.
            replaces = await self._context.snapshots.revision(key)
            packed = await self._packed(checkpoint, last_loss, hurried=renewing > self._renewed)
            upto = max(checkpoint.position, renewing)
            await self._context.snapshots.save(key, packed, upto, replaces)
            self._context.counters.snapshots += 1
            self._renewed = renewing
            self.unsaved = False
            self._due_after = max(self._context.snapshot_every, len(packed) // BYTES_PER_MESSAGE)
        except LogError as error:
            self._due_after = self._context.snapshot_every  # soon, however large: the stored one gets older
            self.unsaved = not isinstance(error, Conflict)  # then another process has saved a newer one
            log = _logger.warning if self.unsaved else _logger.info
            log("snapshot_not_saved", actor=self._actor.name, partition=self._partition, error=error.code)

    async def _packed(self, checkpoint: Checkpoint, last_loss: int, *, hurried: bool) -> bytes:
        state = b"".join([piece async for piece in self._pieces(checkpoint.state, hurried=hurried)])
        arguments = self._actor, self._partition, checkpoint, last_loss, state
        return pack(*arguments) if len(state) < _PACKED_ASIDE else await asyncio.to_thread(pack, *arguments)
