"""Searching where the lists to be read are short: plain loops."""

from typing import NamedTuple

from actors.intuition.index.lists import entries_of, shared_by
from actors.intuition.index.query import Answer, Hit, Query
from actors.intuition.index.store import SIZE_SHIFT, Store


class _Ranked(NamedTuple):
    """A hit in the order of nearness: highest score first, then the one added first."""

    minus_score: float
    place: int
    overlap: int


def search_few(store: Store, query: Query, cells: list[int], unread: int) -> Answer:
    """Return the most similar entries and the nearest motif.

    Args:
        store: The store.
        query: The question.
        cells: The cells of the question's shingles that have a list, the shortest first.
        unread: How many of the last lists no entry can be in that is not in another, if it is near enough.
    """
    tally: dict[int, int] = {}
    for cell in cells[: len(cells) - unread]:
        for place in entries_of(store, cell).tolist():
            tally[place] = tally.get(place, 0) + 1
    needed = min(query.least, query.motif_least)
    similar: list[_Ranked] = []
    motif: _Ranked | None = None
    marks, died, situations = store.marks.data, store.died.data, store.situations.data
    for place, shared in tally.items():
        size = (marks[place] >> SIZE_SHIFT) + 1
        most = min(shared + unread + 1, size)
        if most * most / size < needed or place >= query.entries or died[place] <= query.version:
            continue
        overlap = shared_by(store, query.hashes, place) if unread else shared
        overlap += situations[place] == query.situation
        score = overlap * overlap / size
        ranked = _Ranked(-score, place, overlap)
        if score >= query.least:
            similar.append(ranked)
        if score >= query.motif_least and store.harmful[place] and (motif is None or ranked < motif):
            motif = ranked
    hits = tuple(Hit(each.place, each.overlap) for each in sorted(similar)[: query.most])
    return Answer(hits, Hit(motif.place, motif.overlap) if motif is not None else None)
