"""Following the log and sending the spans of its exchanges to a collector, in a task that nothing else waits for.

Spans are computed from the log. So while a collector is away, nothing is lost: reading pauses when too many spans wait,
and goes on when the collector is back. A file keeps how far the collector has taken them. A process that starts reads
on from there, and reads the inputs of exchanges that were open again.
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
"""While this many spans wait for the collector, nothing more is read."""

MOST_PER_REQUEST = 512
"""The most spans in a request."""

GATHER_S = 1.0
"""Seconds for which spans are collected before they are sent in one request."""

_logger = get_logger("neuraxis.traces")


class Position(msgspec.Struct, frozen=True):
    """How far a collector has taken the spans of a log.

    It has those up to the sequence ``sent``. ``open`` is a sequence before the input of every exchange that had not
    ended at ``sent``.
    """

    sent: int
    open: int


class Tracing:
    """Sends spans until cancelled.

    Args:
        log: The log to follow, as it is stored: sealed words are not decrypted.
        collector: Takes the spans.
        file: Keeps the position.
        counts: The counts of spans to update.
        most_waiting: See :data:`MOST_WAITING`.
        gather_s: See :data:`GATHER_S`.
        pause: Returns the seconds to wait, from failures in a row and the seconds that the collector asked for.

    Attributes:
        following: Whether it has begun to follow the log.
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
        """Follow the log until cancelled. Errors are logged; after a pause it begins again at the kept position."""
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
        position = await asyncio.to_thread(_load_position, self._file)
        # Without a position, or with one that is another log's, tracing begins at the end of the log.
        if position is None or position.sent > last:
            position = Position(last, last)
            await asyncio.to_thread(_save_position, self._file, position)
        self._read = position
        self._waiting.clear()
        tail = await self._log.tail([EVERYTHING], position.open)
        self.following = True
        try:
            reading = asyncio.create_task(self._read_spans(tail, position.sent), name="spans reading")
            sending = asyncio.create_task(self._send_spans(), name="spans sending")
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

    async def _read_spans(self, tail: Tail, sent: int) -> None:
        builder = SpanBuilder()
        while True:
            for stored in await tail.next():
                before = Position(stored.seq - 1, builder.oldest_open(stored.seq) - 1)
                spans = builder.feed(stored)
                if stored.seq > sent:
                    self._waiting += [(before, span) for span in spans]
                    self._read = Position(stored.seq, builder.oldest_open(stored.seq + 1) - 1)
            self._counts.waiting = len(self._waiting)
            if self._waiting:
                self._changed.set()
            while len(self._waiting) >= self._most_waiting:
                self._changed.clear()
                await self._changed.wait()

    async def _send_spans(self) -> None:
        failed = 0
        while True:
            if not self._waiting:
                self._changed.clear()
                await self._changed.wait()
                await asyncio.sleep(self._gather_s)
                continue
            request = [span for _, span in self._waiting[:MOST_PER_REQUEST]]
            sent = await self._collector.send(request)
            if sent.outcome is Outcome.AWAY:
                failed += 1
                self._counts.failures += 1
                await asyncio.sleep(self._pause(failed, sent.after_s))
                continue
            failed = 0
            del self._waiting[: len(request)]
            refused = sent.refused if sent.outcome is Outcome.SENT else len(request)
            self._counts.sent += len(request) - refused
            self._counts.refused += refused
            self._counts.waiting = len(self._waiting)
            self._changed.set()
            # The position from which the first waiting span can be computed again; if none waits, the last one read.
            position = self._waiting[0][0] if self._waiting else self._read
            await asyncio.to_thread(_save_position, self._file, position)


def _load_position(file: Path) -> Position | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Position)
    except (OSError, msgspec.DecodeError):
        return None


def _save_position(file: Path, position: Position) -> None:
    draft = file.with_name(f"{file.name}.new")
    try:
        draft.write_bytes(msgspec.json.encode(position))
        os.replace(draft, file)
    except OSError as wrong:  # a full disk: after a restart some spans are sent twice, under the same ids
        _logger.debug("trace_position_not_kept", path=str(file), detail=str(wrong))
