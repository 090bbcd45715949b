"""The index's search engine that needs only numpy: exact, several times slower than the compiled one.

A *tally* is how many shingles an entry shares with the query, as counted so far; ``touched`` are the entries found.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.intuition.index.extending import FULL, append_postings, place_shingles, remove_postings
from actors.intuition.index.hash_table import Cells, Hashes, Integers, Sizes
from actors.intuition.index.postings import entries_of, latest_of, shared_by, shared_by_one
from actors.intuition.index.query import COMPARED, Answer, Hit, Query, plan_reading, reach_of
from actors.intuition.index.store import SIZE_SHIFT, TALLY_MASK, Entry, Store

AT_ONCE = 512
"""The shortest lists are read in one call, up to this many postings in all."""

FEW = 192
"""Up to this many postings, plain Python loops are faster than array operations."""

Scores = npt.NDArray[np.float64]
Hits = tuple[tuple[Hit, ...], Hit | None]
"""The most similar entries, and the nearest motif if there is one."""


class _RankedEntry(NamedTuple):
    """A hit in ranking order: highest score first, then the one added first."""

    minus_score: float
    position: int
    overlap: int


def add(store: Store, entry: Entry) -> None:
    """Append an entry to the store and to the list of each of its shingles."""
    hashes = store.begin_entry(entry)
    while True:
        cells = store.table.home_of(hashes).tolist()
        new = place_shingles(store.table.keys.data, hashes.tolist(), cells)
        if new != FULL:
            break
        store.grow_table()
    store.table.used += new
    table, pool = store.table, store.pool
    counts, firsts, smallest = table.counts.data, table.firsts.data, table.smallest.data
    store.pooled = append_postings(counts, firsts, smallest, pool.data, store.pooled, cells, store.count - 1)


def retire(store: Store, number: int) -> None:
    """Remove the entry with that number from the list of each of its shingles."""
    position, hashes = store.begin_retiring(number)
    table = store.table
    counts, firsts, smallest = table.counts.data, table.firsts.data, table.smallest.data
    cells = table.find(hashes).tolist()
    remove_postings(counts, firsts, smallest, store.pool.data, store.packed_counts.data, cells, position)


def search(store: Store, query: Query) -> Answer:
    """Return the most similar entries and the nearest motif; see ``index`` for why it is exact."""
    cells = store.table.find(query.hashes)
    counts = store.table.counts[cells]
    order = np.argsort(counts, kind="stable")
    order = order[np.searchsorted(counts[order], 1) :]  # without empty lists, which come first
    cells, counts = cells[order], counts[order]
    needed = min(query.least, query.motif_least)
    # ``allowed`` of the shortest lists may be read, and ``some`` of the latest entries of the list after those.
    allowed, some, work, cut = plan_reading(counts.tolist(), needed, query.budget)
    latest = latest_of(store, int(cells[allowed]), some) if some else store.touched[:0]
    unread = len(cells) - allowed
    while unread < len(cells) and reach_of(unread + 1, store.smallest) < needed:
        unread += 1
    if int(counts[: len(cells) - unread].sum()) + len(latest) <= FEW:
        lists = [*(entries_of(store, cell) for cell in cells[: len(cells) - unread].tolist()), latest]
        similar, motif = _search_few(store, query, lists, unread)
    else:
        similar, motif = _search_many(store, query, cells, counts, allowed, latest)
    return Answer(similar, motif, work, cut)


def _search_few(store: Store, query: Query, lists: list[Cells], unread: int) -> Hits:
    """Return the most similar entries and the nearest motif, by plain loops: the lists are short.

    Args:
        store: The store.
        query: The query.
        lists: For some of the query's shingles, the entries that hold it.
        unread: How many further shingles have a list that is not read, because the budget does not suffice, or
            because it holds no entry that is near enough and not in the other lists.
    """
    tally: dict[int, int] = {}
    for entries in lists:
        for position in entries.tolist():
            tally[position] = tally.get(position, 0) + 1
    needed = min(query.least, query.motif_least)
    similar: list[_RankedEntry] = []
    motif: _RankedEntry | None = None
    packed_counts, situations = store.packed_counts.data, store.situations.data
    for position, shared in tally.items():
        size = (packed_counts[position] >> SIZE_SHIFT) + 1
        # At most, the entry also holds all shingles whose lists are not read, and has the same situation.
        most = min(shared + unread + 1, size)
        if most * most / size < needed:
            continue
        overlap = shared_by_one(store, query.hashes, position) if unread else shared
        overlap += situations[position] == query.situation
        score = overlap * overlap / size
        ranked = _RankedEntry(-score, position, overlap)
        if score >= query.least:
            similar.append(ranked)
        if score >= query.motif_least and store.harmful[position] and (motif is None or ranked < motif):
            motif = ranked
    hits = tuple(Hit(each.position, each.overlap) for each in sorted(similar)[: query.most])
    return hits, Hit(motif.position, motif.overlap) if motif is not None else None


def _search_many(store: Store, query: Query, cells: Integers, counts: Cells, allowed: int, latest: Cells) -> Hits:
    """Return the most similar entries and the nearest motif among those in long lists, by array operations."""
    touched, unread = _gather(store, query, cells, counts, allowed, latest)
    shared = (store.packed_counts[touched] & TALLY_MASK).astype(np.int64)
    store.packed_counts[touched] -= shared.astype(np.uint32)
    sizes = (store.packed_counts[touched] >> SIZE_SHIFT).astype(np.int64) + 1
    reachable = _scores(np.minimum(shared + unread + 1, sizes), sizes) >= min(query.least, query.motif_least)
    touched, shared, sizes = touched[reachable], shared[reachable], sizes[reachable]
    if unread:
        shared = shared_by(store, query.hashes, touched)
    overlaps = shared + (store.situations[touched] == np.uint64(query.situation))
    scores = _scores(overlaps, sizes)
    similar = _best(touched, scores, overlaps, scores >= query.least, query.most)
    motifs = _best(touched, scores, overlaps, store.harmful[touched] & (scores >= query.motif_least), 1)
    return similar, motifs[0] if motifs else None


def smallest(store: Store, hashes: Hashes) -> Sizes:
    """Return for each shingle, of which some may repeat, the size of the smallest entry that holds it, or NO_ENTRY."""
    return store.table.smallest[store.table.find(hashes)]


def _gather(
    store: Store, query: Query, cells: Integers, counts: Cells, allowed: int, latest: Cells
) -> tuple[Cells, int]:
    """Count the entries in the allowed lists, the shortest first; return the entries and how many lists went unread.

    ``latest`` are entries of the list after those.
    """
    # The overhead of a call exceeds the work on a few short lists.
    ends = np.cumsum(counts)
    short = min(int(np.searchsorted(ends, AT_ONCE, side="right")), allowed)
    gathered = _gather_at_once(store, [entries_of(store, cell) for cell in cells[:short].tolist()])
    nearest = query.motif_least
    for read, cell in enumerate(cells[short:allowed].tolist(), short):
        rest = len(cells) - read
        if counts[read] > gathered:
            nearest = max(nearest, _nearest_so_far(store, query, store.touched[:gathered]))
        needed = min(query.least, nearest)
        # An entry not found so far that has more elements than this can no longer reach the required score.
        largest = (rest + 1) * (rest + 1) / needed if needed > 0.0 else np.inf
        if reach_of(rest, store.smallest) < needed:
            if allowed < len(cells) or COMPARED * gathered < ends[-1] - ends[read] + counts[read]:
                return store.touched[:gathered], rest
            largest = 0.0  # many were found: reading on costs less than comparing each
        gathered = _tally(store, entries_of(store, cell), gathered, largest)
    gathered = _tally(store, latest, gathered, np.inf)
    return store.touched[:gathered], len(cells) - allowed


def _tally(store: Store, entries: Cells, gathered: int, largest: float) -> int:
    """Count one more shared shingle for the entries, except new ones that are too large; return how many were found."""
    packed_counts = store.packed_counts[entries]
    new = (packed_counts & TALLY_MASK) == 0
    fits = (packed_counts >> SIZE_SHIFT) + 1 <= largest
    fresh = entries[new & fits]
    store.touched[gathered : gathered + len(fresh)] = fresh
    store.packed_counts[entries[fits | ~new]] += np.uint32(1)
    return gathered + len(fresh)


def _gather_at_once(store: Store, lists: list[Cells]) -> int:
    """Count the entries in some first lists; return how many there are."""
    if not lists:
        return 0
    entries, tallies = np.unique(np.concatenate(lists), return_counts=True)
    store.touched[: len(entries)] = entries
    store.packed_counts[entries] += tallies.astype(np.uint32)
    return len(entries)


def _nearest_so_far(store: Store, query: Query, touched: Cells) -> float:
    """Return a score that the nearest motif has at least, from what was read so far."""
    motifs = touched[store.harmful[touched]]
    tallies = (store.packed_counts[motifs] & TALLY_MASK).astype(np.int64) + (
        store.situations[motifs] == np.uint64(query.situation)
    )
    return float(_scores(tallies, (store.packed_counts[motifs] >> SIZE_SHIFT).astype(np.int64) + 1).max(initial=0.0))


def _scores(overlaps: Integers, sizes: Integers) -> Scores:
    """Return the scores of entries: their order is that of the cosines with the query (see ``query``)."""
    return (overlaps * overlaps) / sizes


def _best(
    positions: Cells, scores: Scores, overlaps: Integers, wanted: npt.NDArray[np.bool_], most: int
) -> tuple[Hit, ...]:
    """Return the ``most`` best of the wanted entries, highest score first, then the one added first."""
    chosen = np.flatnonzero(wanted)
    if len(chosen) > most:
        # Entries below the score at rank ``most`` are dropped; equal ones stay until the order of adding decides.
        least = np.partition(scores[chosen], len(chosen) - most)[len(chosen) - most] if most else np.inf
        chosen = chosen[scores[chosen] >= least]
    ranked = chosen[np.lexsort((positions[chosen], -scores[chosen]))][:most]
    return tuple(Hit(int(positions[at]), int(overlaps[at])) for at in ranked)
