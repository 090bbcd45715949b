"""Concepts: the graph of the terms that an agent's exchanges were about.

A concept is a term that occurred in episodes, which are exchanges as the agent remembers them. Only the latest of these
episodes are stored with it; everything else is computed from them. Its *strength* is their sum: each counts 1 and
decays exponentially with the time of messages. Its *confidence* grows with their number. It is *linked* with the terms
that occurred in the same episodes; the strength of a link is the share of the concept's episodes in which the other
term occurred.

So no term outlives its episodes. When some episodes are forgotten, the graph is exactly what the remaining ones give:
neither a term nor a number in it depends on what was forgotten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from actors.memory.layers.decay import MICRO, decayed
from actors.memory.layers.episodes import Episode
from actors.memory.settings import MOST_CONCEPTS, MemorySettings
from actors.memory.terms import DECIMALS
from schemas.persistent import Map

_NS_PER_MS = 1_000_000

_LATEST = 0.6
"""Share of the latest episode in the links of ``recent_links``."""

_MOST_ORDERS = 16
"""Most graphs whose order is kept: one for each agent that is active at the moment."""

_HALF_CONFIDENT_AT = 2
"""Episodes after which the confidence, n / (n + 2), is 1/2: it is 1/3 after one, and 2/3 after four."""


class Concept(msgspec.Struct, frozen=True, gc=False):
    """The episodes in which a term occurred, the latest last, and the number that it got with the first one.

    The number is made of that episode's number and the term's position in it. So numbers do not show that a term
    between them was forgotten.
    """

    number: int
    episodes: tuple[int, ...]

    @property
    def confidence(self) -> float:
        """How certain it is that the concept matters, in [0, 1)."""
        return round(len(self.episodes) / (len(self.episodes) + _HALF_CONFIDENT_AT), DECIMALS)


Graph = Map[str, Concept]
"""Term -> its concept."""

Kept = Mapping[int, Episode]
"""The episodes that are kept, by number."""


class StalenessOrder:
    """Returns concepts one by one, first the one that has not occurred for the longest time; each is returned once.

    Every remembered exchange adds concepts and drops as many old ones. Sorting all concepts for that took a fifth of
    the time of a replay. A sorted order stays correct, because concepts only change in two ways: a new episode makes a
    concept the latest of all, or it is dropped. Outdated entries are skipped.
    """

    def __init__(self, graph: Graph) -> None:
        """Sort a graph's concepts."""
        self._sort(graph)

    def _sort(self, graph: Graph) -> None:
        self._sorted = sorted((each.episodes[-1], each.number, term) for term, each in graph.items())
        self._index = 0
        self.latest = self._sorted[-1][0] if self._sorted else 0

    def next_of(self, graph: Graph) -> str:
        """Return the concept of ``graph`` (not empty) that has not occurred for the longest time."""
        while self._index < len(self._sorted):
            episode, number, term = self._sorted[self._index]
            self._index += 1
            concept = graph.get(term)
            if concept is not None and concept.episodes[-1] == episode and concept.number == number:
                return term
        self._sort(graph)
        return self.next_of(graph)


class StalenessOrders:
    """The orders of the graphs used last; a graph is recognised by its identity.

    They are kept outside the graphs, since they are derived from them: a graph without an order is sorted.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Graph, StalenessOrder]] = {}

    def of(self, graph: Graph) -> StalenessOrder:
        """Remove and return the order of a graph, or make one; the caller keeps it for the resulting graph."""
        kept = self._take(graph)
        return StalenessOrder(graph) if kept is None else kept

    def keep(self, graph: Graph, order: StalenessOrder) -> None:
        """Keep an order for a graph. The graph is kept, too, so that its identity is not reused for another one."""
        self._kept[id(graph)] = graph, order
        while len(self._kept) > _MOST_ORDERS:
            del self._kept[next(iter(self._kept))]

    def carry(self, before: Graph, after: Graph, latest_episode: int | None = None) -> None:
        """Reuse a graph's order for one that lacks some concepts, or has new occurrences in ``latest_episode``."""
        order = self._take(before)
        if order is not None and (latest_episode is None or latest_episode > order.latest):
            self.keep(after, order)

    def _take(self, graph: Graph) -> StalenessOrder | None:
        kept = self._kept.pop(id(graph), None)
        return kept[1] if kept is not None and kept[0] is graph else None


_orders = StalenessOrders()
"""The order in which the concepts of each graph in use would be dropped."""


def with_occurrence(graph: Graph, terms: Iterable[str], episode: int, settings: MemorySettings) -> Graph:
    """Return the graph after terms occurred in an episode, whose number is higher than all before."""
    after = graph
    for index, term in enumerate(terms):
        known = after.get(term)
        number = known.number if known is not None else _number(episode, index)
        before = known.episodes if known is not None else ()
        if episode not in before:
            after = after.set(term, Concept(number, (*before, episode)[-settings.meetings :]))
    _orders.carry(graph, after, episode)
    return _within_capacity(after, settings)


def without_episode(graph: Graph, terms: Iterable[str], episode: int) -> Graph:
    """Return the graph without an episode, given the terms that occurred in it."""
    after, same_order = graph, True
    for term in terms:
        concept = after.get(term)
        if concept is not None and episode in concept.episodes:
            remaining = tuple(each for each in concept.episodes if each != episode)
            after = after.set(term, Concept(concept.number, remaining)) if remaining else after.delete(term)
            same_order = same_order and (not remaining or remaining[-1] == concept.episodes[-1])
    if same_order:
        _orders.carry(graph, after)
    return after


def rebuild_graph(kept: Kept, settings: MemorySettings) -> Graph:
    """Return the graph of these episodes only.

    A concept whose first episode is not among them gets the number of the first one that is.
    """
    numbers: dict[str, int] = {}
    occurrences: dict[str, list[int]] = {}
    for episode in sorted(kept):
        for index, term in enumerate(kept[episode].concepts):
            numbers.setdefault(term, _number(episode, index))
            occurrences.setdefault(term, []).append(episode)
    graph = {term: Concept(numbers[term], tuple(occurrences[term][-settings.meetings :])) for term in numbers}
    return _within_capacity(Map(graph), settings)


def strength_of(concept: Concept, kept: Kept, now_ns: int, settings: MemorySettings) -> float:
    """Return the strength of a concept: each of its episodes adds 1, which decays."""
    half_life_ns = settings.half_life_ms * _NS_PER_MS
    remaining = (decayed(MICRO, now_ns - kept[episode].at_ns, half_life_ns) for episode in concept.episodes)
    return sum(remaining) / MICRO


def links_of(term: str, graph: Graph, kept: Kept) -> dict[str, float]:
    """Return the terms that occurred together with a concept: term -> the share of its episodes, in (0, 1]."""
    episodes = graph[term].episodes
    counts = Counter(other for episode in episodes for other in kept[episode].concepts if other in graph)
    del counts[term]
    return {other: round(count / len(episodes), DECIMALS) for other, count in counts.items()}


def neighbours(term: str, graph: Graph, kept: Kept, most: int) -> tuple[str, ...]:
    """Return the terms that occurred together with a concept most often, among equals in alphabetical order."""
    links = links_of(term, graph, kept)
    return tuple(sorted(links, key=lambda other: (-links[other], other))[:most])


Linking = Callable[[str, Graph, Kept], Mapping[str, float]]
"""A function that returns the links of a concept: term -> strength, in (0, 1]."""


def recent_links(term: str, graph: Graph, kept: Kept) -> dict[str, float]:
    """Return the terms that occurred with a concept, the latest episodes counting most: term -> strength, in (0, 1].

    The latest episode counts 0.6; each earlier one counts 0.6 of what is left, and the first one all of it. So terms
    that occurred together last are linked by at least 0.6, however often each occurred. With plain shares of all
    episodes, a small vocabulary in ever new combinations would have only weak links.
    """
    links: dict[str, float] = {}
    episodes, remaining = sorted(graph[term].episodes, reverse=True), 1.0
    for index, episode in enumerate(episodes):
        weight = remaining if index == len(episodes) - 1 else remaining * _LATEST
        remaining -= weight
        for other in dict.fromkeys(kept[episode].concepts):
            if other in graph and other != term:
                links[other] = links.get(other, 0.0) + weight
    return {other: strength for other, each in links.items() if (strength := round(each, DECIMALS))}


def spread(
    graph: Graph, kept: Kept, seeds: Iterable[str], settings: MemorySettings, linking: Linking = links_of
) -> dict[str, float]:
    """Return the activation that spreads from concepts, in (0, 1], without the starting concepts, which have 1.

    Each hop multiplies it by ``settings.spread`` and by the link's strength; of several paths the strongest counts.
    """
    seeds_in_graph = frozenset(seed for seed in seeds if seed in graph)
    reached = dict.fromkeys(seeds_in_graph, 1.0)
    frontier = dict(reached)
    for _ in range(settings.depth):
        next_frontier: dict[str, float] = {}
        for term, activation in frontier.items():
            for other, share in linking(term, graph, kept).items():
                spread_activation = round(activation * settings.spread * share, DECIMALS)
                if spread_activation > max(reached.get(other, 0.0), next_frontier.get(other, 0.0)):
                    next_frontier[other] = spread_activation
        reached |= next_frontier
        frontier = next_frontier
    return {term: activation for term, activation in reached.items() if term not in seeds_in_graph}


def _number(episode: int, index: int) -> int:
    return episode * MOST_CONCEPTS + index


def _within_capacity(graph: Graph, settings: MemorySettings) -> Graph:
    """Return the graph within its capacity: the concepts that have not occurred for the longest time are dropped."""
    excess = len(graph) - settings.concepts
    if excess <= 0:
        return graph
    order = _orders.of(graph)
    for _ in range(excess):
        graph = graph.delete(order.next_of(graph))
    _orders.keep(graph, order)
    return graph
