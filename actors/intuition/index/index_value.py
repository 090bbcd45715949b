"""The index as an immutable value: a store, valid as long as the store has not moved on from that value."""

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np

from actors.intuition.index import interpreted
from actors.intuition.index.hash_table import Hashes, Sizes
from actors.intuition.index.query import Answer, Query, similarity
from actors.intuition.index.store import Entry, Store
from schemas.persistent import Derived

COMPILED_FROM = 2048
"""From this many entries on the compiled engine is used, if installed; for fewer, loading it does not pay."""

COMPACTED_FROM = 1024
"""A store is built anew, without its retired entries, once it has this many of them, and no more others."""


class SimilarEntry(NamedTuple):
    """An entry near a text: its name, and the cosine of both sets of shingles, from 0 to 1."""

    name: str
    similarity: float


class Nearest(NamedTuple):
    """The entries near a text: the most similar ones, best first, and the nearest motif, if there is one.

    A motif is the entry of a precedent that did harm. ``work`` is the cost of the search, in postings; ``cut`` says
    that the budget did not suffice for all of it.
    """

    similar: tuple[SimilarEntry, ...]
    motif: SimilarEntry | None
    work: int = 0
    cut: bool = False


class Index(Derived):
    """The searchable entries of one set; immutable for its owner, which keeps the set itself.

    An index made without arguments is empty: the first query builds its store from the entries of the owner.
    ``with_entry`` and ``without_entry`` return the index of the changed set. If this index is its store's latest
    version, the returned index takes over the same store, changed, and this one has none any more. If this one is
    queried or changed again, a new store is built for it.
    """

    __slots__ = ("_store", "_version")

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._version = store.version if store is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the store's arrays; 0 before it is built."""
        return self._store.nbytes if self._store is not None else 0

    def with_entry(self, entry: Entry) -> "Index":
        """Return the index of the set with ``entry`` added at its end."""
        store = self._latest()
        if store is None:
            return Index()
        _engine(store).add(store, entry)
        return Index(store)

    def without_entry(self, number: int) -> "Index":
        """Return the index of the set without the entry with that number."""
        store = self._latest()
        if store is None or store.retired >= max(COMPACTED_FROM, store.count - store.retired):
            return Index()  # compaction: the next query builds a store without the retired entries
        _engine(store).retire(store, number)
        return Index(store)

    def nearest(self, entries: Callable[[], Sequence[Entry]], query: Query) -> Nearest:
        """Return the entries near a text.

        ``entries`` returns all entries of the set in the order of adding, in case the store must be built.
        """
        store = self.build(entries)
        if not len(query.hashes) or not store.count:
            return Nearest((), None)
        return _named(store, query, _engine(store).search(store, query))

    def smallest(self, entries: Callable[[], Sequence[Entry]], hashes: Hashes) -> Sizes:
        """Return for each shingle the size of the smallest entry that holds it; NO_ENTRY where none does."""
        store = self.build(entries)
        found: Sizes = _engine(store).smallest(store, hashes)
        return found

    def _latest(self) -> Store | None:
        store = self._store
        return store if store is not None and store.version == self._version else None

    def build(self, entries: Callable[[], Sequence[Entry]]) -> Store:
        """Return the store; it is built of ``entries``, as ``nearest`` takes them, where there is none."""
        store = self._latest()
        if store is None:
            # The value does not change: the store is derived from the entries, and every query gives the same answers.
            # The version first: another thread may change the store as soon as it is here.
            store = Store(entries())
            self._version = store.version
            self._store = store
        return store


def _named(store: Store, query: Query, answer: Answer) -> Nearest:
    def found(position: int, overlap: int) -> SimilarEntry:
        return SimilarEntry(store.names[position], similarity(overlap, query.size, store.size_of(position)))

    similar = (found(*hit) for hit in answer.similar)
    motif = found(*answer.motif) if answer.motif is not None else None
    return Nearest(
        tuple(each for each in similar if each.similarity >= query.floor),
        motif if motif is not None and motif.similarity >= query.motif_floor else None,
        answer.work,
        answer.cut,
    )


def _engine(store: Store) -> ModuleType:
    return (compiled_engine() if store.count >= COMPILED_FROM else None) or interpreted


def warm_engine() -> None:
    """Compile everything that the compiled engine does, on a few entries of its own, if the engine is installed."""
    engine = compiled_engine()
    if engine is None:
        return
    hashes = np.arange(1, 4, dtype=np.uint64)
    first, second = (Entry(number, f"{number}", hashes.tobytes(), 7, True) for number in (1, 2))
    store = Store([first])
    engine.add(store, second)
    engine.search(store, Query(hashes, 7, 1, 0.5, 0.0))
    engine.smallest(store, hashes)
    engine.retire(store, 1)


@cache
def compiled_engine() -> ModuleType | None:
    """Return the compiled engine, None where numba is not installed; the first call takes about a second."""
    try:
        from actors.intuition.index import compiled
    except ImportError:
        return None
    return compiled
