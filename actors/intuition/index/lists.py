"""Reading one list, and one entry's shingles."""

import numpy as np

from actors.intuition.index.store import HEADER, Store
from actors.intuition.index.table import Cells, Hashes


def entries_of(store: Store, cell: int) -> Cells:
    """Return the entries in the list of a cell that is not empty."""
    first = int(store.table.firsts[cell])
    if store.table.counts[cell] == 1:
        return store.table.firsts[cell : cell + 1]
    blocks = []
    while first >= 0:
        begin = first + HEADER
        blocks.append(store.pool[begin : begin + int(store.pool[first + 1])])
        first = int(store.pool[first])
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def shared_by(store: Store, hashes: Hashes, place: int) -> int:
    """Return how many of the shingles the entry at ``place`` holds."""
    begin = int(store.starts[place])
    other = store.shingles[begin : begin + store.size_of(place) - 1]
    return int((hashes[np.minimum(np.searchsorted(hashes, other), len(hashes) - 1)] == other).sum())
