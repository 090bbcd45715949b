"""What a projector finds out when its ledger holds what the log does not: where the log was cut, and how to say so."""

import asyncio
from pathlib import Path

from actors.ledger.anchoring import OWN_FILTER, OWNER
from events.errors import Conflict, Misconfigured, Unavailable, UnknownOutcome
from events.ledger import LedgerReader
from events.log import Append, Fence, Log, Record, Stored
from events.loggers import get_logger
from events.losses import LOSS_TOPIC, Losses, gaps
from schemas.catalogue import entry_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event
from schemas.identity import event_id
from schemas.subjects import NO_PARTITION, stored_subject
from schemas.vocabulary.ledger import LossRecorded

EVERYTHING = "log.>"

_ATTEMPTS = 20
_logger = get_logger("neuraxis.ledger")


async def find_gaps(
    log: Log, path: Path, after: int, upto: int, known: Losses, *, rest: float = 0.0
) -> list[LossRecorded]:
    """Read a stretch of a log, and return what it lost within that and has not recorded, the first first.

    ``rest`` is how long nothing is read for each second of reading.

    Raises:
        LogError: the log, or the ledger, cannot be read.
    """
    found: list[tuple[int, int]] = []
    clock = asyncio.get_running_loop().time
    begun = clock()
    async for batch in log.history([EVERYTHING], after, upto):
        found += gaps(after, batch)
        after = batch[-1].seq
        await asyncio.sleep(rest * (clock() - begun))
        begun = clock()
    if after < upto:
        found.append((after + 1, upto))
    with LedgerReader(path) as reader:
        return [
            LossRecorded(
                first_seq=first,
                through_seq=last,
                known_by="ledger" if _has_any(reader, first, last) else "stream",
                given_again=False,
            )
            for first, last in found
            if not known.has_gap(first, last)
        ]


def _has_any(reader: LedgerReader, first: int, last: int) -> bool:
    row = reader.last_upto(last)
    return row is not None and row.seq >= first


async def find_loss(log: Log, path: Path) -> LossRecorded | None:
    """Return what a log has lost off its end of what a ledger holds, None where it holds the ledger's last row.

    Raises:
        Misconfigured: the log is another one: it has nothing in common with the ledger, and is not younger.
        LogError: the log cannot be asked, or the ledger cannot be read.
    """
    with LedgerReader(path) as reader:
        last = reader.info().last_seq
        if not last or await _holds(log, reader, last):
            return None
        held, lost = 0, last  # the ledger's rows are the log's up to the one, and not from the other on
        while lost - held > 1:
            middle = (held + lost) // 2
            if await _holds(log, reader, middle):
                held = middle
            else:
                lost = middle
        if not held:
            await _refuse_another(log, reader, path)
    info = await log.info()
    there = await log.at(lost)
    return LossRecorded(
        first_seq=lost,
        through_seq=last if info.last_seq < lost or there is not None else max(last, await _gap_end(log, lost) - 1),
        known_by="ledger",
        given_again=info.last_seq < lost or there is not None,
    )


async def _gap_end(log: Log, after: int) -> int:
    """Return the sequence of the first message behind a gap, or the log's next one."""
    info = await log.info()
    async for batch in log.history([EVERYTHING], after, info.last_seq):
        return batch[0].seq
    return info.last_seq + 1


async def _holds(log: Log, reader: LedgerReader, seq: int) -> bool:
    """Whether the log holds the ledger's last row up to a sequence."""
    row = reader.last_upto(seq)
    if row is None:
        return True
    return same(await log.at(row.seq), row)


async def _refuse_another(log: Log, reader: LedgerReader, path: Path) -> None:
    info, last = await log.info(), reader.info()
    first = await log.at(info.first_seq) if info.last_seq else None
    if first is not None and first.time_ns <= last.last_time_ns:
        raise Misconfigured(
            f"{path}: none of its {last.rows} rows is in the log, which is older than the last of them: it is the "
            "ledger of another log; move the file aside to start another, and keep it"
        )


def same(message: Stored | None, row: Stored) -> bool:
    """Whether a message of the log is a row of a ledger."""
    return (
        message is not None
        and (message.seq, message.time_ns, message.subject, message.data)
        == (row.seq, row.time_ns, row.subject, row.data)
        and dict(message.headers) == dict(row.headers)
    )


async def record_loss(log: Log, loss: LossRecorded, source: str, time: str, build: str) -> None:
    """Say in the log what it has lost, once, however many projectors find out; raises LogError."""
    for _ in range(_ATTEMPTS):
        info = await log.info()
        known = await Losses.of(log, info.last_seq)
        if any(_tells(other.event, loss) and other.seq >= loss.first_seq for other in known.found):
            return
        fence = Fence(OWN_FILTER, await log.last(OWN_FILTER))
        envelope = Envelope(
            id=event_id(f"{loss.first_seq} to {loss.through_seq} at {info.last_seq}", OWNER, 0),
            topic=LOSS_TOPIC,
            source=source,
            time=time,
            cause_seq=info.last_seq,
            version=entry_of(loss).version,
            build=build,
        )
        subject = stored_subject(LOSS_TOPIC, NO_PARTITION, NO_PARTITION)
        try:
            await log.append([Append((Record(subject, encode_headers(envelope), encode_event(loss)),), fence)])
        except Conflict:
            continue  # another projector found it too, or noted its head
        except UnknownOutcome as unknown:
            raise Unavailable(f"whether the loss was recorded is not known: {unknown}") from unknown
        return
    raise Unavailable("the loss could not be recorded: others append to the ledger's subjects all the time")


def _tells(recorded: LossRecorded, loss: LossRecorded) -> bool:
    return (recorded.first_seq, recorded.through_seq) == (loss.first_seq, loss.through_seq)


def tell(loss: LossRecorded, kept: Path | None) -> None:
    """Say in this process's log what was lost, and how to look at what is left of it."""
    look = f"neuraxis log tail --log {kept} --since {loss.first_seq}" if kept is not None else ""
    _logger.error(
        "log_lost_messages",
        first_seq=loss.first_seq,
        through_seq=loss.through_seq,
        count=loss.through_seq - loss.first_seq + 1,
        given_again=loss.given_again,
        known_by=loss.known_by,
        kept=str(kept or ""),
        look=look,
    )
