"""Reads one posting list of the index (the entries that hold a shingle), and the shingles of its entries.

A list of one entry is that entry, in ``table.firsts``. Of a longer one, ``firsts`` has the position of its latest block
in ``store.pool``: the position of the block before it (-1: none), the number of entries, the capacity, the entries.
"""

import numpy as np

from actors.intuition.index.hash_table import Cells, Hashes, Integers
from actors.intuition.index.store import HEADER, LENGTH, SIZE_SHIFT, Store


def entries_of(store: Store, cell: int) -> Cells:
    """Return the entries in the list of a cell that is not empty."""
    first = int(store.table.firsts[cell])
    if store.table.counts[cell] == 1:
        return store.table.firsts[cell : cell + 1]
    blocks = []
    while first >= 0:
        begin = first + HEADER
        blocks.append(store.pool[begin : begin + int(store.pool[first + LENGTH])])
        first = int(store.pool[first])
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def latest_of(store: Store, cell: int, most: int) -> Cells:
    """Return up to ``most`` of the entries that were added last to the list of a cell with several."""
    block = int(store.table.firsts[cell])
    latest = []
    while block >= 0 and most > 0:
        end = block + HEADER + int(store.pool[block + LENGTH])
        latest.append(store.pool[max(end - most, block + HEADER) : end])
        most -= len(latest[-1])
        block = int(store.pool[block])
    return np.concatenate(latest)


def shared_by_one(store: Store, hashes: Hashes, position: int) -> int:
    """Return how many of the shingles the entry at ``position`` holds."""
    begin = int(store.starts[position])
    other = store.shingles[begin : begin + store.size_of(position) - 1]
    return int((hashes[np.minimum(np.searchsorted(hashes, other), len(hashes) - 1)] == other).sum())


def shared_by(store: Store, hashes: Hashes, positions: Cells) -> Integers:
    """Return how many of the shingles each of the entries at ``positions`` holds."""
    sizes = (store.packed_counts[positions] >> SIZE_SHIFT).astype(np.int64)
    ends = np.cumsum(sizes)
    # The n-th shingle of an entry is n after its first.
    ranks = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    others = store.shingles[np.repeat(store.starts[positions], sizes) + ranks]
    held = hashes[np.minimum(np.searchsorted(hashes, others), len(hashes) - 1)] == others
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(held)))
    shared: Integers = sums[ends] - sums[ends - sizes]
    return shared
