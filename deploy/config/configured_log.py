"""Opening the log that a configuration names, and the ledger beside it that holds what was trimmed from the stream."""

import asyncio
from pathlib import Path

from deploy.config.settings import LogSettings
from events.errors import LogError
from events.jetstream import Connection, JetStreamLog
from events.loggers import get_logger
from schemas.subjects import Partitions

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


def attach_ledger(log: JetStreamLog, ledger: Path) -> bool:
    """Attach the ledger, from which a log then reads the events that were removed from its stream.

    Returns whether all events can be read: False if some were removed and the ledger does not hold them. Raises as
    ``LedgerReader`` does.
    """
    if not log.trimmed_through:
        return True
    from events.ledger import LedgerArchive, LedgerReader

    if not ledger.exists():
        return False
    with LedgerReader(ledger) as reader:
        info = reader.info()
    if (info.stream, info.first_seq) != (log.stream, 1) or info.last_seq < log.trimmed_through:
        return False
    log.archive = LedgerArchive(ledger)
    return True


async def attach_ledger_or_warn(log: JetStreamLog, ledger: Path | None) -> None:
    """Attach the ledger to a process's log, if it is on this machine; else warn of events that cannot be read."""
    try:
        if ledger is not None and await asyncio.to_thread(attach_ledger, log, ledger):
            return
        why = "" if ledger is None else f"{ledger} is not there, or does not hold it"
    except LogError as error:
        why = str(error)
    if log.trimmed_through:
        _logger.warning("removed_events_not_seen", stream=log.stream, through=log.trimmed_through, detail=why)
