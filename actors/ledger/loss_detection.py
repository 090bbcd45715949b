"""Finds what a log has lost, by comparing it with a ledger that still holds it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from events.errors import Misconfigured
from events.ledger import LedgerReader
from events.log import Log, is_same_message
from events.losses import Losses, gaps
from schemas.subjects import EVERYTHING
from schemas.vocabulary.ledger import LossRecorded


async def find_gaps(
    log: Log, path: Path, after: int, upto: int, known: Losses, *, pause_per_second: float = 0.0
) -> list[LossRecorded]:
    """Read a stretch of a log; return the losses within it that are not recorded yet, in order.

    ``pause_per_second``: seconds of pause for each second of reading.

    Raises:
        LogError: the log, or the ledger, cannot be read.
    """
    missing: list[tuple[int, int]] = []
    clock = asyncio.get_running_loop().time
    started = clock()
    after = max(after, min(log.trimmed_through, upto))
    async for batch in log.history([EVERYTHING], after, upto):
        missing += gaps(after, batch)
        after = batch[-1].seq
        await asyncio.sleep(pause_per_second * (clock() - started))
        started = clock()
    if after < upto:
        missing.append((after + 1, upto))
    # Here it only matters whether there are rows, not what they hold.
    with LedgerReader(path, lambda _: None) as reader:
        return [
            LossRecorded(
                first_seq=first,
                through_seq=last,
                known_by="ledger" if _has_rows(reader, first, last) else "stream",
                given_again=False,
            )
            for first, last in missing
            if not known.has_gap(first, last)
        ]


def _has_rows(reader: LedgerReader, first: int, last: int) -> bool:
    row = reader.last_upto(last)
    return row is not None and row.seq >= first


async def find_loss(log: Log, path: Path) -> LossRecorded | None:
    """Return what a log has lost at its end, compared with a ledger; None if it holds the ledger's last row.

    What was removed from a log's beginning is not lost: the ledger alone holds it.

    Raises:
        Misconfigured: it is another log: it has no row in common with the ledger, and is not younger. Or the ledger
            lacks events that were removed from the log.
        LogError: the log cannot be asked, or the ledger cannot be read.
    """
    with LedgerReader(path) as reader:
        last = reader.info().last_seq
        if 0 < last < log.trimmed_through:
            raise Misconfigured(
                f"{path} ends at sequence {last:,}, and what was removed from the stream goes up to "
                f"{log.trimmed_through:,}: it is an older copy of the ledger, or that of another log; keep it, and "
                "put the one in its place that holds all"
            )
        if not last or await _holds(log, reader, last):
            return None
        held, lost = 0, last  # the log has the ledger's rows up to ``held``, and lacks those from ``lost`` on
        while lost - held > 1:
            middle = (held + lost) // 2
            if await _holds(log, reader, middle):
                held = middle
            else:
                lost = middle
        if held <= log.trimmed_through:
            await _refuse_other_log(log, reader, path)
    info = await log.info()
    message = await log.at(lost)
    return LossRecorded(
        first_seq=lost,
        through_seq=last if info.last_seq < lost or message is not None else max(last, await _gap_end(log, lost) - 1),
        known_by="ledger",
        # Whether the log has given the lost sequences to other messages, or will.
        given_again=info.last_seq < lost or message is not None,
    )


def records_lost_with(path: Path, losses: Sequence[LossRecorded]) -> list[LossRecorded]:
    """Return the records of earlier losses that a log has lost itself, which its ledger holds; raises LogError.

    A record of the same sequences, or of a gap whose sequences other messages have now, says nothing new.
    """
    with LedgerReader(path) as reader:
        known = reader.losses().found
    ranges = [(loss.first_seq, loss.through_seq) for loss in losses]
    return [
        record.event
        for record in known
        if any(first <= record.seq <= through for first, through in ranges)
        and (record.event.first_seq, record.event.through_seq) not in ranges
        and (record.event.given_again or record.event.through_seq < ranges[0][0])
    ]


async def _gap_end(log: Log, after: int) -> int:
    """Return the sequence of the first message after a gap, or the log's next sequence if none follows."""
    info = await log.info()
    async for batch in log.history([EVERYTHING], after, info.last_seq):
        return batch[0].seq
    return info.last_seq + 1


async def _holds(log: Log, reader: LedgerReader, seq: int) -> bool:
    """Whether the log holds the last row that the ledger has up to a sequence, or held it until that was removed."""
    row = reader.last_upto(seq)
    if row is None or row.seq <= log.trimmed_through:
        return True
    return is_same_message(await log.at(row.seq), row)


async def _refuse_other_log(log: Log, reader: LedgerReader, path: Path) -> None:
    info, last = await log.info(), reader.info()
    first = await log.at(info.first_seq) if info.last_seq else None
    if first is not None and first.time_ns <= last.last_time_ns:
        raise Misconfigured(
            f"{path}: none of its {last.rows} rows is in the log, which is older than the last of them: it is the "
            "ledger of another log; move the file aside to start another, and keep it"
        )
