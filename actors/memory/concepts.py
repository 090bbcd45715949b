"""Concepts: the graph of what an agent's exchanges were about.

A concept is a term that was met. Each meeting adds 1 to its strength, which decays exponentially with the messages'
time; its confidence grows with the number of meetings. Concepts met in one exchange are linked, and links are mutual:
what is dropped on one side is dropped on the other. A concept is known by the latest episodes it was met in, and a link
likewise: when the last of them is gone, so is the concept or link. So no word outlives the episodes that it is from.
"""

from collections.abc import Collection, Iterable
from heapq import nsmallest

import msgspec

from actors.memory.decay import decayed
from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS
from schemas.persistent import Map

MICRO = 1_000_000
"""Strength is counted in millionths."""

STRONGEST = 10 * MICRO

_EPISODES_KEPT = 8
_LINK_EPISODES_KEPT = 4
_NS_PER_MS = 1_000_000
_DOUBT = 2
"""Meetings that a first one is weighed against: confidence is 1/3 after one, 1/2 after two, 2/3 after four."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """That a concept was met together with ``term``: how often, and in which episodes lately."""

    term: str
    together: int
    episodes: tuple[int, ...]


class Concept(msgspec.Struct, frozen=True):
    """A term and its past. ``strength`` is as of ``at_ns``; ``links`` are sorted by term."""

    number: int
    strength: int
    at_ns: int
    met: int
    episodes: tuple[int, ...]
    links: tuple[Link, ...] = ()

    def strength_at(self, now_ns: int, settings: MemorySettings) -> int:
        """Return what is left of its strength."""
        return decayed(self.strength, now_ns - self.at_ns, settings.half_life_ms * _NS_PER_MS)

    @property
    def confidence(self) -> float:
        """How sure it is that the concept matters, in [0, 1)."""
        return round(self.met / (self.met + _DOUBT), DECIMALS)

    def share_of(self, link: Link) -> float:
        """Return how strong a link is: the share of the concept's meetings that were with the other."""
        return round(min(1.0, link.together / self.met), DECIMALS)


Graph = Map[str, Concept]


def met(
    graph: Graph, terms: tuple[str, ...], episode: int, named: int, now_ns: int, settings: MemorySettings
) -> tuple[Graph, int]:
    """Return the graph after terms were met in an episode, and how many things are named by then.

    Args:
        graph: The concepts so far.
        terms: What was met, each once.
        episode: The number of the episode, higher than all before.
        named: How many things have a number so far; new concepts get the next ones.
        now_ns: The time of the meeting.
        settings: Capacities and the half-life.
    """
    for term in terms:
        known = graph.get(term)
        if known is None:
            named += 1
            known = Concept(number=named, strength=0, at_ns=now_ns, met=0, episodes=())
        graph = graph.set(term, _met_again(known, [each for each in terms if each != term], episode, now_ns, settings))
    for term in terms:
        graph = _trimmed(graph, term, settings.links)
    excess = len(graph) - settings.concepts
    if excess > 0:
        weakest = nsmallest(excess, graph.items(), key=lambda item: _rank(item[0], item[1], now_ns, settings))
        graph = without(graph, [term for term, _ in weakest])
    return graph, named


def without(graph: Graph, terms: Iterable[str]) -> Graph:
    """Return the graph without these concepts, and without the links to them."""
    for term in terms:
        concept = graph.get(term)
        if concept is not None:
            graph = graph.delete(term)
            for link in concept.links:
                graph = _unlinked(graph, link.term, term)
    return graph


def pruned(graph: Graph, terms: Iterable[str], episodes: Collection[int]) -> Graph:
    """Return the graph without what only these episodes are behind; ``terms`` are the concepts that may be concerned.

    An episode links the concepts it holds and no others, so a link that goes goes on both sides.
    """
    gone = []
    for term in terms:
        concept = graph.get(term)
        if concept is None:
            continue
        left = tuple(each for each in concept.episodes if each not in episodes)
        if not left:
            gone.append(term)
            continue
        links = tuple(link for link in (_pruned_link(each, episodes) for each in concept.links) if link is not None)
        if left != concept.episodes or links != concept.links:
            graph = graph.set(term, msgspec.structs.replace(concept, episodes=left, links=links))
    return without(graph, gone)


def spread(graph: Graph, seeds: Iterable[str], settings: MemorySettings) -> dict[str, float]:
    """Return the activation that spreads from concepts, in (0, 1]; the seeds themselves, which begin with 1, left out.

    A hop leaves ``settings.spread`` of it, times the link's share; of several ways the strongest counts.
    """
    reached = {seed: 1.0 for seed in seeds if seed in graph}
    begun = frozenset(reached)
    frontier = dict(reached)
    for _ in range(settings.depth):
        ahead: dict[str, float] = {}
        for term, activation in frontier.items():
            concept = graph[term]
            for link in concept.links:
                passed = round(activation * settings.spread * concept.share_of(link), DECIMALS)
                if passed > max(reached.get(link.term, 0.0), ahead.get(link.term, 0.0)):
                    ahead[link.term] = passed
        reached |= ahead
        frontier = ahead
    return {term: activation for term, activation in reached.items() if term not in begun}


def neighbours(concept: Concept, most: int) -> tuple[str, ...]:
    """Return the terms that a concept was met with most often, the first of equals in the alphabet first."""
    return tuple(link.term for link in sorted(concept.links, key=lambda each: (-each.together, each.term))[:most])


def _met_again(concept: Concept, others: list[str], episode: int, now_ns: int, settings: MemorySettings) -> Concept:
    links = {link.term: link for link in concept.links}
    for term in others:
        link = links.get(term) or Link(term, 0, ())
        links[term] = Link(term, link.together + 1, (*link.episodes, episode)[-_LINK_EPISODES_KEPT:])
    return Concept(
        number=concept.number,
        strength=min(STRONGEST, concept.strength_at(now_ns, settings) + MICRO),
        at_ns=max(concept.at_ns, now_ns),
        met=concept.met + 1,
        episodes=(*concept.episodes, episode)[-_EPISODES_KEPT:],
        links=tuple(links[term] for term in sorted(links)),
    )


def _trimmed(graph: Graph, term: str, most: int) -> Graph:
    concept = graph[term]
    excess = len(concept.links) - most
    if excess <= 0:
        return graph
    weakest = nsmallest(excess, concept.links, key=lambda link: (link.together, link.episodes[-1], link.term))
    for link in weakest:
        graph = _unlinked(_unlinked(graph, term, link.term), link.term, term)
    return graph


def _unlinked(graph: Graph, term: str, other: str) -> Graph:
    concept = graph.get(term)
    if concept is None:
        return graph
    links = tuple(link for link in concept.links if link.term != other)
    return graph.set(term, msgspec.structs.replace(concept, links=links))


def _pruned_link(link: Link, episodes: Collection[int]) -> Link | None:
    left = tuple(each for each in link.episodes if each not in episodes)
    return Link(link.term, link.together, left) if left else None


def _rank(term: str, concept: Concept, now_ns: int, settings: MemorySettings) -> tuple[int, int, str]:
    return concept.strength_at(now_ns, settings), concept.number, term
