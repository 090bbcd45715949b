"""What an agent remembers in addition to its sessions' turns and gists: facts, episodes and concepts. Pure.

A remembered exchange has one number, which its turn, gist and episode share; each fact has a number of its own. A
number is never reused, so that ``episode:7`` always means the same thing. The number of a memory does not depend on the
text of others. So a log in which some text can no longer be decrypted gives the same numbers.
"""

from collections.abc import Iterable, Sequence

import msgspec

from actors.memory.layers.concepts import Concept, with_meeting, without_episode
from actors.memory.layers.episodes import Episode, Episodes
from actors.memory.layers.facts import Origin, ToldFact, with_told
from actors.memory.layers.thoughts import Thought, thought_of, with_kept_episodes
from actors.memory.settings import MemorySettings
from schemas.persistent import Map
from schemas.vocabulary.drift import DriftThought
from schemas.vocabulary.memory import ActionResult, Fact


class Weight(msgspec.Struct, frozen=True):
    """How much higher a memory ranks: ``log`` is in [-1, 1], ``average`` is the mean of its seats.

    ``seat`` is the number of its last seat among the agent's seats, ``exchange`` the number of the agent's latest
    exchange at that time. From there on both numbers fade.
    """

    average: float
    log: float
    seat: int
    exchange: int = 0


class AgentMemory(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's long memory.

    ``exchanges``, ``told``, ``seats`` and ``thought`` count the exchanges remembered, the facts told, the seats
    received and the thoughts received so far. ``thoughts`` are the ones that are kept, oldest first. ``recalls`` says
    for each of the latest recalls whether it found anything. ``skills`` counts how often each skill was performed.
    ``seen_ns`` is the time of the last event that changed this memory.
    """

    exchanges: int = 0
    told: int = 0
    facts: Map[str, tuple[ToldFact, ...]] = Map()
    episodes: Episodes = Episodes()
    concepts: Map[str, Concept] = Map()
    recalls: tuple[bool, ...] = ()
    skills: Map[str, int] = Map()
    weights: Map[str, Weight] = Map()
    seats: int = 0
    thoughts: tuple[Thought, ...] = ()
    thought: int = 0
    seen_ns: int = 0


def with_exchange(mind: AgentMemory, episode: Episode, facts: Sequence[Fact], settings: MemorySettings) -> AgentMemory:
    """Return the memory after an exchange, whose number is ``exchanges`` of the returned memory."""
    number = mind.exchanges + 1
    mind = with_facts(mind, facts, Origin(episode.session, episode.topic, number), settings)
    episodes, concepts = mind.episodes.adding(number, episode), mind.concepts
    while len(episodes.kept) > settings.episodes:
        oldest = episodes.oldest()
        concepts = without_episode(concepts, episodes.kept[oldest].concepts, oldest)
        episodes = episodes.without([oldest]).beginning_at(oldest + 1)
    concepts = with_meeting(concepts, episode.concepts, number, settings)
    thoughts = with_kept_episodes(mind.thoughts, episodes.kept)
    return msgspec.structs.replace(mind, exchanges=number, episodes=episodes, concepts=concepts, thoughts=thoughts)


def with_thought(mind: AgentMemory, event: DriftThought, at_ns: int, settings: MemorySettings) -> AgentMemory:
    """Return the memory after a thought; a thought whose episode was forgotten meanwhile is counted but not kept."""
    number = mind.thought + 1
    thought = thought_of(number, event, at_ns)
    kept = mind.thoughts if thought is None else (*mind.thoughts, thought)
    thoughts = with_kept_episodes(kept, mind.episodes.kept)[-settings.thoughts :]
    return msgspec.structs.replace(mind, thought=number, thoughts=thoughts)


def with_facts(mind: AgentMemory, facts: Sequence[Fact], origin: Origin, settings: MemorySettings) -> AgentMemory:
    """Return the memory with additional facts that were told."""
    known = with_told(mind.facts, facts, origin, mind.told, settings)
    return msgspec.structs.replace(mind, told=mind.told + len(facts), facts=known)


def with_recalls(mind: AgentMemory, found: Iterable[bool], settings: MemorySettings) -> AgentMemory:
    """Return the memory after recalls, given for each whether it found anything."""
    return msgspec.structs.replace(mind, recalls=(*mind.recalls, *found)[-settings.recalls_judged :])


def with_skills_used(mind: AgentMemory, results: Iterable[ActionResult]) -> AgentMemory:
    """Return the memory with the performed skills counted."""
    skills = mind.skills
    for result in results:
        if result.ok:
            skills = skills.set(result.skill, skills.get(result.skill, 0) + 1)
    return msgspec.structs.replace(mind, skills=skills)


def failure_rate(mind: AgentMemory) -> float:
    """Return the share of the latest recalls that found nothing; 0 before the first."""
    return round(mind.recalls.count(False) / len(mind.recalls), 6) if mind.recalls else 0.0
