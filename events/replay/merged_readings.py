"""Merging several readings of a log into one, by sequence."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from events.log import Stored


class _Cursor:
    """The next messages of one reading."""

    def __init__(self, reading: AsyncIterator[Sequence[Stored]]) -> None:
        self._reading = reading
        self.batch: Sequence[Stored] = ()

    async def fill(self) -> bool:
        """Read the next batch if none is left; return whether there are messages."""
        if not self.batch:
            with suppress(StopAsyncIteration):
                self.batch = await anext(self._reading)
        return bool(self.batch)

    def take(self, upto: int) -> Sequence[Stored]:
        """Remove and return the messages up to a sequence."""
        taken = [stored for stored in self.batch if stored.seq <= upto]
        self.batch = self.batch[len(taken) :]
        return taken


async def merged_by_seq(readings: Sequence[AsyncIterator[Sequence[Stored]]]) -> AsyncIterator[Sequence[Stored]]:
    """Read several readings, each in order, as one in order; a message that several hold is yielded once."""
    cursors = [_Cursor(reading) for reading in readings]
    while cursors := [cursor for cursor in cursors if await cursor.fill()]:
        # Every reading has yielded all its messages up to this sequence.
        upto = min(cursor.batch[-1].seq for cursor in cursors)
        found = {stored.seq: stored for cursor in cursors for stored in cursor.take(upto)}
        yield [found[seq] for seq in sorted(found)]
