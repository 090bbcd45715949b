"""Whether the ledger of a set that is stopped holds all of its log: once the broker is stopped, nobody can tell.

A set that is stopped in order removes ``run.json`` only where that is so. Where it is not, since the ledger's disk is
full, say, the file stays as it does after a set that was killed, and whoever reads the ledger is told.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from deploy.health.loss_from_snapshots import last_row
from deploy.processes.broker_access import BadContext
from deploy.processes.running_set import DataFolder
from events.errors import LogError
from events.jetstream import Access, Connection
from events.jetstream.reading.get_message import get_message
from events.ledger.rows import topic_of_subject
from events.loggers import get_logger
from schemas.event import topic_of
from schemas.vocabulary.ledger import LedgerAnchored

DEADLINE_S = 2.0
"""Seconds that the question may take: a broker that is gone must not keep a set from its end."""

_MOST_ANCHORS = 8
"""Most events looked at that the stream has and the ledger has not: several processes may each write an anchor."""

_logger = get_logger("neuraxis.up")


class LedgerEnd:
    """What is known of the ledger of a data folder; to be made before a set writes its ``run.json``.

    Attributes:
        is_held: Whether the ledger holds the end of the log. At first, as the last set left it.
    """

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._is_skipped = False
        self.is_held = not data.run_file.exists()

    def skip_check(self) -> None:
        """Have a later check take no time: the set's processes, its broker too, are killed."""
        self._is_skipped = True

    async def check(self, access: Callable[[], Access], stream: str) -> None:
        """Find out whether the ledger holds the end of a stream; if not, or if that is not known, log why.

        Call it once the ledger's process and those that append have ended. It takes ``DEADLINE_S`` seconds at most.
        """
        self.is_held = False
        if self._is_skipped:
            return
        try:
            async with asyncio.timeout(DEADLINE_S):
                lack = await _lack(access(), stream, self._data.ledger)
        except (LogError, BadContext, TimeoutError) as wrong:
            lack = f"where the stream ends is not known ({str(wrong) or 'the broker does not answer'})"
        self.is_held = not lack
        if lack:
            _logger.warning(
                "ledger_end_missing",
                path=str(self._data.ledger),
                detail=lack,
                remedy="start the set again, with room on the ledger's disk",
            )


async def _lack(access: Access, stream: str, ledger: Path) -> str:
    """Return what a ledger lacks of the end of a stream; empty if nothing. Raises LogError."""
    connection = await Connection.open(access, DEADLINE_S)
    try:
        info = await connection.api(f"STREAM.INFO.{stream}")
        end, held = int(info["state"]["last_seq"]), await asyncio.to_thread(last_row, ledger)
        if held >= end or (end - held <= _MOST_ANCHORS and await _holds_anchors_alone(connection, stream, held, end)):
            return ""
        return f"it ends at sequence {held:,}, and the stream at {end:,}"
    finally:
        await connection.close()


async def _holds_anchors_alone(connection: Connection, stream: str, after: int, upto: int) -> bool:
    """Whether a range of a stream holds nothing but anchors: the last is written after the ledger, which lacks it."""
    for seq in range(after + 1, upto + 1):
        found = await get_message(connection, stream, seq)
        if found is not None and topic_of_subject(found.subject) != topic_of(LedgerAnchored):
            return False
    return True
