"""The proof that a partition needs before it appends: no message is missing in what it has read back from the log.

``gap_check`` says why, and gives the proof.
"""

import asyncio

from actors.runtime.partition.gap_check import GapCheck
from events.partition_fold import View


class CompletenessProof:
    """The range of the log that a partition has read back without proof that it is complete."""

    def __init__(self, gap_check: GapCheck) -> None:
        self._gap_check = gap_check
        self._range: tuple[int, int] | None = None
        self._read_at = 0.0

    @property
    def unproved_after(self) -> int | None:
        """The sequence from which the log is not proved complete; None: everything read back is proved."""
        return None if self._range is None else self._range[0]

    def read_back(self, after: int, upto: int) -> None:
        """Note a range that was just read back. What is missing in it will be missing in every later read, too."""
        self._range = after, upto
        self._read_at = asyncio.get_running_loop().time()
        self._gap_check.note_read_back(after)

    def begin(self, view: View, upto: int) -> None:
        """Note that the partition starts to lead, having read up to the sequence ``upto``."""
        if self._range is not None:
            self._range = self._range[0], upto
        elif view.waiting:
            self._range = view.position, upto
            self._read_at = asyncio.get_running_loop().time()

    def note_proved(self, since: int | None = None) -> None:
        """Note that everything after a sequence is proved complete; None: everything."""
        if self._range is not None:
            after, _ = self._range
            # The range before stays unproved: the event of a timer that fired for a message there may be lost.
            self._range = None if since is None or since <= after else (after, since)

    def is_needed(self, since: int | None = None) -> bool:
        """Return whether a proof is needed before appending a decision about the message at a sequence.

        None: about any message.
        """
        return self._range is not None and (since is None or since < self._range[1])

    async def ensure_gaps_recorded(self, since: int | None) -> None:
        """Return once the range from a sequence on (None: from its start) is complete, or its gaps are recorded.

        Raises:
            LogError: that cannot be determined now.
        """
        if self._range is not None:
            after, upto = self._range
            await self._gap_check.ensure_gaps_recorded(after if since is None else since, upto, self._read_at)
