"""Wandering: the concepts that an idle agent comes upon by association. Pure.

Strategies are tried in the order asked. The first one that has a starting concept is used; resting concepts are left
out:

=========  =============================================================================================
decaying   the weakest whose strength is between 0.2 and 2.0
recent     one of the latest episode's
salient    one of the most salient episode's of the last 7 days, of equals the latest
random     one with a confidence of 0.4 or more
=========  =============================================================================================

Activation spreads from the starting concept as in ``concepts``, over links that weigh the latest meetings most; among
equals the latest concept is first. The strongest concept reached always occurred together with the starting one: each
hop lowers the activation, so a concept two hops away is weaker than the one between. So there is an episode with both,
and the thought is about the latest such episode. Since the thought contains no words of another session, it can be
forgotten with that session.
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
_TOLD = 12
"""Most concepts reached that are reported."""


class WanderRequest(msgspec.Struct, frozen=True):
    """How to wander: strategies in order, a number in [0, 1) that picks among concepts, and concepts to leave out."""

    strategies: tuple[Strategy, ...]
    pick: float
    resting: frozenset[str]


class WanderResult(msgspec.Struct, frozen=True):
    """What the agent came upon, and the session that it belongs to, empty for none."""

    wandered: MemoryWandered
    session: str


def wander(
    mind: AgentMemory, request: str, drift_request: WanderRequest, now_ns: int, settings: MemorySettings
) -> WanderResult:
    """Return what an agent's memory comes upon at a time."""
    kept = mind.episodes.kept
    lately = _lately(kept, now_ns, settings)
    if not lately:
        return WanderResult(MemoryWandered(request=request, reason="no_episode"), "")
    awake = {term: each for term, each in mind.concepts.items() if name_of(each) not in drift_request.resting}
    for strategy in drift_request.strategies:
        seeds = _seeds(strategy, mind, awake, lately, now_ns, settings)
        if seeds:
            return _from(mind, request, strategy, _picked(seeds, drift_request.pick), now_ns, settings)
    return WanderResult(MemoryWandered(request=request, reason="no_seed"), "")


def name_of(concept: Concept) -> str:
    """Return a concept's id."""
    return f"concept:{concept.number}"


def strength_in(mind: AgentMemory, term: str, now_ns: int, settings: MemorySettings) -> float:
    """Return a concept's strength: its meetings after decay, and the thoughts that strengthened it."""
    met = strength_of(mind.concepts[term], mind.episodes.kept, now_ns, settings)
    return round(met + added_strength(mind.thoughts, term, now_ns, settings), DECIMALS)


def _lately(kept: Mapping[int, Episode], now_ns: int, settings: MemorySettings) -> list[int]:
    """Return the numbers of the recent episodes, the latest first."""
    since_ns = now_ns - settings.wander_back_ms * _NS_PER_MS
    return sorted((number for number, episode in kept.items() if episode.at_ns >= since_ns), reverse=True)


def _seeds(
    strategy: Strategy,
    mind: AgentMemory,
    awake: dict[str, Concept],
    lately: list[int],
    now_ns: int,
    settings: MemorySettings,
) -> list[str]:
    """Return the concepts that a strategy may begin with, in an order that does not depend on their text."""
    kept = mind.episodes.kept
    match strategy:
        case "decaying":
            strengths = ((strength_in(mind, term, now_ns, settings), awake[term].number, term) for term in awake)
            fading = [each for each in strengths if settings.fading_above < each[0] < settings.fading_below]
            return [min(fading)[2]] if fading else []
        case "recent":
            return [term for term in kept[lately[0]].concepts if term in awake]
        case "salient":
            most = max(lately, key=lambda number: (kept[number].salience, number))
            return [term for term in kept[most].concepts if term in awake]
        case "random":
            sure = [term for term, each in awake.items() if each.confidence >= settings.sure_from]
            return sorted(sure, key=lambda term: awake[term].number)


def _picked(seeds: list[str], pick: float) -> str:
    return seeds[min(int(pick * len(seeds)), len(seeds) - 1)]


def _from(
    mind: AgentMemory, request: str, strategy: Strategy, term: str, now_ns: int, settings: MemorySettings
) -> WanderResult:
    graph, kept = mind.concepts, mind.episodes.kept
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
        for other in strongest_first[:_TOLD]
    )
    wandered = MemoryWandered(
        request=request,
        reason="",
        strategy=strategy,
        seed=name_of(seed),
        concept=term,
        strength=strength_in(mind, term, now_ns, settings),
        activations=activations,
        activation=activations[0].energy if activations else 0.0,
        episode=f"episode:{number}",
        text=episode.text,
    )
    return WanderResult(wandered, episode.session)
