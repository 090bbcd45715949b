"""Wandering: an idle agent's associations, from a concept to others that occurred with it. Pure.

A concept is a term that occurred in episodes (remembered exchanges). Its strength is how often it did, each time
counting less with age; its confidence, from 0 to 1, grows with the number of episodes. Strategies are tried in the
order of the request. The first one that has a starting concept is used; concepts that wandering has visited lately
(*resting* ones) are left out:

=========  ===================================================================================================
decaying   the weakest whose strength is between 0.2 and 2.0
recent     one that occurred in the latest episode
salient    one of the most salient (exciting and new) episode of the last 7 days; of equal ones, the latest
random     one with a confidence of 0.4 or more
=========  ===================================================================================================

Activation spreads from the starting concept as in ``concepts``, over links that weigh the latest common episodes most;
among equals the latest concept is first. The strongest concept reached always occurred together with the starting one:
each hop lowers the activation, so a concept two hops away is weaker than the one between. So there is an episode with
both, and the thought is about the latest such episode. Since the thought contains no words of another session, it can
be forgotten with that session.
"""

from collections.abc import Mapping

import msgspec

from actors.memory.agent_memory import AgentMemory
from actors.memory.layers.concepts import Concept, recent_links, spread, strength_of
from actors.memory.layers.episodes import Episode
from actors.memory.layers.thoughts import added_strength
from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS
from schemas.vocabulary.drift import Strategy
from schemas.vocabulary.memory import Activation, MemoryWandered

_NS_PER_MS = 1_000_000
_MOST_REPORTED = 12
"""Most concepts reached that are reported."""


class WanderRequest(msgspec.Struct, frozen=True):
    """How to wander: strategies in order, a number in [0, 1) that picks among concepts, and concepts to leave out
    (``resting``, by their ids).
    """

    strategies: tuple[Strategy, ...]
    pick: float
    resting: frozenset[str]


class WanderResult(msgspec.Struct, frozen=True):
    """The event about what was found, and the session whose text it contains; empty for none."""

    wandered: MemoryWandered
    session: str


def wander(
    memory: AgentMemory, request_id: str, request: WanderRequest, now_ns: int, settings: MemorySettings
) -> WanderResult:
    """Return what wandering finds in an agent's memory now; ``request_id`` is the id of the event that asks for it."""
    kept = memory.episodes.kept
    recent = _recent_episodes(kept, now_ns, settings)
    if not recent:
        return WanderResult(MemoryWandered(request=request_id, reason="no_episode"), "")
    candidates = {term: each for term, each in memory.concepts.items() if name_of(each) not in request.resting}
    for strategy in request.strategies:
        seeds = _seeds(strategy, memory, candidates, recent, now_ns, settings)
        if seeds:
            seed = seeds[min(int(request.pick * len(seeds)), len(seeds) - 1)]
            return _result(memory, request_id, strategy, seed, now_ns, settings)
    return WanderResult(MemoryWandered(request=request_id, reason="no_seed"), "")


def name_of(concept: Concept) -> str:
    """Return a concept's id."""
    return f"concept:{concept.number}"


def strength_in(memory: AgentMemory, term: str, now_ns: int, settings: MemorySettings) -> float:
    """Return a concept's strength: what its episodes add after decay, and the thoughts that strengthened it."""
    from_episodes = strength_of(memory.concepts[term], memory.episodes.kept, now_ns, settings)
    return round(from_episodes + added_strength(memory.thoughts, term, now_ns, settings), DECIMALS)


def _recent_episodes(kept: Mapping[int, Episode], now_ns: int, settings: MemorySettings) -> list[int]:
    """Return the numbers of the recent episodes, the latest first."""
    since_ns = now_ns - settings.wander_back_ms * _NS_PER_MS
    return sorted((number for number, episode in kept.items() if episode.at_ns >= since_ns), reverse=True)


def _seeds(
    strategy: Strategy,
    memory: AgentMemory,
    candidates: dict[str, Concept],
    recent: list[int],
    now_ns: int,
    settings: MemorySettings,
) -> list[str]:
    """Return the concepts that a strategy may begin with, in an order that does not depend on their text."""
    kept = memory.episodes.kept
    match strategy:
        case "decaying":
            strengths = (
                (strength_in(memory, term, now_ns, settings), candidates[term].number, term) for term in candidates
            )
            fading = [each for each in strengths if settings.fading_above < each[0] < settings.fading_below]
            return [min(fading)[2]] if fading else []
        case "recent":
            return [term for term in kept[recent[0]].concepts if term in candidates]
        case "salient":
            most = max(recent, key=lambda number: (kept[number].salience, number))
            return [term for term in kept[most].concepts if term in candidates]
        case "random":
            certain = [term for term, each in candidates.items() if each.confidence >= settings.sure_from]
            return sorted(certain, key=lambda term: candidates[term].number)


def _result(
    memory: AgentMemory, request_id: str, strategy: Strategy, term: str, now_ns: int, settings: MemorySettings
) -> WanderResult:
    graph, kept = memory.concepts, memory.episodes.kept
    activated = spread(graph, kept, [term], settings, recent_links)
    seed = graph[term]
    strongest_first = sorted(activated, key=lambda other: (-activated[other], -graph[other].number))
    together = recent_links(term, graph, kept)
    strongest = next((other for other in strongest_first if other in together), None)
    # If a concept always occurred alone, or a hop leaves no activation, the result is only the concept itself.
    number = max(each for each in seed.episodes if strongest is None or strongest in kept[each].concepts)
    episode = kept[number]
    activations = tuple(
        Activation(
            concept=name_of(graph[other]), energy=activated[other], term=other if other in episode.concepts else ""
        )
        for other in strongest_first[:_MOST_REPORTED]
    )
    wandered = MemoryWandered(
        request=request_id,
        reason="",
        strategy=strategy,
        seed=name_of(seed),
        concept=term,
        strength=strength_in(memory, term, now_ns, settings),
        activations=activations,
        activation=activations[0].energy if activations else 0.0,
        episode=f"episode:{number}",
        text=episode.text,
    )
    return WanderResult(wandered, episode.session)
