"""Search of the index in plain loops, for queries whose lists (of the entries that hold each shingle) are short.

A situation is the hash of the kind of situation that an input or a precedent names; it counts like one more shingle.
"""

from typing import NamedTuple

from actors.intuition.index.hash_table import Cells
from actors.intuition.index.postings import shared_by_one
from actors.intuition.index.query import Hit, Query
from actors.intuition.index.store import SIZE_SHIFT, Store


class _RankedEntry(NamedTuple):
    """A hit in ranking order: highest score first, then the one added first."""

    minus_score: float
    position: int
    overlap: int


def search_few(store: Store, query: Query, lists: list[Cells], unread: int) -> tuple[tuple[Hit, ...], Hit | None]:
    """Return the most similar entries and the nearest motif.

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
