"""An index of the embeddings of episodes (exchanges as an agent remembers them): searched exhaustively, as of a
version.

An index is a store and the version at which it is queried. The store is append-only and shared by the states that
descend from one another. Adding appends a row; retiring records the version from which a row does not count. So an old
state still gets the same answers as before. A state that diverged from its store, or that came from a snapshot, gets a
store of its own, built from its episodes at the first query. The index is derived, so it is not part of a state's
value.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from actors.memory.layers.vectors import Bytes, Floats, cosines, square
from actors.memory.terms import DECIMALS
from schemas.persistent import Derived

COMPACTED_FROM = 1024
"""A store is compacted (built anew without its retired rows) only if it has more of them than this."""

_COUNTING_PER_RETIRED = 8
"""With more than one retired row for each 8 that still count, a store is compacted: a search reads them, too."""

_NEVER = np.iinfo(np.int64).max
"""What stands for the version at which a row was retired, where it still counts."""

_LEAST_SPARE = 64
"""Least number of spare rows that an array grows by."""

Numbers = npt.NDArray[np.int64]
_Kind = tuple[str, int]
"""The model of an embedding, and its width: only embeddings of the same kind can be compared."""


class Row(NamedTuple):
    """The indexed data of an episode; its similarity is multiplied by ``weight``."""

    number: int
    model: str
    embedding: bytes
    weight: float


class Near(msgspec.Struct, frozen=True, gc=False):
    """An episode near an embedding: its number, and how strongly it is recalled (similarity times weight, 0 to 1)."""

    number: int
    energy: float


class Ranking:
    """The energies of rows for one embedding, which are computed once, however many of the strongest are asked for."""

    __slots__ = ("_energies", "_numbers")

    def __init__(self, energies: Floats, numbers: Numbers) -> None:
        self._energies, self._numbers = energies, numbers

    def strongest(self, most: int) -> list[Near]:
        """Return up to ``most`` rows with energies above 0, the strongest first, among equals the latest."""
        energies, numbers = self._energies, self._numbers
        least = 0.0
        if len(energies) > most:
            least = float(np.partition(energies, len(energies) - most)[len(energies) - most])
        indices = np.flatnonzero((energies >= least) & (energies > 0.0))
        order = indices[np.lexsort((-numbers[indices], -energies[indices]))][:most]
        return list(map(Near, numbers[order].tolist(), np.minimum(energies[order], 1.0).tolist()))


NOTHING = Ranking(np.zeros(0), np.zeros(0, np.int64))
"""The ranking of no rows."""


class _Rows:
    """The rows of one kind, in the order of adding. Arrays have spare room; the first ``count`` rows are in use.

    A row counts from the version ``added_at`` on, and no longer from ``retired_at`` on. ``squares`` are the vectors'
    products with themselves.
    """

    def __init__(self, vectors: Bytes, squares: Numbers, weights: Floats, numbers: Numbers) -> None:
        self.count = len(numbers)
        self.vectors, self.squares, self.weights, self.numbers = vectors, squares, weights, numbers
        self.added_at: Numbers = np.zeros(self.count, np.int64)
        self.retired_at: Numbers = np.full(self.count, _NEVER, np.int64)

    @classmethod
    def of(cls, width: int, rows: Sequence[Row]) -> "_Rows":
        vectors = np.frombuffer(b"".join(row.embedding for row in rows), np.int8).reshape(-1, width)
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
        weights = np.array([row.weight for row in rows], np.float64)
        return cls(vectors, squares, weights, np.array([row.number for row in rows], np.int64))

    def add(self, row: Row, version: int) -> None:
        index = self.count
        if index == len(self.numbers):
            self._grow()
        self.vectors[index] = np.frombuffer(row.embedding, np.int8)
        self.squares[index] = square(row.embedding)
        self.weights[index], self.numbers[index] = row.weight, row.number
        self.added_at[index], self.retired_at[index] = version, _NEVER
        self.count += 1

    def index_of(self, number: int) -> int | None:
        index = int(np.searchsorted(self.numbers[: self.count], number))
        return index if index < self.count and self.numbers[index] == number else None

    def compacted(self) -> "_Rows":
        kept = np.flatnonzero(self.retired_at[: self.count] == _NEVER)
        return _Rows(self.vectors[kept], self.squares[kept], self.weights[kept], self.numbers[kept])

    def _grow(self) -> None:
        self.vectors, self.squares = _grown(self.vectors), _grown(self.squares)
        self.weights, self.numbers = _grown(self.weights), _grown(self.numbers)
        self.added_at, self.retired_at = _grown(self.added_at), _grown(self.retired_at)


class _Store:
    """The rows of all kinds, after ``version`` changes: ``count`` rows, of which ``retired`` no longer count."""

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
        index = rows.index_of(row.number)
        assert index is not None, "only what was added is retired"
        self.version += 1
        self.retired += 1
        rows.retired_at[index] = self.version

    def compacted(self) -> "_Store":
        return _Store({kind: rows.compacted() for kind, rows in self.rows.items()})

    def ranking(self, version: int, model: str, embedding: bytes, without: Collection[int]) -> Ranking:
        rows = self.rows.get((model, len(embedding)))
        count = 0 if rows is None else int(np.searchsorted(rows.added_at[: rows.count], version, side="right"))
        if rows is None or count == 0:
            return NOTHING
        energies = cosines(rows.vectors[:count], rows.squares[:count], embedding)
        energies *= rows.weights[:count]
        np.round(energies, DECIMALS, out=energies)
        energies[rows.retired_at[:count] <= version] = 0.0
        for number in without:
            index = rows.index_of(number)
            if index is not None and index < count:
                energies[index] = 0.0
        return Ranking(energies, rows.numbers[:count])


class Index(Derived):
    """The searchable episodes of one agent; immutable for its owner, which keeps the episodes themselves."""

    __slots__ = ("_store", "_version")

    def __init__(self, store: _Store | None = None) -> None:
        self._store = store
        self._version = store.version if store is not None else 0

    def adding(self, row: Row) -> "Index":
        """Return the index with one more row at the end, whose number is higher than all before."""
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
        if store.retired > max(COMPACTED_FROM, (store.count - store.retired) // _COUNTING_PER_RETIRED):
            store = store.compacted()
        return Index(store)

    def ranking(
        self, rows: Callable[[], Iterable[Row]], model: str, embedding: bytes, without: Collection[int] = ()
    ) -> Ranking:
        """Return the energies of all rows for an embedding; they are to be used before the index changes.

        Args:
            rows: Returns all rows, numbers ascending, in case the store must be built.
            model: What made the embedding; rows of other models are not comparable.
            embedding: The embedding to search for.
            without: Numbers of rows that are skipped.
        """
        store = self._store
        if store is None:
            # This does not change the value: the store is derived from the episodes, and queries give the same answers.
            store = _Store.of(rows())
            self._store, self._version = store, store.version
        return store.ranking(self._version, model, embedding, without)

    def _latest(self) -> _Store | None:
        store = self._store
        return store if store is not None and store.version == self._version else None


def _grown(array: npt.NDArray[Any]) -> Any:
    """Return a copy with spare rows at its end: half as many as it has, and at least ``_LEAST_SPARE``."""
    copy = np.zeros((len(array) + max(_LEAST_SPARE, len(array) // 2), *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy
