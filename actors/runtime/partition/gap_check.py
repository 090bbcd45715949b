"""Checks a range of the log for missing messages, before anything is appended that may repeat a lost one.

A lost message leaves no trace except a gap in the sequences. Its writer finds it missing and writes it again. A
partition that had already folded the lost message would take the repeat for another message and answer twice. So
nothing decided from what was read back is appended until one of two things holds: the log is complete from there on, or
its gaps are recorded. The record of a gap is then in the log before the repeat, so every reader of the repeat has
read the record first. At the record every partition folds the log again, and so knows which messages it answered before
they were lost.

A projector records gaps too, and usually sooner. But perhaps none runs, or it has not reached the gap. So a process
that finds an unrecorded gap waits for a while, then records the gap itself.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from actors.runtime.gap_reader import MOST_SEQUENCES
from events.errors import Unavailable
from events.log import Log
from events.loggers import get_logger
from events.loss_recording import log_loss, loss_of_gap, record_losses
from events.losses import FindGaps, Losses, gaps_between
from schemas.intake.timestamps import rfc3339

RECORDED_WITHIN_S = 2.0
"""Seconds that a projector gets to record a gap, since it may know what was lost. Then this process records it."""

_READ_WITHIN_S = 10.0
"""Seconds within which the record must come back to this process from the log."""

_POLL_INTERVAL_S = 0.1
"""Seconds between two checks whether a record has arrived."""

_logger = get_logger("neuraxis.gaps")


class GapCheck:
    """What a process knows of the gaps in its log, from one continuous read that is extended at both ends.

    Args:
        losses: The recorded losses that the process has read; the reader of the log adds to them.
        source: The source named in the record of a gap.
        build: The version of the code, for the record.
        now_ns: Returns the time, for the record.
        find_gaps: Finds gaps for a login that may not read the whole log; None: they are found by reading it.
    """

    def __init__(
        self,
        log: Log,
        losses: Losses,
        *,
        source: str,
        build: str,
        now_ns: Callable[[], int],
        find_gaps: FindGaps | None = None,
    ) -> None:
        self._log = log
        self._losses = losses
        self._source = source
        self._build = build
        self._now_ns = now_ns
        self._find_gaps = find_gaps or partial(gaps_between, log)
        self._lock = asyncio.Lock()
        # The range that was read, when its read began (the event loop's time), and its gaps (first and last sequence).
        self._after: int | None = None
        self._upto = 0
        self._begun = 0.0
        self._gaps: list[tuple[int, int]] = []
        self._earliest: int | None = None  # the first sequence after which any partition has read the log back
        self._clock = asyncio.get_running_loop().time

    def note_read_back(self, after: int) -> None:
        """Note that a partition has read the log back from a sequence on, and needs proof that it is complete."""
        self._earliest = after if self._earliest is None else min(self._earliest, after)

    async def ensure_gaps_recorded(self, after: int, upto: int, read_at: float) -> None:
        """Return once every gap between two sequences is recorded, and this process has read the record.

        ``read_at`` is when the caller had read that range (the event loop's time). Reads made before that are not
        trusted: messages may have been lost since.

        Raises:
            LogError: the log cannot be read, or a gap cannot be recorded now.
        """
        async with self._lock:
            await self._read_to(after, upto, read_at)
            if not self._missing(after, upto):
                return
            # There is rarely just one gap. Those that other partitions will find are recorded now, too, so that all
            # partitions fold again only once.
            after = min(after, max(self._earliest or 0, upto - MOST_SEQUENCES))
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
        deadline = self._clock() + within
        while self._missing(after, upto):
            if self._clock() >= deadline:
                return False
            await asyncio.sleep(_POLL_INTERVAL_S)
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
        start = max(after, min(self._log.trimmed_through, upto))  # what was removed on purpose is no gap
        found = await self._find_gaps(start, upto)
        for first, last in found:
            if not self._losses.has_gap(first, last):
                _logger.error("log_lacks_messages", first_seq=first, last_seq=last)
        return found
