"""The index's search engine compiled by numba (extra ``fast``): the same answers as the interpreted one.

Machine code is cached on disk beside this file, or where numba keeps it for the user, so that only the first process
after an installation waits for the compiler.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from actors.intuition.index.extending import FULL, append_postings, place_shingles, remove_postings
from actors.intuition.index.hash_table import Hashes, Sizes
from actors.intuition.index.query import COMPARED, Answer, Hit, Query, plan_reading
from actors.intuition.index.store import HEADER, LENGTH, SIZE_SHIFT, TALLY_MASK, Entry, Store

Function = TypeVar("Function", bound=Callable[..., Any])


def _compile(function: Function) -> Function:
    return cast(Function, numba.njit(cache=True)(function))


_place_shingles = _compile(place_shingles)
_append_postings = _compile(append_postings)
_remove_postings = _compile(remove_postings)
_planned = _compile(plan_reading)


def add(store: Store, entry: Entry) -> None:
    """Append an entry to the store and to the list of each of its shingles."""
    hashes = store.begin_entry(entry)
    while True:
        table = store.table
        cells = table.home_of(hashes)
        new = _place_shingles(table.keys, hashes, cells)
        if new != FULL:
            break
        store.grow_table()
    table.used += new
    store.pooled = _append_postings(
        table.counts, table.firsts, table.smallest, store.pool, store.pooled, cells, store.count - 1
    )


def retire(store: Store, number: int) -> None:
    """Remove the entry with that number from the list of each of its shingles."""
    position, hashes = store.begin_retiring(number)
    table = store.table
    cells = table.find(hashes)
    _remove_postings(table.counts, table.firsts, table.smallest, store.pool, store.packed_counts, cells, position)


def search(store: Store, query: Query) -> Answer:
    """Return the most similar entries and the nearest motif; see ``index`` for why it is exact."""
    table = store.table
    similar = np.empty((query.most + 1, 2), np.int64)
    found, motif, motif_overlap, work, cut = _search(
        table.keys,
        table.counts,
        table.firsts,
        store.pool,
        store.shingles,
        store.starts,
        store.packed_counts,
        store.situations,
        store.harmful,
        store.touched,
        store.smallest,
        query.hashes,
        table.home_of(query.hashes),
        np.uint64(query.situation),
        query.least,
        query.motif_least,
        query.budget,
        similar,
    )
    return Answer(
        tuple(Hit(position, overlap) for position, overlap in similar[:found].tolist()),
        Hit(motif, motif_overlap) if motif >= 0 else None,
        work,
        cut,
    )


def smallest(store: Store, hashes: Hashes) -> Sizes:
    """Return for each shingle, of which some may repeat, the size of the smallest entry that holds it, or NO_ENTRY."""
    table = store.table
    found: Sizes = _smallest(table.keys, table.smallest, hashes, table.home_of(hashes))
    return found


@_compile
def _smallest(keys: Any, sizes: Any, hashes: Any, cells: Any) -> Any:
    """Return for each shingle the size of the smallest entry that holds it; see ``smallest``."""
    found = np.empty(len(hashes), np.uint16)
    for at in range(len(hashes)):
        found[at] = sizes[_find(keys, hashes[at], cells[at])]
    return found


@_compile
def _find(keys: Any, sought: Any, cell: Any) -> Any:
    """Return the cell of a shingle, or the empty cell at which its search ends."""
    while keys[cell] != sought and keys[cell] != 0:
        cell += 1
    return cell


@_compile
def _score(overlap: int, size: int) -> float:
    """Return the score of an entry: its order is that of the cosine with the query (see ``query``)."""
    return float(overlap * overlap) / size


@_compile
def _touch(packed_counts: Any, touched: Any, gathered: int, entry: int, largest: float) -> int:
    """Count one more shared shingle for an entry, unless it is new and too large; return how many entries were found.

    These are the first ``gathered`` of ``touched``.
    """
    packed = packed_counts[entry]
    if packed & TALLY_MASK == 0:
        if (packed >> SIZE_SHIFT) + 1 > largest:
            return gathered
        touched[gathered] = entry
        gathered += 1
    packed_counts[entry] = packed + 1
    return gathered


@_compile
def _shared(hashes: Any, shingles: Any, begin: int, size: int) -> int:
    """Return how many of the query's shingles are among an entry's: ``size`` from ``begin`` on; both ascend."""
    shared = 0
    at = 0
    for other in range(begin, begin + size):
        # Binary search: a long text is not scanned for each short entry.
        end = len(hashes)
        while at < end:
            middle = (at + end) // 2
            if hashes[middle] < shingles[other]:
                at = middle + 1
            else:
                end = middle
        if at == len(hashes):
            break
        if hashes[at] == shingles[other]:
            shared += 1
    return shared


@_compile
def _search(
    keys: Any,
    counts: Any,
    firsts: Any,
    pool: Any,
    shingles: Any,
    starts: Any,
    packed_counts: Any,
    situations: Any,
    harmful: Any,
    touched: Any,
    smallest: int,
    hashes: Any,
    cells: Any,
    situation: Any,
    least: float,
    motif_least: float,
    budget: int,
    similar: Any,
) -> Any:
    """Fill ``similar`` with positions and overlaps; return their count, the motif and its overlap, work and cut.

    ``keys``, ``counts`` and ``firsts`` are the hash table's, ``pool`` to ``smallest`` the store's, ``hashes`` and
    ``situation`` to ``budget`` the query's; ``cells`` says where the search for each shingle begins. The first
    ``gathered`` of ``touched`` are the entries found so far; the lower bits of their ``packed_counts`` (``TALLY_MASK``)
    count the shingles that each was found to share with the query.
    """
    lists = 0
    lengths = np.empty(len(hashes), np.int64)
    for at in range(len(hashes)):
        cell = _find(keys, hashes[at], cells[at])
        if counts[cell] > 0:
            cells[lists] = cell
            lengths[lists] = counts[cell]
            lists += 1
    # Stable: the order of equally long lists matters where the last ones are cut off.
    order = np.argsort(lengths[:lists], kind="mergesort")
    lengths = lengths[order]
    allowed, latest, work, cut_off = _planned(lengths, min(least, motif_least), budget)

    gathered = 0
    unread = lists - allowed
    left = lengths.sum()
    nearest = motif_least
    for read in range(allowed):
        rest = lists - read
        length = lengths[read]
        if length > gathered:
            for at in range(gathered):
                entry = touched[at]
                if harmful[entry]:
                    packed = int(packed_counts[entry])
                    same = 1 if situations[entry] == situation else 0
                    nearest = max(nearest, _score((packed & TALLY_MASK) + same, (packed >> SIZE_SHIFT) + 1))
        needed = min(least, nearest)
        # An entry not found so far that has more elements than this can no longer reach the required score.
        largest = _score(rest + 1, 1) / needed if needed > 0.0 else np.inf
        if _score(rest + 1, max(rest, smallest) + 1) < needed:
            if cut_off or COMPARED * gathered < left:
                unread = rest
                break
            largest = 0.0  # many were found: reading on costs less than comparing each
        left -= length
        block = firsts[cells[order[read]]]
        if length == 1:
            gathered = _touch(packed_counts, touched, gathered, block, largest)
            continue
        while block >= 0:
            for at in range(block + HEADER, block + HEADER + pool[block + LENGTH]):
                gathered = _touch(packed_counts, touched, gathered, pool[at], largest)
            block = pool[block]

    else:
        if cut_off:
            block = firsts[cells[order[allowed]]]
            while latest > 0:
                end = block + HEADER + pool[block + LENGTH]
                for at in range(max(end - latest, block + HEADER), end):
                    gathered = _touch(packed_counts, touched, gathered, pool[at], np.inf)
                latest -= pool[block + LENGTH]
                block = pool[block]

    most = len(similar) - 1
    found = 0
    least_listed = least  # least score of an entry that is put into ``similar``
    motif = -1
    motif_overlap = 0
    motif_score = motif_least
    for at in range(gathered):
        entry = touched[at]
        packed = int(packed_counts[entry])
        overlap = packed & TALLY_MASK
        packed_counts[entry] = packed - overlap
        size = (packed >> SIZE_SHIFT) + 1
        reachable = _score(min(overlap + unread + 1, size), size)
        if reachable < min(least_listed, motif_score):
            continue
        if unread:
            overlap = _shared(hashes, shingles, starts[entry], size - 1)
        if situations[entry] == situation:
            overlap += 1
        score = _score(overlap, size)
        if harmful[entry] and (score > motif_score or (score == motif_score and (motif < 0 or entry < motif))):
            motif, motif_overlap, motif_score = entry, overlap, score
        if most and score >= least_listed:
            # Insertion sort: similar holds only a few.
            slot = found
            while slot > 0:
                other = similar[slot - 1, 0]
                other_score = _score(similar[slot - 1, 1], (int(packed_counts[other]) >> SIZE_SHIFT) + 1)
                if other_score > score or (other_score == score and other < entry):
                    break
                similar[slot, 0] = other
                similar[slot, 1] = similar[slot - 1, 1]
                slot -= 1
            similar[slot, 0] = entry
            similar[slot, 1] = overlap
            found = min(found + 1, most)
            if found == most:
                last = similar[most - 1, 0]
                least_listed = _score(similar[most - 1, 1], (int(packed_counts[last]) >> SIZE_SHIFT) + 1)
    return found, motif, motif_overlap, work, cut_off
