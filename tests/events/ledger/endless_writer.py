"""Appends batches of ten messages to a ledger until it is killed, and prints the last sequence after each.

Run by the tests as a process of its own: ``python -m tests.events.ledger.endless_writer FILE``.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

from events.ledger import LedgerWriter
from tests.events.ledger.messages import INPUT, PARTITIONS, STREAM, stored

BATCH = 10


async def main(path: Path) -> None:
    async with await LedgerWriter.open(path, STREAM, PARTITIONS) as writer:
        start = (await writer.head()).seq + 1
        for first in count(start, BATCH):
            written = await writer.append([stored(seq, INPUT) for seq in range(first, first + BATCH)])
            print(written.head.seq, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
