"""The ledger's projector: follows the log, writes the file, waits while the disk is full, anchors the head.

To anchor the head is to write the last hash of the file's hash chain into the log.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from actors.ledger.anchoring import AnchorState, anchor_append, due_before_stop, with_anchor, with_batch
from actors.ledger.loss_detection import find_gaps, find_loss, records_lost_with
from actors.ledger.settings import LedgerSettings
from events.errors import Conflict, LedgerDamaged, LogCut, LogError, Unavailable
from events.ledger import (
    Head,
    LedgerArchive,
    LedgerWriter,
    belongs_to_other_program,
    delete_draft,
    path_aside,
    put_aside,
    put_in_place,
)
from events.log import Log, Stored, Tail
from events.loggers import get_logger
from events.loss_recording import log_loss, loss_of_gap, record_losses
from events.losses import Losses, gaps
from events.unroutable import MOST_LISTED, why_unroutable
from events.warning_backoff import WarningBackoff
from schemas.intake.timestamps import rfc3339
from schemas.subjects import EVERYTHING
from schemas.vocabulary.ledger import LossRecorded

T = TypeVar("T")

RECENT = 20_000
"""Latest sequences of the log that are searched for gaps at once, without pauses."""

MOST_DAMAGED = 3
"""Damaged files in a row that are set aside. After that the disk is taken to be at fault, and the writer stops."""

PAUSE_PER_SECOND = 4.0
"""Seconds of pause for each second of searching the sequences before the latest ``RECENT``."""

DRAIN_S = 2.0
"""Seconds that a projector which is told to stop may take to write what the log holds by then."""

FILE_CHECK_S = 1.0
"""Seconds between two checks that the file is still where it was opened."""

_DRAIN_POLL_S = 0.005
_GONE = "it was moved, deleted or replaced: a new one is written where the stream has all that it held"
_logger = get_logger("neuraxis.ledger")


class Progress(msgspec.Struct, frozen=True):
    """How far a projector is, for health checks: last sequence written, and rows.

    ``trouble`` says why it waits (a full disk, say), or what it could not anchor; empty if all is well.
    """

    position: int = 0
    rows: int = 0
    trouble: str = ""


class LedgerProjector:
    """Follows a log and writes all of it into a ledger file. Several at the same time, even on one file, are harmless.

    Attributes:
        progress: Its latest progress.
        following: Set once it is at work.
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
        """Follow ``log``, the stream of this name, into the file ``path``; ``on_progress`` is called at every step."""
        self._log = log
        self._path = path
        self._stream = stream
        self._settings = settings or LedgerSettings()
        self._source = source
        self._build = build
        self._on_progress = on_progress
        self._now_ns = now_ns
        self._head = Head()
        self._anchoring = AnchorState()
        self.progress = Progress()
        self.following = asyncio.Event()
        self._losses = Losses()
        self._gap_losses: list[LossRecorded] = []  # found in the log's middle, and not recorded yet
        self._damaged_files = 0  # that were set aside
        self._unroutable: set[str] = set()  # subjects without a reader that were warned of
        self._tail: Tail | None = None
        self._has_opened = False  # once it has, the folder of its file must be there: it is not made again

    @property
    def cut_off_s(self) -> float:
        """For how many seconds the log could not be read, although the broker can be reached; 0: it can."""
        return 0.0 if self._tail is None else self._tail.cut_off_s

    async def run(self, stop: asyncio.Event) -> None:
        """Write until ``stop`` is set; then write what the log holds by then, anchor the head, and close.

        The head is anchored if there are rows after the last anchor. What takes longer than ``DRAIN_S`` to be written,
        or cannot be written, is left to the next start.

        Temporary failures (full disk, locked file, broker away) are waited out, and no message is ever skipped. If the
        log turns out to have lost messages, the loss is recorded in it. A file that holds lost messages is set aside,
        since it is the only copy left, and so is a file that is found damaged. Then a new one is begun, as it is after
        somebody has moved, deleted or replaced the file.

        Raises:
            LedgerDamaged: the file is another program's, or several files in a row are damaged.
            Misconfigured: the file belongs to another stream.
            Unavailable: the log cannot be read at the start.
        """
        while not stop.is_set():
            try:
                await self._follow_once(stop)
            except LedgerDamaged as damage:
                await self._with_retries(partial(self._set_aside_damaged, damage), stop)

    async def _follow_once(self, stop: asyncio.Event) -> None:
        """Write until ``stop`` is set, or until another file has to be begun."""
        self._gap_losses = []
        if await self._with_retries(self._set_aside_if_log_lost_its_end, stop) is None:
            return
        writer = await self._with_retries(self._open, stop)
        if writer is None:
            return
        try:
            await self._resume(writer)
            await self._follow_and_search_gaps(writer, stop)
        except LogCut as cut:
            _logger.error("ledger_begins_anew", path=str(self._path), detail=str(cut))
        finally:
            await writer.close()
        if self._gap_losses:
            await self._with_retries(self._set_aside_for_gaps, stop)

    async def _follow_and_search_gaps(self, writer: LedgerWriter, stop: asyncio.Event) -> None:
        tail = self._tail = await self._log.tail([EVERYTHING], self._head.seq, on_demand=True)
        gap_search = asyncio.create_task(self._search_gaps(self._head.seq), name="ledger looks for gaps")
        file_watch = asyncio.create_task(self._watch_file(writer), name="ledger's place")
        try:
            await self._follow(writer, tail, stop, gap_search, file_watch)
        finally:
            for task in (gap_search, file_watch):
                task.cancel()
            await asyncio.wait((gap_search, file_watch))
            await tail.close()
        if stop.is_set():
            self._anchoring = due_before_stop(self._anchoring, self._head)
            await self._anchor()

    async def _set_aside_if_log_lost_its_end(self) -> bool:
        """Set the file aside if the log has lost the end of what the file holds."""
        await asyncio.to_thread(self._put_begun_in_place)
        if self._path.exists():
            async with await self._open():
                loss = await find_loss(self._log, self._path)
            if loss is not None:
                await self._set_aside([loss])
        return True

    async def _set_aside_for_gaps(self) -> bool:
        """Set the file aside, since it holds messages that are missing in the middle of the log."""
        if not await asyncio.to_thread(self._put_begun_in_place):
            await self._set_aside(self._gap_losses)
        return True

    async def _set_aside_damaged(self, damage: LedgerDamaged) -> bool:
        """Set a damaged ledger aside. What it held is in the stream, or cannot be read any more."""
        self._damaged_files += 1
        if self._damaged_files > MOST_DAMAGED or await asyncio.to_thread(belongs_to_other_program, self._path):
            raise damage
        kept = path_aside(self._path, None)
        await asyncio.to_thread(put_aside, self._path, kept, damaged=True)
        look = f"neuraxis log verify --log {kept}"
        _logger.error("ledger_damaged", path=str(self._path), kept=str(kept), detail=str(damage), look=look)
        return True

    async def _set_aside(self, losses: Sequence[LossRecorded]) -> None:
        """Record what the log has lost, then set the file aside: a crash between the two leaves no loss unrecorded."""
        held = any(loss.known_by == "ledger" for loss in losses)
        kept = path_aside(self._path, losses[0].first_seq) if held else None
        earlier = await asyncio.to_thread(records_lost_with, self._path, losses) if held else []
        named = [msgspec.structs.replace(loss, kept_as=kept.name if kept else "") for loss in losses]
        await self._record([*earlier, *named])
        for loss in losses:
            log_loss(loss, kept)
        if kept is not None:
            await self._begin_another(kept)

    async def _begin_another(self, kept: Path) -> None:
        """Rename the file, and begin the next one with what was removed from the stream, which no other file holds.

        The next one gets the name ``-begun`` only once it is complete: if the process is killed between the renames, so
        that the ledger is gone, the next start puts it in place.
        """
        if not (removed := self._log.trimmed_through):
            await asyncio.to_thread(put_aside, self._path, kept)
            return
        draft = self._beside("draft")
        await asyncio.to_thread(delete_draft, draft)  # a killed process left it half written
        async with await LedgerWriter.open(draft, self._stream, self._log.partitions) as writer:
            async for batch in LedgerArchive(self._path).history([EVERYTHING], 0, removed):
                await writer.append(batch)
            if not await writer.is_in_place():
                raise Unavailable(f"another process has replaced {draft}: run one process on a ledger")
        # It may replace one of a process that was killed before it renamed the ledger: that one is a copy as well.
        await asyncio.to_thread(put_aside, draft, self._beside("begun"))
        await asyncio.to_thread(put_aside, self._path, kept)
        await asyncio.to_thread(self._put_begun_in_place)

    def _put_begun_in_place(self) -> bool:
        """Put the next file in the place of one that was set aside; return whether there was one to be put there."""
        begun = self._beside("begun")
        # What was not trimmed can be read from the stream.
        if not self._log.trimmed_through or self._path.exists() or not begun.exists():
            return False
        put_in_place(begun, self._path)
        _logger.info("ledger_begun_in_place", path=str(self._path))
        return True

    def _beside(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.stem}-{what}{self._path.suffix}")

    async def _record(self, losses: Sequence[LossRecorded]) -> None:
        await record_losses(self._log, losses, self._source, rfc3339(self._now_ns()), self._build)

    async def _search_gaps(self, upto: int) -> None:
        """Read from the log all that the file held at the start, to find messages that the log has lost in its middle.

        A broker still counts a message whose bytes have rotted away, so only reading shows the loss. Recent messages
        matter to present decisions, and are read at once; the others are read with pauses.
        """
        recent = max(0, upto - RECENT)
        try:
            for after, through, pause in ((recent, upto, 0.0), (0, recent, PAUSE_PER_SECOND)):
                self._gap_losses = await find_gaps(
                    self._log, self._path, after, through, self._losses, pause_per_second=pause
                )
                if self._gap_losses:
                    return
        except LogError as error:
            _logger.warning("ledger_gaps_unknown", path=str(self._path), code=error.code, error=str(error))

    async def _watch_file(self, writer: LedgerWriter) -> None:
        """Return, and say so, once somebody has moved, deleted or replaced the file: what is written then is lost."""
        while await writer.is_in_place():  # noqa: ASYNC110 - it happens on the disk
            await asyncio.sleep(FILE_CHECK_S)
        _logger.error("ledger_file_gone", path=str(self._path), position=self._head.seq, detail=_GONE)

    async def _open(self) -> LedgerWriter:
        if self._has_opened:
            await asyncio.to_thread(self._check_may_be_made_again)
        writer = await LedgerWriter.open(self._path, self._stream, self._log.partitions)
        self._has_opened = True
        return writer

    def _check_may_be_made_again(self) -> None:
        """Raise Unavailable where the file that was written before is gone, and no new one can take its place."""
        # Behind a link it is the folder of the file itself: its disk may not be mounted any more.
        folder, removed = Path(os.path.realpath(self._path)).parent, self._log.trimmed_through
        if not folder.is_dir():
            raise Unavailable(f"the folder of the ledger is gone ({folder}): put it back, or start the set again")
        if removed and not self._path.exists():
            raise Unavailable(
                f"{self._path.name} is gone, and what was removed from the stream up to sequence {removed:,} is in it "
                "alone: put it back"
            )

    async def _resume(self, writer: LedgerWriter) -> None:
        self._head = await writer.head()
        self._losses = await Losses.of(self._log, (await self._log.info()).last_seq)
        last_own = await writer.last_own()
        anchoring = with_batch(AnchorState(), () if last_own is None else (last_own,))
        self._anchoring = msgspec.structs.replace(anchoring, foreign=await writer.last_foreign())
        _logger.info("ledger_open", path=str(self._path), position=self._head.seq, rows=self._head.rows)
        self._report()

    async def _follow(
        self,
        writer: LedgerWriter,
        tail: Tail,
        stop: asyncio.Event,
        gap_search: asyncio.Task[None],
        file_watch: asyncio.Task[None],
    ) -> None:
        """Write new messages until ``stop`` is set and what the log holds by then is written.

        It also ends once ``gap_search`` finds that the log lacks messages of the file, or ``file_watch`` that the file
        is gone.
        """
        stopping = asyncio.create_task(self._drained(stop), name="ledger stop")
        others: set[asyncio.Task[Any]] = {stopping, gap_search, file_watch}
        reading: asyncio.Task[Sequence[Stored]] | None = None
        try:
            while True:
                reading = reading or asyncio.create_task(tail.next(), name="ledger reading")
                await asyncio.wait((reading, *others), return_when=asyncio.FIRST_COMPLETED)
                if gap_search.done():
                    gap_search.result()
                    others.discard(gap_search)
                if self._gap_losses:
                    return
                if file_watch.done():
                    file_watch.result()
                    return
                if not reading.done():
                    if stopping.done():
                        return
                    continue
                batch, reading = reading.result(), None
                for start in range(0, len(batch), self._settings.batch_rows):
                    if not await self._write(writer, batch[start : start + self._settings.batch_rows], stop):
                        return
                if len(batch) < self._settings.batch_rows:
                    await _set_within(stop, self._settings.rest_ms / 1_000)
        finally:
            stopping.cancel()
            if reading is not None:
                reading.cancel()
                await asyncio.wait((reading,))

    async def _drained(self, stop: asyncio.Event) -> None:
        """Wait until ``stop`` is set, then, for a moment at most, until what the log holds by then is written."""
        await stop.wait()
        with suppress(LogError, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                end = (await self._log.info()).last_seq
                while self._head.seq < end:  # noqa: ASYNC110 - it is written by another task
                    await asyncio.sleep(_DRAIN_POLL_S)

    async def _write(self, writer: LedgerWriter, batch: Sequence[Stored], stop: asyncio.Event) -> bool:
        gaps_found = gaps(max(self._head.seq, self._log.trimmed_through), batch)
        written = await self._with_retries(lambda: writer.append(batch, self._settings.anchor_every), stop)
        if written is None:
            return False
        self._head = written.head
        for stored in batch:
            self._losses.note(stored)
            self._warn_of_unroutable(stored)
        self._anchoring = with_batch(self._anchoring, batch, written.heads_to_anchor)
        self._report()
        if gaps_found and not await self._with_retries(partial(self._record_gaps, gaps_found), stop):
            return False
        await self._anchor()
        return True

    def _warn_of_unroutable(self, stored: Stored) -> None:
        """Log that no actor of this release reads such an event, once per subject; up to ``MOST_LISTED`` are named."""
        why = why_unroutable(stored.subject, self._log.partitions)
        if why and stored.subject not in self._unroutable and len(self._unroutable) < MOST_LISTED:
            self._unroutable.add(stored.subject)
            _logger.warning("event_unroutable", subject=stored.subject, seq=stored.seq, reason=why)

    async def _record_gaps(self, gaps_found: Sequence[tuple[int, int]]) -> bool:
        """Record gaps in the log's sequences that are not recorded yet: no message is ever deleted on purpose."""
        losses = [loss_of_gap(first, last) for first, last in gaps_found if not self._losses.has_gap(first, last)]
        await self._record(losses)
        for loss in losses:
            log_loss(loss, None)
        return True

    async def _anchor(self) -> None:
        due = self._anchoring.due
        if due is None:
            return
        append = anchor_append(self._anchoring, due, self._source, rfc3339(self._now_ns()), self._build)
        try:
            self._anchoring = with_anchor(self._anchoring, due, await self._log.append([append]))
        except Conflict:
            # Another projector's anchor is further on in the log. Reading it either replaces this one, or makes it due
            # again.
            _logger.debug("anchor_conflict", through_seq=due.seq)
        except LogError as error:
            _logger.warning("anchor_failed", through_seq=due.seq, code=error.code, error=str(error))
            self._report(str(error))

    async def _with_retries(self, attempt: Callable[[], Awaitable[T]], stop: asyncio.Event) -> T | None:
        """Try until it succeeds, waiting after temporary failures; return None once ``stop`` is set."""
        wait_s, waits = self._settings.retry_first_s, WarningBackoff()
        while True:
            try:
                done = await attempt()
                if self.progress.trouble:
                    self._report()
                return done
            except Unavailable as error:
                if waits.is_due():
                    _logger.warning(
                        "ledger_waits", path=str(self._path), error=str(error), for_s=round(waits.lasted_s, 1)
                    )
                self._report(str(error))
            if await _set_within(stop, wait_s):
                return None
            wait_s = min(2 * wait_s, self._settings.retry_most_s)

    def _report(self, trouble: str = "") -> None:
        self.progress = Progress(self._head.seq, self._head.rows, trouble)
        self.following.set()
        if self._on_progress is not None:
            self._on_progress(self.progress)


async def _set_within(stop: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await stop.wait()
    except TimeoutError:
        return False
