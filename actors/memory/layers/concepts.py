"""Concepts: the graph of what an agent's exchanges were about.

A concept is a term that was met; what is known of it are the latest episodes that it was met in, and everything else
follows from these. Its *strength* is what is left of its meetings: each gives 1, which decays exponentially with the
messages' time. Its *confidence* grows with the number of meetings. It is *linked* with what it was met together with,
by the share of its meetings that were with the other.

So no word outlives the episodes that it is from, and when some of these are forgotten, what is left is what the others
make of it: nothing of the graph, no number either, rests on what is forgotten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from actors.memory.layers.decay import decayed
from actors.memory.layers.episodes import Episode
from actors.memory.layers.staleness import StalenessOrders
from actors.memory.settings import MOST_CONCEPTS, MemorySettings
from actors.memory.terms import DECIMALS
from schemas.persistent import Map

_NS_PER_MS = 1_000_000
_MICRO = 1_000_000
_LATEST = 0.6
_DOUBT = 2
"""Meetings that a first one is weighed against: confidence is 1/3 after one, 1/2 after two, 2/3 after four."""


class Concept(msgspec.Struct, frozen=True):
    """The episodes that a term was met in, the latest last, and the number that it got with the first.

    The number comes from the episode's and the term's place in it: words that were forgotten leave no gap in it.
    """

    number: int
    episodes: tuple[int, ...]

    @property
    def confidence(self) -> float:
        """How sure it is that the concept matters, in [0, 1)."""
        return round(len(self.episodes) / (len(self.episodes) + _DOUBT), DECIMALS)


Graph = Map[str, Concept]
_orders: StalenessOrders[Concept] = StalenessOrders()
Kept = Mapping[int, Episode]
"""The episodes by number."""


def with_meeting(graph: Graph, terms: Iterable[str], episode: int, settings: MemorySettings) -> Graph:
    """Return the graph after terms were met in an episode, whose number is higher than all before."""
    after = graph
    for place, term in enumerate(terms):
        known = after.get(term)
        number = known.number if known is not None else _number(episode, place)
        before = known.episodes if known is not None else ()
        if episode not in before:
            after = after.set(term, Concept(number, (*before, episode)[-settings.meetings :]))
    _orders.carry(graph, after, episode)
    return _within(after, settings)


def without_episode(graph: Graph, terms: Iterable[str], episode: int) -> Graph:
    """Return the graph without an episode, given the terms met in it."""
    after, ordered_alike = graph, True
    for term in terms:
        concept = after.get(term)
        if concept is not None and episode in concept.episodes:
            left = tuple(each for each in concept.episodes if each != episode)
            after = after.set(term, Concept(concept.number, left)) if left else after.delete(term)
            ordered_alike = ordered_alike and (not left or left[-1] == concept.episodes[-1])
    if ordered_alike:
        _orders.carry(graph, after)
    return after


def rebuild_graph(kept: Kept, settings: MemorySettings) -> Graph:
    """Return the graph of these episodes and of nothing else.

    A concept whose first meeting is not among them gets the number of the first that is.
    """
    numbers: dict[str, int] = {}
    meetings: dict[str, list[int]] = {}
    for episode in sorted(kept):
        for place, term in enumerate(kept[episode].concepts):
            numbers.setdefault(term, _number(episode, place))
            meetings.setdefault(term, []).append(episode)
    graph = {term: Concept(numbers[term], tuple(meetings[term][-settings.meetings :])) for term in numbers}
    return _within(Map(graph), settings)


def strength_of(concept: Concept, kept: Kept, now_ns: int, settings: MemorySettings) -> float:
    """Return what is left of a concept's meetings, 1 for each at first."""
    half_life_ns = settings.half_life_ms * _NS_PER_MS
    left = (decayed(_MICRO, now_ns - kept[episode].at_ns, half_life_ns) for episode in concept.episodes)
    return sum(left) / _MICRO


def links_of(term: str, graph: Graph, kept: Kept) -> dict[str, float]:
    """Return what a concept was met together with: term -> the share of its meetings, in (0, 1]."""
    episodes = graph[term].episodes
    together = Counter(other for episode in episodes for other in kept[episode].concepts if other in graph)
    del together[term]
    return {other: round(count / len(episodes), DECIMALS) for other, count in together.items()}


def neighbours(term: str, graph: Graph, kept: Kept, most: int) -> tuple[str, ...]:
    """Return the terms that a concept was met with most often, of equals the first in the alphabet first."""
    links = links_of(term, graph, kept)
    return tuple(sorted(links, key=lambda other: (-links[other], other))[:most])


Linking = Callable[[str, Graph, Kept], Mapping[str, float]]
"""What tells the links of a concept: term -> its strength, in (0, 1]."""


def recent_links(term: str, graph: Graph, kept: Kept) -> dict[str, float]:
    """Return what a concept was met together with, its latest meetings counting for most: term -> strength, in (0, 1].

    The latest meeting counts for .6, and each one before it for .6 of what is left; the first for all that is left
    then. So what was last met together is linked by .6 at least, however often either was met: by plain shares of all
    meetings a small vocabulary that is used in ever new ways would link nothing to anything.
    """
    links: dict[str, float] = {}
    episodes, left = sorted(graph[term].episodes, reverse=True), 1.0
    for place, episode in enumerate(episodes):
        weight = left if place == len(episodes) - 1 else left * _LATEST
        left -= weight
        for other in dict.fromkeys(kept[episode].concepts):
            if other in graph and other != term:
                links[other] = links.get(other, 0.0) + weight
    return {other: strength for other, each in links.items() if (strength := round(each, DECIMALS))}


def spread(
    graph: Graph, kept: Kept, seeds: Iterable[str], settings: MemorySettings, linking: Linking = links_of
) -> dict[str, float]:
    """Return the activation that spreads from concepts, in (0, 1]; the seeds themselves, which begin with 1, left out.

    A hop leaves ``settings.spread`` of it, times the link's strength; of several ways the strongest counts.
    """
    begun = frozenset(seed for seed in seeds if seed in graph)
    reached = dict.fromkeys(begun, 1.0)
    frontier = dict(reached)
    for _ in range(settings.depth):
        ahead: dict[str, float] = {}
        for term, activation in frontier.items():
            for other, share in linking(term, graph, kept).items():
                passed = round(activation * settings.spread * share, DECIMALS)
                if passed > max(reached.get(other, 0.0), ahead.get(other, 0.0)):
                    ahead[other] = passed
        reached |= ahead
        frontier = ahead
    return {term: activation for term, activation in reached.items() if term not in begun}


def _number(episode: int, place: int) -> int:
    return episode * MOST_CONCEPTS + place


def _within(graph: Graph, settings: MemorySettings) -> Graph:
    """Return the graph within its capacity: the concepts that were not met for longest go."""
    excess = len(graph) - settings.concepts
    if excess <= 0:
        return graph
    order = _orders.of(graph)
    for _ in range(excess):
        graph = graph.delete(order.next_of(graph))
    _orders.keep(graph, order)
    return graph
