"""Reads messages that were trimmed from a stream's beginning out of its ledger, without blocking the event loop.

For a ledger's archive files see ``events.ledger.archiving``.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from events.ledger.reader import LedgerReader
from events.log import Stored


class LedgerArchive:
    """A ledger file as a log's archive; implements ``events.jetstream.log.Archive``. It is open only while it is read.

    Each reading has a thread of its own: a file is read in the thread that opened it, and finding the few events that
    match takes as long as reading all of them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read a range; see ``LedgerReader.history``. Raises as ``LedgerReader`` does."""
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, thread_name_prefix="ledger archive")
        try:
            reader = await loop.run_in_executor(thread, LedgerReader, self.path)
            try:
                batches = reader.history(filters, after, upto)
                while (batch := await loop.run_in_executor(thread, next, batches, None)) is not None:
                    yield batch
            finally:
                thread.submit(reader.close)
        finally:
            thread.shutdown(wait=False)
