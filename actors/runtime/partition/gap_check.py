"""Whether a stretch of the log lacks messages: asked before anything is appended that may repeat what was lost.

A message that rotted away leaves no trace but the gap in the sequences. Its writer, which finds it missing, writes it
again; whoever has folded it already would take that for another message and answer it twice. So nothing that is decided
from what was read back is appended until the log is known to be whole from there on, or its gaps are recorded: the
record then stands before what is repeated, and whoever reads that has read the record first. At the record every
partition folds what is left, and knows the messages that it answered before they were lost.

A projector records gaps too, and sooner; but there may be none, or it may still be reading. So who finds a gap that
nobody has recorded records it, and waits for as long as that takes.
"""

import asyncio
from collections.abc import Callable

from actors.runtime.envelopes import rfc3339
from actors.runtime.shared_reader import MOST
from events.errors import Unavailable
from events.log import Log
from events.loggers import get_logger
from events.loss_recording import log_loss, loss_of_gap, record_losses
from events.losses import Losses, gaps
from schemas.subjects import EVERYTHING

RECORDED_WITHIN_S = 2.0
"""Seconds that a projector gets to record a gap; it may know what was lost. Then this process does."""

_READ_WITHIN_S = 10.0
"""Seconds in which what was recorded must come back to this process."""

_LOOK = 0.1
_logger = get_logger("neuraxis.wholeness")


class GapCheck:
    """What a process knows of the gaps in its log, from one unbroken reading that grows at both ends.

    Args:
        losses: What the process has read of recorded losses; whoever reads the log notes them there.
        source: Who records a gap.
        now_ns: The time, for the record.
    """

    def __init__(self, log: Log, losses: Losses, *, source: str, build: str, now_ns: Callable[[], int]) -> None:
        self._log = log
        self._losses = losses
        self._source = source
        self._build = build
        self._now_ns = now_ns
        self._asking = asyncio.Lock()
        self._after: int | None = None
        self._upto = 0
        self._begun = 0.0
        self._gaps: list[tuple[int, int]] = []
        self._earliest: int | None = None
        self._clock = asyncio.get_running_loop().time

    def owed(self, after: int) -> None:
        """Take note that a partition has read the log back from a sequence on."""
        self._earliest = after if self._earliest is None else min(self._earliest, after)

    async def settle(self, after: int, upto: int, read_at: float) -> None:
        """Return once every gap between two sequences is recorded, and this process has read the record.

        ``read_at`` is when the caller had read that stretch (the loop's time): what was read before may have rotted
        by then.

        Raises:
            LogError: the log cannot be read, or a gap cannot be recorded now.
        """
        async with self._asking:
            await self._read_to(after, upto, read_at)
            if not self._missing(after, upto):
                return
            # A gap is seldom alone. What others find missing is recorded with it, so that all begin anew once.
            after = min(after, max(self._earliest or 0, upto - MOST))
            await self._read_to(after, upto, read_at)
            if await self._recorded(after, upto, RECORDED_WITHIN_S):
                return
            losses = [loss_of_gap(first, last) for first, last in sorted(self._missing(after, upto))]
            await record_losses(self._log, losses, self._source, rfc3339(self._now_ns()), self._build)
            for loss in losses:
                log_loss(loss, None)
            if not await self._recorded(after, upto, _READ_WITHIN_S):
                raise Unavailable("a gap was recorded, and the record does not come back from the log")

    async def _recorded(self, after: int, upto: int, within: float) -> bool:
        over = self._clock() + within
        while self._missing(after, upto):
            if self._clock() >= over:
                return False
            await asyncio.sleep(_LOOK)
        return True

    def _missing(self, after: int, upto: int) -> list[tuple[int, int]]:
        within = [(first, last) for first, last in self._gaps if first <= upto and last > after]
        return [(first, last) for first, last in within if not self._losses.has_gap(first, last)]

    async def _read_to(self, after: int, upto: int, read_at: float) -> None:
        if self._after is None or self._begun < read_at:
            self._after = self._upto = after
            self._begun, self._gaps = self._clock(), []
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
            if not self._losses.has_gap(first, last):
                _logger.error("log_lacks_messages", first_seq=first, last_seq=last)
        return found
