"""The episodes' embeddings in arrays, searched whole: exact, as of a version.

An index is a store with the version it is asked as of. The store is append-only and shared by the states that descend
from one another: adding appends a row, retiring notes the version from which a row counts no more, so a state of long
ago goes on to be answered as it was. A state whose store went another way, or that came from a snapshot, gets a store
of its own, built from its episodes by the first question. What is derived is no part of a state's value.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from actors.memory.layers.vectors import Bytes, Floats, cosines, square
from actors.memory.terms import DECIMALS
from schemas.persistent import Derived

COMPACTED_FROM = 1024
"""Retired rows that are carried along at most where fewer than that count."""

_NEVER = np.iinfo(np.int64).max
_FIRST_ROOM = 64

Numbers = npt.NDArray[np.int64]
_Kind = tuple[str, int]
"""What made an embedding, and its width: only those of one kind are comparable."""


class Row(NamedTuple):
    """What is indexed of an episode: ``weight`` is what its similarity is multiplied with."""

    number: int
    model: str
    embedding: bytes
    weight: float


class Near(NamedTuple):
    """An episode near an embedding, by its number."""

    number: int
    energy: float


class _Rows:
    """The rows of one embedder, in the order of adding. Arrays may be longer than what is in them: ``count`` rows."""

    def __init__(self, vectors: Bytes, squares: Numbers, weights: Floats, numbers: Numbers) -> None:
        self.count = len(numbers)
        self.vectors, self.squares, self.weights, self.numbers = vectors, squares, weights, numbers
        self.born: Numbers = np.zeros(self.count, np.int64)
        self.died: Numbers = np.full(self.count, _NEVER, np.int64)

    @classmethod
    def of(cls, width: int, rows: Sequence[Row]) -> "_Rows":
        vectors = np.frombuffer(b"".join(row.embedding for row in rows), np.int8).reshape(-1, width)
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
        weights = np.array([row.weight for row in rows], np.float64)
        return cls(vectors, squares, weights, np.array([row.number for row in rows], np.int64))

    def add(self, row: Row, version: int) -> None:
        place = self.count
        if place == len(self.numbers):
            self._make_room()
        self.vectors[place] = np.frombuffer(row.embedding, np.int8)
        self.squares[place] = square(row.embedding)
        self.weights[place], self.numbers[place] = row.weight, row.number
        self.born[place], self.died[place] = version, _NEVER
        self.count += 1

    def place_of(self, number: int) -> int | None:
        place = int(np.searchsorted(self.numbers[: self.count], number))
        return place if place < self.count and self.numbers[place] == number else None

    def compacted(self) -> "_Rows":
        lives = np.flatnonzero(self.died[: self.count] == _NEVER)
        return _Rows(self.vectors[lives], self.squares[lives], self.weights[lives], self.numbers[lives])

    def _make_room(self) -> None:
        self.vectors, self.squares = _longer(self.vectors), _longer(self.squares)
        self.weights, self.numbers = _longer(self.weights), _longer(self.numbers)
        self.born, self.died = _longer(self.born), _longer(self.died)


class _Store:
    """The rows of all embedders, and how many changes there were."""

    def __init__(self, rows: dict[_Kind, _Rows]) -> None:
        self.version = 0
        self.rows = rows
        self.count = sum(each.count for each in rows.values())
        self.retired = 0

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "_Store":
        kinds: dict[_Kind, list[Row]] = {}
        for row in rows:
            kinds.setdefault((row.model, len(row.embedding)), []).append(row)
        return cls({kind: _Rows.of(kind[1], found) for kind, found in kinds.items()})

    def add(self, row: Row) -> None:
        self.version += 1
        self.count += 1
        kind = row.model, len(row.embedding)
        if kind not in self.rows:
            self.rows[kind] = _Rows.of(kind[1], ())
        self.rows[kind].add(row, self.version)

    def retire(self, row: Row) -> None:
        rows = self.rows[row.model, len(row.embedding)]
        place = rows.place_of(row.number)
        assert place is not None, "only what was added is retired"
        self.version += 1
        self.retired += 1
        rows.died[place] = self.version

    def compacted(self) -> "_Store":
        return _Store({kind: rows.compacted() for kind, rows in self.rows.items()})

    def nearest(self, version: int, model: str, embedding: bytes, most: int, without: Collection[int]) -> list[Near]:
        rows = self.rows.get((model, len(embedding)))
        count = 0 if rows is None else int(np.searchsorted(rows.born[: rows.count], version, side="right"))
        if rows is None or count == 0:
            return []
        energies = cosines(rows.vectors[:count], rows.squares[:count], embedding)
        energies *= rows.weights[:count]
        np.round(energies, DECIMALS, out=energies)
        energies[rows.died[:count] <= version] = 0.0
        for number in without:
            place = rows.place_of(number)
            if place is not None and place < count:
                energies[place] = 0.0
        return _strongest(energies, rows.numbers[:count], most)


class Index(Derived):
    """The episodes of one agent, searchable; an immutable value to its holder, who keeps the episodes themselves."""

    __slots__ = ("_store", "_version")

    def __init__(self, store: _Store | None = None) -> None:
        self._store = store
        self._version = store.version if store is not None else 0

    def adding(self, row: Row) -> "Index":
        """Return the index with a row more, its last; its number is higher than all before."""
        store = self._latest()
        if store is None:
            return Index()
        store.add(row)
        return Index(store)

    def without(self, row: Row) -> "Index":
        """Return the index without one of its rows."""
        store = self._latest()
        if store is None:
            return Index()
        store.retire(row)
        if store.retired > max(COMPACTED_FROM, store.count - store.retired):
            store = store.compacted()
        return Index(store)

    def nearest(
        self, rows: Callable[[], Iterable[Row]], model: str, embedding: bytes, most: int, without: Collection[int] = ()
    ) -> list[Near]:
        """Return the rows of most energy above 0, the strongest first, of equally strong ones the latest.

        Args:
            rows: Gives all rows, numbers ascending, should the store have to be built.
            model: What made the embedding; rows of other models are not comparable.
            embedding: What is sought.
            most: How many to return at most.
            without: Numbers of rows that are passed over.
        """
        store = self._store
        if store is None:
            # Not a change of value: what is built follows from the episodes, and whoever asks sees the same answers.
            store = _Store.of(rows())
            self._store, self._version = store, store.version
        return store.nearest(self._version, model, embedding, most, without)

    def _latest(self) -> _Store | None:
        store = self._store
        return store if store is not None and store.version == self._version else None


def _longer(array: npt.NDArray[Any]) -> Any:
    """Return a copy with half as much room again."""
    copy = np.zeros((len(array) + max(_FIRST_ROOM, len(array) // 2), *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


def _strongest(energies: Floats, numbers: Numbers, most: int) -> list[Near]:
    least = 0.0
    if len(energies) > most:
        least = float(np.partition(energies, len(energies) - most)[len(energies) - most])
    places = np.flatnonzero((energies >= least) & (energies > 0.0))
    order = places[np.lexsort((-numbers[places], -energies[places]))][:most]
    return [Near(int(numbers[place]), min(float(energies[place]), 1.0)) for place in order]
