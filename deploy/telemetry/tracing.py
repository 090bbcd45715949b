"""Follows the log and sends the spans of its exchanges to a collector, in a task that nothing else waits for.

Spans are reckoned from the log. So a collector that is away costs nothing and loses nothing: the reading pauses where
too many spans wait, and goes on when the collector is back. How far it took them is kept in a file; a process that
starts reads on from there, and reads again the inputs of exchanges that were open.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from deploy.telemetry.collector import Collector, Outcome, pause_s
from deploy.telemetry.process_metrics import TraceCounts
from deploy.telemetry.spans import Span, SpanBuilder
from events.errors import LogError
from events.log import Log, Tail
from events.loggers import get_logger
from schemas.subjects import EVERYTHING

MOST_WAITING = 4_096
"""Spans that wait for the collector; while there are so many, nothing more is read."""

PORTION = 512
"""Spans of a request, at most."""

GATHER_S = 1.0
"""Seconds for which spans are gathered into one request."""

_logger = get_logger("neuraxis.traces")


class Position(msgspec.Struct, frozen=True):
    """How far a collector took the spans of a log.

    ``sent`` is the sequence up to which, ``open`` a sequence before the inputs of all exchanges that were open there.
    """

    sent: int
    open: int


class Tracing:
    """Sends spans until cancelled.

    Args:
        log: What is followed, as it is stored: no words are read.
        collector: Takes the spans.
        file: Keeps the position.

        counts: What became of spans, for whoever asks.
        most_waiting, gather_s: See :data:`MOST_WAITING` and :data:`GATHER_S`.
        pause: Failures in a row, and seconds that the collector asked for -> how long to wait.

    Attributes:
        following: Whether it reads the log.
    """

    def __init__(
        self,
        log: Log,
        collector: Collector,
        file: Path,
        counts: TraceCounts,
        *,
        most_waiting: int = MOST_WAITING,
        gather_s: float = GATHER_S,
        pause: Callable[[int, float], float] = pause_s,
    ) -> None:
        self._log = log
        self._collector = collector
        self._file = file
        self._waiting: list[tuple[Position, Span]] = []
        self._read = Position(0, 0)
        self._changed = asyncio.Event()
        self._counts = counts
        self._most_waiting = most_waiting
        self._gather_s = gather_s
        self._pause = pause
        self.following = False

    async def run(self) -> None:
        """Follow the log until cancelled. Whatever goes wrong is logged, and begun anew after a while."""
        failed = 0
        while True:
            try:
                await self._follow()
            except Exception as wrong:
                failed += 1
                code = wrong.code if isinstance(wrong, LogError) else type(wrong).__name__
                _logger.warning("traces_begin_anew", error=code, exc_info=not isinstance(wrong, LogError))
            await asyncio.sleep(self._pause(failed, 0.0))

    async def _follow(self) -> None:
        last = (await self._log.info()).last_seq
        known = await asyncio.to_thread(_kept, self._file)
        # Without a position, or with that of another log, only what comes is traced.
        if known is None or known.sent > last:
            known = Position(last, last)
            await asyncio.to_thread(_keep, self._file, known)
        at = known
        self._read = at
        self._waiting.clear()
        tail = await self._log.tail([EVERYTHING], at.open)
        self.following = True
        try:
            reading = asyncio.create_task(self._read_on(tail, at.sent), name="spans reading")
            sending = asyncio.create_task(self._send_on(), name="spans sending")
            try:
                done, _ = await asyncio.wait((reading, sending), return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in (reading, sending):
                    task.cancel()
                await asyncio.wait((reading, sending))
        finally:
            await tail.close()

    async def _read_on(self, tail: Tail, sent: int) -> None:
        builder = SpanBuilder()
        while True:
            for stored in await tail.next():
                before = Position(stored.seq - 1, builder.begun_before(stored.seq) - 1)
                spans = builder.take(stored)
                if stored.seq > sent:
                    self._waiting += [(before, span) for span in spans]
                    self._read = Position(stored.seq, builder.begun_before(stored.seq + 1) - 1)
            self._counts.waiting = len(self._waiting)
            if self._waiting:
                self._changed.set()
            while len(self._waiting) >= self._most_waiting:
                self._changed.clear()
                await self._changed.wait()

    async def _send_on(self) -> None:
        failed = 0
        while True:
            if not self._waiting:
                self._changed.clear()
                await self._changed.wait()
                await asyncio.sleep(self._gather_s)
                continue
            portion = [span for _, span in self._waiting[:PORTION]]
            outcome, asked_s = await self._collector.send(portion)
            if outcome is Outcome.AWAY:
                failed += 1
                self._counts.failures += 1
                await asyncio.sleep(self._pause(failed, asked_s))
                continue
            failed = 0
            del self._waiting[: len(portion)]
            if outcome is Outcome.SENT:
                self._counts.sent += len(portion)
            else:
                self._counts.refused += len(portion)
            self._counts.waiting = len(self._waiting)
            self._changed.set()
            # From where the first span that waits is reckoned again; without one, everything read is sent.
            resume = self._waiting[0][0] if self._waiting else self._read
            await asyncio.to_thread(_keep, self._file, resume)


def _kept(file: Path) -> Position | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Position)
    except (OSError, msgspec.DecodeError):
        return None


def _keep(file: Path, position: Position) -> None:
    beside = file.with_name(f"{file.name}.new")
    try:
        beside.write_bytes(msgspec.json.encode(position))
        os.replace(beside, file)
    except OSError as wrong:  # a full disk: after a restart some spans are sent twice, under the same ids
        _logger.debug("trace_position_not_kept", path=str(file), detail=str(wrong))
