"""The projector's shell: follow the log, write the file, wait out a full disk, note the head."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from actors.ledger.anchoring import Anchoring, anchored, at_rest, observe, to_append
from actors.ledger.settings import LedgerSettings
from actors.runtime.records import rfc3339
from events.errors import Conflict, LogError, Misconfigured, Unavailable
from events.ledger import Head, LedgerWriter
from events.log import Log, Stored, Tail

EVERYTHING = "log.>"

T = TypeVar("T")

_logger = structlog.get_logger("neuraxis.ledger")


class Progress(msgspec.Struct, frozen=True):
    """How far a projector is, for health: last sequence written, rows, the highest sequence an anchor vouches for.

    ``trouble`` says why it is waiting, or what it could not anchor; empty when all is well.
    """

    position: int
    rows: int
    anchored_through: int
    trouble: str = ""


class LedgerProjector:
    """Follows a log and writes all of it into a ledger file. Several at once, even on one file, are harmless.

    Attributes:
        waits_for: Why nothing can be written now, as on a full disk; empty when it can.
    """

    def __init__(
        self,
        log: Log,
        path: Path,
        *,
        stream: str = "NEURAXIS",
        settings: LedgerSettings | None = None,
        source: str = "neuraxis/ledger",
        build: str = "",
        on_progress: Callable[[Progress], None] | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Follow ``log``, the stream of this name, into the file ``path``; ``on_progress`` hears of every step."""
        self._log = log
        self._path = path
        self._stream = stream
        self._settings = settings or LedgerSettings()
        self._source = source
        self._build = build
        self._on_progress = on_progress
        self._now_ns = now_ns
        self._head = Head()
        self._anchoring = Anchoring()
        self.waits_for = ""

    @property
    def position(self) -> int:
        """The sequence of the last row written."""
        return self._head.seq

    async def run(self, stop: asyncio.Event) -> None:
        """Write until ``stop`` is set; then note the head, if rows were added since the last time, and close.

        Failures that pass (full disk, locked file, broker away) are waited out. Nothing is ever skipped.

        Raises:
            LedgerDamaged: the file is not what was written.
            Misconfigured: the file belongs to another stream, or the log has lost what the file holds.
            Unavailable: the log cannot be read at the start.
        """
        writer = await self._patiently(self._open, stop)
        if writer is None:
            return
        try:
            await self._resume(writer)
            tail = await self._log.tail([EVERYTHING], self._head.seq)
            try:
                await self._follow(writer, tail, stop)
            finally:
                await tail.close()
            self._anchoring = at_rest(self._anchoring, self._head)
            await self._anchor()
        finally:
            await writer.close()

    async def _open(self) -> LedgerWriter:
        return await LedgerWriter.open(self._path, self._stream, self._log.partitions)

    async def _resume(self, writer: LedgerWriter) -> None:
        self._head = await writer.head()
        await self._check_same_log(await writer.last_message())
        own = await writer.last_own()
        anchoring = observe(Anchoring(), () if own is None else (own,))
        self._anchoring = msgspec.structs.replace(anchoring, foreign=await writer.last_foreign())
        _logger.info("ledger_open", path=str(self._path), position=self._head.seq, rows=self._head.rows)
        self._report()

    async def _check_same_log(self, last: Stored | None) -> None:
        """Refuse a log that does not hold the ledger's last row: it would be followed for ever, or mixed in."""
        if last is None:
            return
        info = await self._log.info()
        if last.seq <= info.last_seq:
            async for batch in self._log.history([EVERYTHING], last.seq - 1, last.seq):
                if _same(batch[0], last):
                    return
        raise Misconfigured(
            f"{self._path}: its last row, {last.seq}, is not in stream {self._stream}, which ends at {info.last_seq}: "
            "the stream was made anew or has lost its tail; move the file aside to start another, and keep it"
        )

    async def _follow(self, writer: LedgerWriter, tail: Tail, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait(), name="ledger stop")
        try:
            while True:
                reading = asyncio.create_task(tail.next(), name="ledger reading")
                try:
                    await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not reading.done():
                        reading.cancel()
                        await asyncio.wait((reading,))
                if reading.cancelled():
                    return
                batch = reading.result()
                for start in range(0, len(batch), self._settings.batch_rows):
                    if not await self._write(writer, batch[start : start + self._settings.batch_rows], stop):
                        return
        finally:
            stopping.cancel()

    async def _write(self, writer: LedgerWriter, batch: Sequence[Stored], stop: asyncio.Event) -> bool:
        written = await self._patiently(lambda: writer.append(batch, self._settings.anchor_every), stop)
        if written is None:
            return False
        self._head = written.head
        self._anchoring = observe(self._anchoring, batch, written.marks)
        self._report()
        await self._anchor()
        return True

    async def _anchor(self) -> None:
        due = self._anchoring.due
        if due is None:
            return
        append = to_append(self._anchoring, due, self._source, rfc3339(self._now_ns()), self._build)
        try:
            self._anchoring = anchored(self._anchoring, due, await self._log.append([append]))
        except Conflict:
            # Another projector's anchor is in the log, further on: reading it settles this one or makes it due again.
            _logger.debug("anchor_conflict", through_seq=due.seq)
        except LogError as error:
            _logger.warning("anchor_failed", through_seq=due.seq, code=error.code, error=str(error))
            self._report(str(error))

    async def _patiently(self, attempt: Callable[[], Awaitable[T]], stop: asyncio.Event) -> T | None:
        """Try until it succeeds, waiting out what passes; return None once ``stop`` is set."""
        wait = self._settings.retry_first_s
        while True:
            try:
                done = await attempt()
                self.waits_for = ""
                return done
            except Unavailable as error:
                self.waits_for = str(error)
                _logger.warning("ledger_waits", path=str(self._path), error=str(error), retry_in_s=wait)
                self._report(str(error))
            if await _set_within(stop, wait):
                return None
            wait = min(2 * wait, self._settings.retry_most_s)

    def _report(self, trouble: str = "") -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(self._head.seq, self._head.rows, self._anchoring.through, trouble))


def _same(message: Stored, row: Stored) -> bool:
    return (message.seq, message.time_ns, message.subject, message.data) == (
        row.seq,
        row.time_ns,
        row.subject,
        row.data,
    ) and dict(message.headers) == dict(row.headers)


async def _set_within(stop: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await stop.wait()
    except TimeoutError:
        return False
