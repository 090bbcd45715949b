"""The messages that a log is recorded to have lost, for an effector, which does not read the log in order."""

from collections.abc import Callable, Sequence

from actors.runtime.partition.gap_check import GapCheck
from events.log import Log, Stored, Tail
from events.losses import LOSS_FILTER, Losses


class KnownLosses:
    """The recorded losses: read as they arrive, and read at once where a caller needs all of them.

    Args:
        losses: The losses known so far.
        gap_check: Records gaps that nobody has recorded yet.
        on_new_loss: Called when further losses become known.
    """

    def __init__(self, log: Log, losses: Losses, gap_check: GapCheck, on_new_loss: Callable[[], None]) -> None:
        self._log = log
        self._losses = losses
        self._gap_check = gap_check
        self._on_new_loss = on_new_loss

    async def follow(self, tail: Tail) -> None:
        """Take in losses from ``tail`` until cancelled, then close it."""
        try:
            while True:
                self._note(await tail.next())
        finally:
            await tail.close()

    async def catch_up(self) -> None:
        """Read every loss recorded so far; raises LogError.

        A delivered message may be the repeat of a lost one. The loss is always recorded before the repeat, so this
        finds it.
        """
        last = await self._log.last(LOSS_FILTER)
        if last > self._losses.last_seq:
            async for batch in self._log.history([LOSS_FILTER], self._losses.last_seq, last):
                self._note(batch)

    async def ensure_gaps_recorded(self, after: int, read_at: float) -> None:
        """Return once every gap after a sequence is recorded as a loss; raises LogError.

        To be called before a message is appended that may repeat one from such a gap. ``read_at`` is when the caller
        read the log after that sequence (the event loop's time).
        """
        await self._gap_check.ensure_gaps_recorded(after, (await self._log.info()).last_seq, read_at)

    def _note(self, messages: Sequence[Stored]) -> None:
        if [stored for stored in messages if self._losses.note(stored)]:
            self._on_new_loss()
