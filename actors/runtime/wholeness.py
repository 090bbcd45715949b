"""Whether a stretch of the log lacks messages: asked before a partition appends what it decides anew after a recovery.

A message that rotted away leaves no trace but the gap in the sequences. Its writer, which finds it missing, decides it
again; whoever has folded it already would take that for another message and answer it twice. So nothing that is decided
from what was read back is appended until the log is known to be whole from there on, or its gaps are recorded: then
every partition has folded what is left, and knows the messages that it answered before they were lost.
"""

import asyncio

from events.log import Log
from events.loggers import get_logger
from events.losses import Losses, gaps

EVERYTHING = "log.>"

RECORDED_WITHIN_S = 2.0
"""Seconds that a projector gets to record a gap, so that every process knows; then this one goes on by itself."""

_LOOK = 0.1
_logger = get_logger("neuraxis.wholeness")


class Wholeness:
    """What a process knows of the gaps in its log, from one unbroken reading that grows at both ends."""

    def __init__(self, log: Log, losses: Losses) -> None:
        self._log = log
        self._losses = losses
        self._asking = asyncio.Lock()
        self._after: int | None = None
        self._upto = 0
        self._gaps: list[tuple[int, int]] = []

    async def unrecorded(self, after: int, upto: int) -> list[tuple[int, int]]:
        """Return the gaps between two sequences that are not recorded as losses, once each was given the time to be.

        Raises:
            LogError: the log cannot be read.
        """
        if self._after is None or after < self._after or upto > self._upto:
            async with self._asking:
                await self._read_to(after, upto)
        for _ in range(int(RECORDED_WITHIN_S / _LOOK)):
            if not self._missing(after, upto):
                return []
            await asyncio.sleep(_LOOK)
        return self._missing(after, upto)

    def _missing(self, after: int, upto: int) -> list[tuple[int, int]]:
        within = [(first, last) for first, last in self._gaps if first <= upto and last > after]
        return [(first, last) for first, last in within if not self._losses.has_gap(first, last)]

    async def _read_to(self, after: int, upto: int) -> None:
        if self._after is None:
            self._after = self._upto = after
        if after < self._after:
            self._gaps += await self._read(after, self._after)
            self._after = after
        if upto > self._upto:
            self._gaps += await self._read(self._upto, upto)
            self._upto = upto

    async def _read(self, after: int, upto: int) -> list[tuple[int, int]]:
        found, reached = [], after
        async for batch in self._log.history([EVERYTHING], after, upto):
            found += gaps(reached, batch)
            reached = batch[-1].seq
            await asyncio.sleep(0)
        if reached < upto:
            found.append((reached + 1, upto))
        for first, last in found:
            _logger.error("log_lacks_messages", first_seq=first, last_seq=last)
        return found
