"""Opening the log that a configuration names, and the ledger beside it that holds what was trimmed from the stream."""

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.config.settings import LogSettings
from events.errors import LogError
from events.jetstream import Connection, JetStreamLog
from events.log import is_same_message
from events.loggers import get_logger
from schemas.subjects import Partitions

if TYPE_CHECKING:
    from events.log import Stored

_logger = get_logger("neuraxis.log")


async def configured_log(connection: Connection, settings: LogSettings, *, create: bool = True) -> JetStreamLog:
    """Make or check the stream over an open connection; raises as ``JetStreamLog.over`` does."""
    return await JetStreamLog.over(
        connection,
        stream=settings.stream,
        partitions=Partitions(settings.agents, settings.sessions),
        replicas=settings.replicas,
        create=create,
        sealed=settings.sealed,
    )


async def attach_ledger(log: JetStreamLog, ledger: Path) -> bool:
    """Attach the ledger, from which a log then reads the events that were removed from its stream.

    Returns whether all events can be read: False if some were removed and the ledger does not hold them, or is that of
    another set, whose stream may have the same name. Raises as ``LedgerReader`` does, and LogError.
    """
    if not log.trimmed_through:
        return True
    from events.ledger import LedgerArchive

    found = await asyncio.to_thread(_row_behind, ledger, log.stream, log.trimmed_through)
    if found is None:
        return False
    for row in found:
        if not is_same_message(await log.at(row.seq), row):
            return False
    log.archive = LedgerArchive(ledger)
    return True


def _row_behind(ledger: Path, stream: str, through: int) -> "list[Stored] | None":
    """Return the ledger's row after ``through``, in a list that is empty if there is none.

    None: the ledger does not hold all rows up to ``through``, or is another stream's. The stream still holds the
    message of the returned row: comparing the two shows whether the ledger is that of another set.
    """
    from events.ledger import LedgerReader

    if not ledger.exists():
        return None
    with LedgerReader(ledger) as reader:
        info = reader.info()
        if (info.stream, info.first_seq) != (stream, 1) or info.last_seq < through:
            return None
        return [row for row in (reader.at(through + 1),) if row is not None]


async def attach_ledger_or_warn(log: JetStreamLog, ledger: Path | None) -> None:
    """Attach the ledger to a process's log, if it is on this machine; else warn of events that cannot be read.

    It warns once for each cause, however many logs a process opens.
    """
    try:
        if ledger is not None and await attach_ledger(log, ledger):
            return
        why = "" if ledger is None else f"{ledger} is not there, or does not hold it, or is another set's"
    except LogError as error:
        why = str(error)
    if log.trimmed_through:
        _warn_once(log.stream, log.trimmed_through, why)


@lru_cache(maxsize=64)
def _warn_once(stream: str, through: int, why: str) -> None:
    _logger.warning("removed_events_not_seen", stream=stream, through=through, detail=why)
