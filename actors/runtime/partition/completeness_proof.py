"""The proof that a partition owes before it appends: the log lacks nothing of what it read back (``gap_check``)."""

import asyncio

from actors.runtime.partition.gap_check import GapCheck
from events.view import View


class CompletenessProof:
    """Which stretch of the log a partition has read back without proof that it is complete."""

    def __init__(self, wholeness: GapCheck) -> None:
        self._wholeness = wholeness
        self._stretch: tuple[int, int] | None = None
        self._read_at = 0.0

    def read_back(self, after: int, upto: int) -> None:
        """Note a stretch that was just read back. What is missing in it will be missing in every later read, too."""
        self._stretch = after, upto
        self._read_at = asyncio.get_running_loop().time()
        self._wholeness.owed(after)

    def begin(self, view: View, upto: int) -> None:
        """Note that the partition starts to lead, having read up to the sequence ``upto``."""
        if self._stretch is not None:
            self._stretch = self._stretch[0], upto
        elif view.waiting:
            self._stretch = view.position, upto
            self._read_at = asyncio.get_running_loop().time()

    def is_given(self, since: int | None = None) -> None:
        """Note that the proof is given for everything after a sequence; None: for everything."""
        if self._stretch is not None:
            after, _ = self._stretch
            # The stretch before stays unproved: a timer may have fired about a message there and its event may be lost.
            self._stretch = None if since is None or since <= after else (after, since)

    def is_owed(self, since: int | None = None) -> bool:
        """Whether a proof is owed before appending anything about the message at a sequence (None: any message)."""
        return self._stretch is not None and (since is None or since < self._stretch[1])

    async def settle(self, since: int | None) -> None:
        """Return once the stretch from a sequence on (None: from its start) is complete, or its gaps are recorded.

        Raises:
            LogError: that cannot be determined now.
        """
        if self._stretch is not None:
            after, upto = self._stretch
            await self._wholeness.settle(after if since is None else since, upto, self._read_at)
