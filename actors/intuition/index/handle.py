"""The index as a value: a store, and as of when it is asked."""

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import NamedTuple

from actors.intuition.index import interpreted
from actors.intuition.index.query import Answer, Query, similarity
from actors.intuition.index.store import Entry, Store
from actors.intuition.index.table import Hashes, Sizes
from schemas.persistent import Derived

COMPILED_FROM = 2048
"""Entries from which the compiled engine is used, where it is installed: for fewer it is not worth its loading."""

COMPACTED_FROM = 1024
"""Retired entries that are carried along at most where fewer than that count."""


class Found(NamedTuple):
    """An entry near a text."""

    name: str
    similarity: float


class Nearest(NamedTuple):
    """What is near a text: the most similar entries, best first, and the nearest motif, None where there is none."""

    similar: tuple[Found, ...]
    motif: Found | None


class Index(Derived):
    """The entries of one set, searchable; an immutable value to its holder, who keeps the set itself.

    One made without arguments holds nothing yet: the first question builds its store from the entries that the holder
    gives. ``with_entry`` and ``without_entry`` return the index of the changed set. Where this index is its store's
    latest, that is the same store, extended, and this index goes on to be answered as of its own version; where the
    store has gone another way since, it is an empty index, which the next question builds.
    """

    __slots__ = ("_count", "_store", "_version")

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._count = store.count if store is not None else 0
        self._version = store.version if store is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the store's arrays; 0 before it is built."""
        return self._store.nbytes if self._store is not None else 0

    def with_entry(self, entry: Entry) -> "Index":
        """Return the index of the set with ``entry`` added, its last."""
        store = self._latest()
        if store is None:
            return Index()
        _engine(store).add(store, entry)
        return Index(store)

    def without_entry(self, number: int) -> "Index":
        """Return the index of the set without the entry of that number."""
        store = self._latest()
        if store is None or store.retired >= max(COMPACTED_FROM, store.count - store.retired):
            return Index()  # compaction: the next question builds a store of what still counts
        store.retire(number)
        return Index(store)

    def nearest(
        self,
        entries: Callable[[], Sequence[Entry]],
        hashes: Hashes,
        situation: int,
        *,
        most: int,
        floor: float,
        motif_floor: float,
    ) -> Nearest:
        """Return what is near a text.

        Args:
            entries: Gives all entries of the set, in the order of adding, should the store have to be built.
            hashes: The text's ascending shingles, without repetition.
            situation: Hash of the situation's type.
            most: How many similar entries to return at most.
            floor: Least similarity of those, above 0.
            motif_floor: Least similarity of the nearest motif; 0 finds any that shares a shingle.
        """
        store = self._built(entries)
        if not len(hashes) or not self._count:
            return Nearest((), None)
        query = Query(hashes, situation, self._count, self._version, most, floor, motif_floor)
        return _named(store, query, _engine(store).search(store, query))

    def smallest(self, entries: Callable[[], Sequence[Entry]], hashes: Hashes) -> Sizes:
        """Return a bound from below on the size of the entries that hold each shingle, in shingles; else NONE.

        It may be that of an entry that counted before this version, or will after it.
        """
        store = self._built(entries)
        found: Sizes = _engine(store).smallest(store, hashes)
        return found

    def _latest(self) -> Store | None:
        store = self._store
        return store if store is not None and store.version == self._version else None

    def _built(self, entries: Callable[[], Sequence[Entry]]) -> Store:
        if self._store is None:
            # Not a change of value: what is built follows from the entries, and whoever asks sees the same answers.
            self._store = Store(entries())
            self._count, self._version = self._store.count, self._store.version
        return self._store


def _named(store: Store, query: Query, answer: Answer) -> Nearest:
    def found(place: int, overlap: int) -> Found:
        return Found(store.names[place], similarity(overlap, query.size, store.size_of(place)))

    similar = (found(*hit) for hit in answer.similar)
    motif = found(*answer.motif) if answer.motif is not None else None
    return Nearest(
        tuple(each for each in similar if each.similarity >= query.floor),
        motif if motif is not None and motif.similarity >= query.motif_floor else None,
    )


def _engine(store: Store) -> ModuleType:
    return (compiled_engine() if store.count >= COMPILED_FROM else None) or interpreted


@cache
def compiled_engine() -> ModuleType | None:
    """Return the compiled engine, None where numba is not installed; the first call takes about a second."""
    try:
        from actors.intuition.index import compiled
    except ImportError:
        return None
    return compiled
