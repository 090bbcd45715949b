"""The losses of a log, known to a process whose messages come another way than in the log's order."""

from collections.abc import Callable, Sequence

from actors.runtime.partition.gap_check import GapCheck
from events.log import Log, Stored, Tail
from events.losses import LOSS_FILTER, Losses


class KnownLosses:
    """What is recorded of losses, read as it comes, and at once where that matters.

    Args:
        losses: Those known so far.
        wholeness: What records those that nobody has recorded.
        heard: Called when there are more.
    """

    def __init__(self, log: Log, losses: Losses, wholeness: GapCheck, on_new_loss: Callable[[], None]) -> None:
        self._log = log
        self._losses = losses
        self._wholeness = wholeness
        self._heard = on_new_loss

    async def follow(self, tail: Tail) -> None:
        """Take in what a reading of losses brings, until cancelled; the reading is closed then."""
        try:
            while True:
                self._note(await tail.next())
        finally:
            await tail.close()

    async def catch_up(self) -> None:
        """Learn of every loss that is recorded by now; raises LogError.

        What was delivered may repeat a lost message; then the loss is recorded before it.
        """
        last = await self._log.last(LOSS_FILTER)
        if last > self._losses.last_seq:
            async for batch in self._log.history([LOSS_FILTER], self._losses.last_seq, last):
                self._note(batch)

    async def settle(self, after: int, read_at: float) -> None:
        """Have every gap after a sequence recorded, before what rotted there is written again; raises LogError."""
        await self._wholeness.settle(after, (await self._log.info()).last_seq, read_at)

    def _note(self, found: Sequence[Stored]) -> None:
        if [stored for stored in found if self._losses.note(stored)]:
            self._heard()
