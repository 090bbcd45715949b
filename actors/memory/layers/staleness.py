"""Which concepts of a graph were not met for longest, found without looking at all of them each time.

Every remembered exchange brings new concepts and drops as many old ones. Sorting all of them for that took a fifth of a
replay. An order that was sorted once stays right as long as concepts are only met anew, which makes them the latest of
all, or dropped: entries that are no longer true are passed over. It is kept beside the graph and not in it, since it
follows from it: a graph that has no order yet is sorted.
"""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from schemas.persistent import Map

_KEPT = 16
"""Graphs whose order is kept: one an agent that is spoken with at the moment."""


class MetConcept(Protocol):
    """What is known of a concept: its number, and the episodes that it was met in, the latest last."""

    @property
    def number(self) -> int:
        """What tells it from others met last in the same episode."""
        ...

    @property
    def episodes(self) -> tuple[int, ...]:
        """Never empty."""
        ...


M = TypeVar("M", bound=MetConcept)


class StalenessOrder(Generic[M]):
    """Concepts from the one that was not met for longest on; each is told once."""

    def __init__(self, graph: Mapping[str, M]) -> None:
        """Sort a graph's concepts."""
        self._sort(graph)

    def _sort(self, graph: Mapping[str, M]) -> None:
        self._sorted = sorted((each.episodes[-1], each.number, term) for term, each in graph.items())
        self._place = 0
        self.latest = self._sorted[-1][0] if self._sorted else 0

    def next_of(self, graph: Mapping[str, M]) -> str:
        """Return the concept of ``graph``, which may not be empty, that was not met for longest."""
        while self._place < len(self._sorted):
            episode, number, term = self._sorted[self._place]
            self._place += 1
            concept = graph.get(term)
            if concept is not None and concept.episodes[-1] == episode and concept.number == number:
                return term
        self._sort(graph)
        return self.next_of(graph)


class StalenessOrders(Generic[M]):
    """The orders of the graphs that were seen last, by identity."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Map[str, M], StalenessOrder[M]]] = {}

    def of(self, graph: Map[str, M]) -> StalenessOrder[M]:
        """Take the order of a graph, or make it; whoever takes it keeps it for the graph that comes of it."""
        kept = self._take(graph)
        return StalenessOrder(graph) if kept is None else kept

    def keep(self, graph: Map[str, M], order: StalenessOrder[M]) -> None:
        """Keep an order for a graph, and the graph with it, so that its identity stays its own."""
        self._kept[id(graph)] = graph, order
        while len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]

    def carry(self, before: Map[str, M], after: Map[str, M], met: int | None = None) -> None:
        """Say that a graph's order is another's as well: concepts were dropped, or met in episode ``met``."""
        order = self._take(before)
        if order is not None and (met is None or met > order.latest):
            self.keep(after, order)

    def _take(self, graph: Map[str, M]) -> StalenessOrder[M] | None:
        kept = self._kept.pop(id(graph), None)
        return kept[1] if kept is not None and kept[0] is graph else None
