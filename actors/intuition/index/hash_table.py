"""The hash table from shingles to their postings: cells in flat arrays, filled by linear probing.

The home of a shingle is determined by its upper 32 bits, scaled to the number of homes. So homes have the order of the
shingles, and a whole table can be laid out by one sort. Probing never wraps around: some cells follow the last home,
and the very last cell stays empty, which ends every search.

Key 0 marks an empty cell; signatures hold no 0.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
"""Shingles, as 64-bit hashes."""

Cells = npt.NDArray[np.int32]
"""Positions of entries, or of cells in the pool of posting lists."""

Integers = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.uint16]
"""Numbers of shingles."""

NO_ENTRY = np.iinfo(np.uint16).max
"""The smallest entry's size where there is no entry: larger than any real size."""

MOST_LOAD = 0.8
"""The table grows when more than this share of the homes is used."""

GROWTH = 1.5
"""How much larger the next table is."""

FEW = 64
"""Up to this many searches are continued one by one; more are moved on together, one cell at a time."""

_LEAST_HOMES = 1024
"""Fewest cells that a table has for the first place of a hash (its home)."""

_HALF = np.uint64(32)
"""Bits of half a hash."""


@dataclass(slots=True)
class Table:
    """Shingle -> number of postings, where they are, and the size of the smallest entry among them, cell by cell.

    Attributes:
        homes: Number of homes; there are more cells than that.
        used: Cells that hold a shingle.
        keys: The shingle of each cell, 0 for none.
        counts: How many postings it has.
        firsts: The one posting itself, or where in the pool the latest block of several is.
        smallest: The fewest shingles that an entry among its postings has, NO_ENTRY where there is none.
    """

    homes: int
    used: int
    keys: Hashes
    counts: Cells
    firsts: Cells
    smallest: Sizes

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        return self.keys.nbytes + self.counts.nbytes + self.firsts.nbytes + self.smallest.nbytes

    def home_of(self, hashes: Hashes) -> Integers:
        """Return where the search for each shingle begins."""
        return ((hashes >> _HALF) * np.uint64(self.homes) >> _HALF).astype(np.int64)

    def find(self, hashes: Hashes) -> Integers:
        """Return the cell of each shingle, or the empty cell at which its search ended."""
        cells = self.home_of(hashes)
        found = self.keys[cells]
        missed = np.flatnonzero((found != hashes) & (found != 0))
        while len(missed) > FEW:
            cells[missed] += 1
            found = self.keys[cells[missed]]
            missed = missed[(found != hashes[missed]) & (found != 0)]
        keys = self.keys.data
        for at in missed.tolist():
            cell, wanted = int(cells[at]) + 1, int(hashes[at])
            while keys[cell] != wanted and keys[cell] != 0:
                cell += 1
            cells[at] = cell
        return cells

    def has_room(self, more: int) -> bool:
        """Whether ``more`` new shingles fit into the table without growing it."""
        return self.used + more <= MOST_LOAD * self.homes


def lay_out(keys: Hashes, counts: Cells, firsts: Cells, smallest: Sizes, homes: int) -> Table:
    """Return a table of at least ``homes`` homes that holds these shingles, which are distinct and ascending."""
    homes = max(homes, _LEAST_HOMES, int(len(keys) / MOST_LOAD) + 1)
    while True:
        table = _empty(homes)
        order = np.arange(len(keys))
        # In order of their homes each takes its home, or the cell after the one before it.
        cells = np.maximum.accumulate(table.home_of(keys) - order) + order
        if not len(cells) or cells[-1] < len(table.keys) - 1:
            break
        homes = int(homes * GROWTH)  # more shingles follow the last home than there are spare cells
    table.keys[cells] = keys
    table.counts[cells] = counts
    table.firsts[cells] = firsts
    table.smallest[cells] = smallest
    table.used = len(keys)
    return table


def grown(table: Table) -> Table:
    """Return a larger table with the same content."""
    filled = np.flatnonzero(table.keys)
    filled = filled[np.argsort(table.keys[filled])]
    homes = int(table.homes * GROWTH) + 1
    return lay_out(table.keys[filled], table.counts[filled], table.firsts[filled], table.smallest[filled], homes)


def _empty(homes: int) -> Table:
    cells = homes + 64 + homes // 256
    return Table(
        homes=homes,
        used=0,
        keys=np.zeros(cells, np.uint64),
        counts=np.zeros(cells, np.int32),
        firsts=np.zeros(cells, np.int32),
        smallest=np.full(cells, NO_ENTRY, np.uint16),
    )
