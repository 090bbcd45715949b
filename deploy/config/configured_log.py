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
    """Let a log read from its ledger what was removed from its stream's beginning; False if the ledger is not there.

    True also if nothing was removed, so that no ledger is needed. Raises as ``LedgerReader`` does.
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
    """Let a log of a process read what was removed, if the ledger is on this machine; else say so in the log."""
    try:
        if ledger is not None and await asyncio.to_thread(attach_ledger, log, ledger):
            return
        why = "" if ledger is None else f"{ledger} is not there, or does not hold it"
    except LogError as error:
        why = str(error)
    if log.trimmed_through:
        _logger.warning("removed_events_not_seen", stream=log.stream, through=log.trimmed_through, detail=why)
