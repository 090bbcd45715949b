"""What an agent remembers, beyond its sessions' turns and gists: facts, episodes and concepts. Pure.

A remembered exchange has one number, by which its turn, gist and episode are known; what is told as a fact has another.
Numbers are never given twice, so that ``episode:7`` means one thing for good. Which number a thing gets does not depend
on the words of others: a log in which some cannot be read any more gives the same.
"""

from collections.abc import Iterable, Sequence

import msgspec

from actors.memory.layers.concepts import Concept, met, pruned
from actors.memory.layers.episodes import Episode, Episodes
from actors.memory.layers.facts import Origin, Telling, told
from actors.memory.layers.thoughts import Thought, grounded, thought_of
from actors.memory.settings import MemorySettings
from schemas.persistent import Map
from schemas.vocabulary.drift import DriftThought
from schemas.vocabulary.memory import ActionResult, Fact


class Weight(msgspec.Struct, frozen=True):
    """How much sooner a memory comes to mind: ``log`` is in [-1, 1], ``average`` that of its seats.

    ``seat`` is the number of the last one among the agent's, ``exchange`` that of its latest exchange then: both
    numbers fade from there on.
    """

    average: float
    log: float
    seat: int
    exchange: int = 0


class Mind(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's long memory.

    ``exchanges``, ``told``, ``seats`` and ``thought`` count the exchanges remembered, the facts told, the seats heard
    and the thoughts that came so far. ``thoughts`` are those that are kept, oldest first.
    ``recalls`` says of the latest recalls whether anything came to mind, ``skills`` how often each skill was performed.
    ``seen_ns`` is the time of the last event that changed it.
    """

    exchanges: int = 0
    told: int = 0
    facts: Map[str, tuple[Telling, ...]] = Map()
    episodes: Episodes = Episodes()
    concepts: Map[str, Concept] = Map()
    recalls: tuple[bool, ...] = ()
    skills: Map[str, int] = Map()
    weights: Map[str, Weight] = Map()
    seats: int = 0
    thoughts: tuple[Thought, ...] = ()
    thought: int = 0
    seen_ns: int = 0


def remembering(mind: Mind, episode: Episode, facts: Sequence[Fact], settings: MemorySettings) -> Mind:
    """Return the mind after an exchange; its number is ``exchanges`` of the mind that is returned."""
    number = mind.exchanges + 1
    mind = memorizing(mind, facts, Origin(episode.session, episode.topic, number), settings)
    episodes, concepts = mind.episodes.adding(number, episode), mind.concepts
    while len(episodes.kept) > settings.episodes:
        oldest = episodes.oldest()
        concepts = pruned(concepts, episodes.kept[oldest].concepts, oldest)
        episodes = episodes.without([oldest]).beginning_at(oldest + 1)
    concepts = met(concepts, episode.concepts, number, settings)
    thoughts = grounded(mind.thoughts, episodes.kept)
    return msgspec.structs.replace(mind, exchanges=number, episodes=episodes, concepts=concepts, thoughts=thoughts)


def thinking(mind: Mind, event: DriftThought, at_ns: int, settings: MemorySettings) -> Mind:
    """Return the mind after a thought; one whose episode is forgotten meanwhile is not kept, and still is counted."""
    number = mind.thought + 1
    thought = thought_of(number, event, at_ns)
    kept = mind.thoughts if thought is None else (*mind.thoughts, thought)
    thoughts = grounded(kept, mind.episodes.kept)[-settings.thoughts :]
    return msgspec.structs.replace(mind, thought=number, thoughts=thoughts)


def memorizing(mind: Mind, facts: Sequence[Fact], origin: Origin, settings: MemorySettings) -> Mind:
    """Return the mind with facts that it was told."""
    known = told(mind.facts, facts, origin, mind.told, settings)
    return msgspec.structs.replace(mind, told=mind.told + len(facts), facts=known)


def recalling(mind: Mind, found: Iterable[bool], settings: MemorySettings) -> Mind:
    """Return the mind after recalls that found something, or did not."""
    return msgspec.structs.replace(mind, recalls=(*mind.recalls, *found)[-settings.recalls_judged :])


def performing(mind: Mind, results: Iterable[ActionResult]) -> Mind:
    """Return the mind with the skills counted that were performed."""
    skills = mind.skills
    for result in results:
        if result.ok:
            skills = skills.set(result.skill, skills.get(result.skill, 0) + 1)
    return msgspec.structs.replace(mind, skills=skills)


def failure_rate(mind: Mind) -> float:
    """Return the share of the latest recalls that found nothing; 0 before the first."""
    return round(mind.recalls.count(False) / len(mind.recalls), 6) if mind.recalls else 0.0
