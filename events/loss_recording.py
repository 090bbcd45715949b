"""Recording in the log what the log has lost.

The process that finds a loss records it: a ledger's projector, ``neuraxis up``, or a worker that must not go on before
it is recorded. All append to the ledger's subjects on the condition that nobody else has appended there meanwhile (a
fence), so that a loss is recorded once, however many processes find it.
"""

from collections.abc import Sequence
from pathlib import Path

from events.errors import Conflict, Unavailable, UnknownOutcome
from events.log import MAX_BATCH, Append, Fence, Log, Record
from events.loggers import get_logger
from events.losses import Losses
from schemas.catalogue import entry_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import ROOT, Event, encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import NO_PARTITION, stored_subject, topic_filter
from schemas.vocabulary.ledger import LossRecorded

OWNER = "ledger"
"""The owner of the events that record losses, in the catalogue."""

OWN_PREFIX = f"{ROOT}.{OWNER}."
"""Beginning of the public subjects of that owner."""

OWN_FILTER = topic_filter(f"{OWN_PREFIX}>")
"""The filter over all events of the owner ``ledger``."""

_ATTEMPTS = 20
"""How often recording is tried while others append behind the same fence."""

_logger = get_logger("neuraxis.ledger")


def ledger_record(event: Event, identity: str, cause_seq: int, source: str, time: str, build: str) -> Record:
    """Return the record of one of the ledger's events; its id is made from ``identity`` alone, ``time`` is RFC 3339."""
    topic = topic_of(event)
    envelope = Envelope(
        id=event_id(identity, OWNER, 0),
        topic=topic,
        source=source,
        time=time,
        cause_seq=cause_seq,
        version=entry_of(event).version,
        build=build,
    )
    return Record(stored_subject(topic, NO_PARTITION, NO_PARTITION), encode_headers(envelope), encode_event(event))


async def record_losses(log: Log, losses: Sequence[LossRecorded], source: str, time: str, build: str) -> None:
    """Record losses in the log, each once, however many processes find it; raises LogError.

    They are stored together, so that partitions fold the log again only once.
    """
    for start in range(0, len(losses), MAX_BATCH):
        await _record(log, losses[start : start + MAX_BATCH], source, time, build)


async def record_loss(log: Log, loss: LossRecorded, source: str, time: str, build: str) -> None:
    """Record one loss; see :func:`record_losses`."""
    await record_losses(log, (loss,), source, time, build)


async def _record(log: Log, losses: Sequence[LossRecorded], source: str, time: str, build: str) -> None:
    for _ in range(_ATTEMPTS):
        info = await log.info()
        known = (await Losses.of(log, info.last_seq)).found
        fence = Fence(OWN_FILTER, await log.last(OWN_FILTER))
        records = [
            ledger_record(loss, _identity(loss, info.last_seq), info.last_seq, source, time, build)
            for loss in losses
            if not any(_is_same_range(other.event, loss) and other.seq >= loss.first_seq for other in known)
        ]
        if not records:
            return
        try:
            await log.append([Append(tuple(records), fence)])
        except Conflict:
            continue  # another process recorded it too, or a projector appended an anchor
        except UnknownOutcome as unknown:
            raise Unavailable(f"whether the loss was recorded is not known: {unknown}") from unknown
        return
    raise Unavailable("the loss could not be recorded: others append to the ledger's subjects all the time")


def _identity(loss: LossRecorded, found_at: int) -> str:
    return f"{loss.first_seq} to {loss.through_seq} at {found_at}"


def loss_of_gap(first: int, last: int) -> LossRecorded:
    """Return the loss of messages whose sequences are a gap in the log: no later message was given them."""
    return LossRecorded(first_seq=first, through_seq=last, known_by="stream", given_again=False)


def _is_same_range(recorded: LossRecorded, loss: LossRecorded) -> bool:
    return (recorded.first_seq, recorded.through_seq) == (loss.first_seq, loss.through_seq)


def log_loss(loss: LossRecorded, kept: Path | None) -> None:
    """Log in this process what was lost, and how to look at what is left of it.

    ``kept`` is the ledger file that still holds the lost messages and was put aside; None if there is none.
    """
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
