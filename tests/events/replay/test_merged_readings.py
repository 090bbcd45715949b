"""Several readings as one."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from events.log import Stored
from events.replay.merged_readings import merged_by_seq

READING = st.lists(st.integers(1, 40), unique=True).map(sorted)


async def batches(seqs: Sequence[int], size: int) -> AsyncIterator[Sequence[Stored]]:
    for start in range(0, len(seqs), size):
        yield [Stored(seq, seq, "log._._.ledger.anchored", {}, b"") for seq in seqs[start : start + size]]


@given(st.lists(st.tuples(READING, st.integers(1, 5)), max_size=4))
def test_every_message_of_several_readings_comes_once_and_in_order(readings: list[tuple[list[int], int]]) -> None:
    async def main() -> list[int]:
        merged = merged_by_seq([batches(seqs, size) for seqs, size in readings])
        return [stored.seq async for batch in merged for stored in batch]

    assert asyncio.run(main()) == sorted({seq for seqs, _ in readings for seq in seqs})
