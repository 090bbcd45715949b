"""The store: signatures and their inverted lists in flat arrays.

An *entry* is a signature with its name. Entries are in the order of adding; the arrays, and all modules here, know an
entry by its position in them. Every change is a new version: adding appends an entry, retiring removes it from its
lists. So the lists hold no retired entry. Their lengths, by which a search's work is measured, follow from the entries
alone and not from the history.

Every shingle has a complete list, so that a search may use any similarity; each search decides what it need not read. A
shingle of one entry keeps that entry in its cell of the table. Several entries are kept in blocks of the ``pool``:
position of the previous block (-1: none), number of entries, capacity, then the entries, ascending.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from actors.intuition.index.hash_table import GROWTH, Cells, Hashes, Integers, Table, grown, lay_out

HEADER = 3
"""Cells before a block's entries: position of the previous block, number of entries, capacity."""

LENGTH, CAPACITY = 1, 2
"""Which of these cells hold the number of entries, and the capacity."""

FIRST_CAPACITY, MOST_CAPACITY = 4, 1024
"""Capacity of the first block of a list, and of the largest: each block has twice the capacity of the one before."""

SIZE_SHIFT = 16
"""Bits below an entry's number of shingles in ``packed_counts``. They count the shingles shared with a query."""

TALLY_MASK = (1 << SIZE_SHIFT) - 1
"""The bit mask of that count."""


PackedCounts = npt.NDArray[np.uint32]


class Entry(NamedTuple):
    """What is added to the store.

    Attributes:
        number: Its position in the order of adding; numbers ascend, with gaps.
        name: The name that a search reports.
        signature: Ascending 64-bit shingles, little-endian, without repetition and without 0.
        situation: Hash of the kind of situation (a name that the caller of an input chooses).
        harmful: Whether it is a motif.
    """

    number: int
    name: str
    signature: bytes
    situation: int
    harmful: bool


class Store:
    """Entries and their lists, after ``version`` changes.

    Arrays have spare room: in use are ``count`` entries, ``filled`` shingles and ``pooled`` cells of the pool.

    ``names``, ``numbers``, ``situations`` and ``harmful`` hold what was given of each entry (``Entry``). ``shingles``
    are those of all entries, one entry after the other, and ``starts`` says where each entry's begin. ``smallest`` is
    the fewest shingles of any entry. ``table`` and ``pool`` hold the lists. ``retired`` counts the entries retired.

    ``packed_counts`` holds an entry's number of shingles in its upper 16 bits. The lower 16 bits are the working memory
    of a search, and zero between two searches; ``touched`` is another, for the entries that a search has found. Both
    counts are in one cell, since reading a list mostly waits for memory. So a store serves one search at a time.
    """

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        """Build the store of these entries at version 0, all at once by sorting."""
        self.count = len(entries)
        self.version = 0
        self.retired = 0
        self.names = [entry.name for entry in entries]
        shingles = np.frombuffer(b"".join(entry.signature for entry in entries), dtype="<u8").astype(np.uint64)
        self.numbers: Integers = np.array([entry.number for entry in entries], np.int64)
        sizes = np.array([len(entry.signature) // 8 for entry in entries], np.int32)
        self.packed_counts: PackedCounts = sizes.astype(np.uint32) << np.uint32(SIZE_SHIFT)
        self.starts: Integers = np.cumsum(sizes, dtype=np.int64) - sizes
        self.shingles: Hashes = shingles
        self.filled = len(shingles)
        self.situations: Hashes = np.array([entry.situation for entry in entries], np.uint64)
        self.harmful: npt.NDArray[np.bool_] = np.array([entry.harmful for entry in entries], np.bool_)
        self.smallest = int(sizes.min()) if self.count else 1
        self.touched: Cells = np.zeros(self.count, np.int32)
        self.table, self.pool = _inverted(shingles, np.repeat(np.arange(self.count, dtype=np.int32), sizes), sizes)
        self.pooled = len(self.pool)

    @property
    def nbytes(self) -> int:
        """Bytes that all arrays take, names not counted."""
        arrays: tuple[npt.NDArray[Any], ...] = (
            self.numbers, self.packed_counts, self.starts, self.shingles, self.situations, self.harmful, self.touched,
            self.pool,
        )  # fmt: skip
        return self.table.nbytes + sum(array.nbytes for array in arrays)

    def begin_entry(self, entry: Entry) -> Hashes:
        """Append an entry and make room for its postings; return its shingles. The engine then extends their lists."""
        hashes = np.frombuffer(entry.signature, dtype="<u8").astype(np.uint64)
        self._make_room(len(hashes))
        position, filled = self.count, self.filled
        self.names.append(entry.name)
        self.numbers[position] = entry.number
        self.packed_counts[position], self.starts[position] = len(hashes) << SIZE_SHIFT, filled
        self.shingles[filled : filled + len(hashes)] = hashes
        self.situations[position], self.harmful[position] = entry.situation, entry.harmful
        self.smallest = min(self.smallest, len(hashes))
        self.filled += len(hashes)
        self.count += 1
        self.version += 1
        return hashes

    def size_of(self, position: int) -> int:
        """Return the number of elements of an entry: its shingles, and its kind of situation."""
        return (int(self.packed_counts[position]) >> SIZE_SHIFT) + 1

    def begin_retiring(self, number: int) -> tuple[int, Hashes]:
        """Count an entry as retired; return its position and its shingles. The engine then shortens their lists."""
        self.version += 1
        self.retired += 1
        position = int(np.searchsorted(self.numbers[: self.count], number))
        start = int(self.starts[position])
        return position, self.shingles[start : start + self.size_of(position) - 1]

    def grow_table(self) -> None:
        """Replace the table by a larger one."""
        self.table = grown(self.table)

    def _make_room(self, size: int) -> None:
        entries = self.count + 1
        self.numbers = _longer(self.numbers, entries)
        self.packed_counts = _longer(self.packed_counts, entries)
        self.starts = _longer(self.starts, entries)
        self.situations = _longer(self.situations, entries)
        self.harmful = _longer(self.harmful, entries)
        self.touched = _longer(self.touched, entries)
        self.shingles = _longer(self.shingles, self.filled + size)
        # In the worst case every shingle begins a block, whose capacity is at most twice the number of entries.
        self.pool = _longer(self.pool, self.pooled + size * (HEADER + min(MOST_CAPACITY, FIRST_CAPACITY + 2 * entries)))
        while not self.table.has_room(size):
            self.grow_table()


def _longer(array: npt.NDArray[Any], needed: int) -> Any:
    """Return the array if it has ``needed`` cells, else a copy with a quarter more than that, with zeros at the end."""
    if needed <= len(array):
        return array
    copy = np.zeros(needed + needed // 4 + 256, array.dtype)
    copy[: len(array)] = array
    return copy


def _inverted(shingles: Hashes, owners: Cells, sizes_of: Cells) -> tuple[Table, Cells]:
    """Return the table and the pool for shingles and the entries that own them, both in the order of entries.

    ``sizes_of`` is the number of shingles of each entry.
    """
    order = np.argsort(shingles, kind="stable")
    shingles, owners = shingles[order], owners[order]
    begins = np.flatnonzero(np.concatenate(([True], shingles[1:] != shingles[:-1]))) if len(shingles) else order
    counts = np.diff(begins, append=len(shingles)).astype(np.int32)
    several = counts > 1
    sizes = np.where(several, counts + HEADER, 0)
    blocks = np.cumsum(sizes) - sizes
    firsts = np.where(several, blocks, owners[begins]).astype(np.int32)
    pool = np.full(int(sizes.sum()), -1, np.int32)
    heads, lengths = blocks[several], counts[several]
    pool[heads + LENGTH] = pool[heads + CAPACITY] = lengths
    # The n-th posting of a list goes to the n-th cell after its block's header.
    ranks = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    pool[np.repeat(heads + HEADER, lengths) + ranks] = owners[np.repeat(several, counts)]
    smallest = np.minimum.reduceat(sizes_of[owners], begins) if len(begins) else sizes_of
    return lay_out(shingles[begins], counts, firsts, smallest.astype(np.uint16), int(len(begins) * GROWTH)), pool
