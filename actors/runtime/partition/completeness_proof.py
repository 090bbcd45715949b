"""The proof that one partition owes before it appends: the log lacks nothing of what it read back (``wholeness``)."""

import asyncio

from actors.runtime.partition.gap_check import GapCheck
from events.view import View


class CompletenessProof:
    """Which stretch of the log a partition has read back and nobody has proved whole."""

    def __init__(self, wholeness: GapCheck) -> None:
        self._wholeness = wholeness
        self._stretch: tuple[int, int] | None = None
        self._read_at = 0.0

    def read_back(self, after: int, upto: int) -> None:
        """Note a stretch that has just been read back: what it lacks, every later reading lacks too."""
        self._stretch = after, upto
        self._read_at = asyncio.get_running_loop().time()
        self._wholeness.owed(after)

    def begin(self, view: View, upto: int) -> None:
        """Note that the partition begins to lead, having read up to a sequence."""
        if self._stretch is not None:
            self._stretch = self._stretch[0], upto
        elif view.waiting:
            self._stretch = view.position, upto
            self._read_at = asyncio.get_running_loop().time()

    def is_given(self, since: int | None = None) -> None:
        """Note that nothing is owed any more about what is behind a sequence; None: about anything."""
        if self._stretch is not None:
            after, _ = self._stretch
            # What is before that stays owed: a timer may have fired about it, and the event be lost.
            self._stretch = None if since is None or since <= after else (after, since)

    def is_owed(self, since: int | None = None) -> bool:
        """Whether a proof is owed before anything about the message at a sequence is appended; None: about any."""
        return self._stretch is not None and (since is None or since < self._stretch[1])

    async def settle(self, since: int | None) -> None:
        """Return once the stretch is whole from a sequence on (None: its begin), or its gaps are recorded.

        Raises:
            LogError: that cannot be known now.
        """
        if self._stretch is not None:
            after, upto = self._stretch
            await self._wholeness.settle(after if since is None else since, upto, self._read_at)
