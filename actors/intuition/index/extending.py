"""Adds one entry to the inverted lists, and removes one from them; ``store`` describes the lists and their blocks.

Plain loops over cells, written once: the compiled engine compiles them over arrays. The other engine runs them over
memory views, whose cells Python reads faster than those of an array.
"""

from typing import Any

from actors.intuition.index.hash_table import NO_ENTRY
from actors.intuition.index.store import CAPACITY, FIRST_CAPACITY, HEADER, LENGTH, MOST_CAPACITY, SIZE_SHIFT

FULL = -1
"""Returned if probing reaches the end of the table: it must grow, and the shingles must be placed again."""


def place_shingles(keys: Any, hashes: Any, cells: Any) -> int:
    """Find or create the cell of each shingle.

    Args:
        keys: The table's keys; new ones are written.
        hashes: The shingles.
        cells: Where the search for each begins; replaced by its cell.

    Returns:
        How many are new, or FULL.
    """
    new = 0
    last = len(keys) - 1
    for at in range(len(hashes)):
        wanted = hashes[at]
        cell = cells[at]
        while keys[cell] != wanted and keys[cell] != 0:
            cell += 1
        if keys[cell] == 0:
            if cell == last:
                return FULL
            keys[cell] = wanted
            new += 1
        cells[at] = cell
    return new


def append_postings(counts: Any, firsts: Any, smallest: Any, pool: Any, pooled: int, cells: Any, entry: int) -> int:
    """Append ``entry``, the highest so far, to the list of each cell; return how much of the pool is then in use.

    Args:
        counts: The number of entries in the list of each cell.
        firsts: The entry of each cell that has only one; of a cell with several, where its latest block is in the pool.
        smallest: The fewest shingles that an entry in the list of a cell has; NO_ENTRY where the list is empty.
        pool: The blocks. The first cell of a block is the position of the block before it, -1 if there is none.
        pooled: How many cells of the pool are in use.
        cells: The cells of the entry's shingles.
        entry: Its position in the order of adding.
    """
    for at in range(len(cells)):
        cell = cells[at]
        smallest[cell] = min(smallest[cell], len(cells))
        count = counts[cell]
        counts[cell] = count + 1
        if count == 0:
            firsts[cell] = entry
            continue
        block = firsts[cell]
        if count > 1 and pool[block + LENGTH] < pool[block + CAPACITY]:
            pool[block + HEADER + pool[block + LENGTH]] = entry
            pool[block + LENGTH] += 1
            continue
        capacity = FIRST_CAPACITY if count == 1 else min(2 * pool[block + CAPACITY], MOST_CAPACITY)
        firsts[cell] = pooled
        pool[pooled] = -1 if count == 1 else block
        pool[pooled + CAPACITY] = capacity
        if count == 1:
            pool[pooled + HEADER] = block  # until now the entry itself was in the cell
            pool[pooled + HEADER + 1] = entry
            pool[pooled + LENGTH] = 2
        else:
            pool[pooled + HEADER] = entry
            pool[pooled + LENGTH] = 1
        pooled += HEADER + capacity
    return pooled


def remove_postings(
    counts: Any, firsts: Any, smallest: Any, pool: Any, packed_counts: Any, cells: Any, entry: int
) -> None:
    """Remove ``entry`` from the list of each cell; the freed room stays unused until the store is built again.

    ``packed_counts`` holds an entry's number of shingles in its upper 16 bits. The others are as in
    :func:`append_postings`.
    """
    size = packed_counts[entry] >> SIZE_SHIFT
    for at in range(len(cells)):
        cell = cells[at]
        counts[cell] -= 1
        if counts[cell] == 0:
            smallest[cell] = NO_ENTRY
            continue
        block = firsts[cell]
        while pool[block + LENGTH] == 0 or pool[block + HEADER] > entry:
            block = pool[block]
        position = block + HEADER
        while pool[position] != entry:
            position += 1
        pool[block + LENGTH] -= 1
        for after in range(position, block + HEADER + pool[block + LENGTH]):
            pool[after] = pool[after + 1]
        head = firsts[cell]
        while pool[head + LENGTH] == 0:
            head = pool[head]
        firsts[cell] = head
        if counts[cell] == 1:
            firsts[cell] = pool[head + HEADER]
            smallest[cell] = packed_counts[pool[head + HEADER]] >> SIZE_SHIFT
        elif smallest[cell] == size:
            least = NO_ENTRY
            while head >= 0:
                for other in range(head + HEADER, head + HEADER + pool[head + LENGTH]):
                    least = min(least, packed_counts[pool[other]] >> SIZE_SHIFT)
                head = pool[head]
            smallest[cell] = least
