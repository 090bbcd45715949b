"""Merging several readings of a log into one, by sequence."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from events.log import Stored


class _Head:
    """A reading's next messages."""

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
    """Read several readings, each in order, as one in order; a message of several of them comes once."""
    heads = [_Head(reading) for reading in readings]
    while heads := [head for head in heads if await head.fill()]:
        # Up to there, each of them has said all.
        upto = min(head.batch[-1].seq for head in heads)
        found = {stored.seq: stored for head in heads for stored in head.take(upto)}
        yield [found[seq] for seq in sorted(found)]
