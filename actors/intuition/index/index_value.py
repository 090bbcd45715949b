"""The index as a value: a store, as long as the store is what the value was made of."""

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np

from actors.intuition.index import interpreted
from actors.intuition.index.hash_table import Hashes, Sizes
from actors.intuition.index.query import UNLIMITED, Answer, Query, similarity
from actors.intuition.index.store import Entry, Store
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
    """What is near a text: the most similar entries, best first, and the nearest motif, None where there is none.

    ``work`` is what the search counts for, in postings; ``cut`` says that its allowance did not suffice for all.
    """

    similar: tuple[Found, ...]
    motif: Found | None
    work: int = 0
    cut: bool = False


class Index(Derived):
    """The entries of one set, searchable; an immutable value to its holder, who keeps the set itself.

    One made without arguments holds nothing yet: the first question builds its store from the entries that the holder
    gives. ``with_entry`` and ``without_entry`` return the index of the changed set. Where this index is its store's
    latest, that is the same store, changed, and this index has none any more: should it be asked again, or changed in
    another way, a store is built for it.
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
        _engine(store).retire(store, number)
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
        allowance: int = UNLIMITED,
    ) -> Nearest:
        """Return what is near a text.

        Args:
            entries: Gives all entries of the set, in the order of adding, should the store have to be built.
            hashes: The text's ascending shingles, without repetition.
            situation: Hash of the situation's type.
            most: How many similar entries to return at most.
            floor: Least similarity of those, above 0.
            motif_floor: Least similarity of the nearest motif; 0 finds any that shares a shingle.
            allowance: Postings that may be looked at; beyond it, only entries that hold one of the text's rarest
                shingles are found.
        """
        store = self._built(entries)
        if not len(hashes) or not store.count:
            return Nearest((), None)
        query = Query(hashes, situation, most, floor, motif_floor, allowance)
        return _named(store, query, _engine(store).search(store, query))

    def smallest(self, entries: Callable[[], Sequence[Entry]], hashes: Hashes) -> Sizes:
        """Return the size of the smallest entry that holds each shingle, in shingles; NONE where none does."""
        store = self._built(entries)
        found: Sizes = _engine(store).smallest(store, hashes)
        return found

    def _latest(self) -> Store | None:
        store = self._store
        return store if store is not None and store.version == self._version else None

    def _built(self, entries: Callable[[], Sequence[Entry]]) -> Store:
        store = self._latest()
        if store is None:
            # Not a change of value: what is built follows from the entries, and whoever asks sees the same answers.
            store = self._store = Store(entries())
            self._version = store.version
        return store


def _named(store: Store, query: Query, answer: Answer) -> Nearest:
    def found(place: int, overlap: int) -> Found:
        return Found(store.names[place], similarity(overlap, query.size, store.size_of(place)))

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
    """Have the compiled engine translate all that it does, on a few entries of its own, where it is there."""
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
