"""What an agent remembers across its sessions: facts, episodes, concepts and thoughts. Pure.

An episode is an exchange as it is remembered, a concept a term that occurred in episodes, a gist an exchange's summary
in one line. A remembered exchange has one number, which its turn, gist and episode share; each fact has a number of its
own. A number is never reused, so that ``episode:7`` always means the same thing. The number of a memory does not depend
on the text of other memories. So a log in which some text cannot be decrypted gives the same numbers.
"""

from collections.abc import Iterable, Sequence

import msgspec

from actors.memory.layers.concepts import Concept, with_occurrence, without_episode
from actors.memory.layers.episodes import Episode, Episodes
from actors.memory.layers.facts import Origin, StatedFact, with_statements
from actors.memory.layers.thoughts import Thought, thought_of, with_kept_episodes
from actors.memory.settings import MemorySettings
from schemas.persistent import Map
from schemas.vocabulary.drift import DriftThought
from schemas.vocabulary.memory import ActionResult, Fact


class Weight(msgspec.Struct, frozen=True, gc=False):
    """How much higher a memory ranks by the seats it got (verdicts of self-review on it).

    ``log`` is the logarithm of the factor on its energy (how strongly it is recalled), in [-1, 1]; ``average`` is the
    mean of its seats. ``seat`` is the number of its last seat among the agent's seats, ``exchange`` the number of the
    agent's latest exchange at that time. With further exchanges both ``log`` and ``average`` fade.
    """

    average: float
    log: float
    seat: int
    exchange: int = 0


class AgentMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent remembers across its sessions.

    ``exchanges``, ``told``, ``seats`` and ``thought`` count the exchanges remembered, the facts stated, the seats
    received and the thoughts received so far. ``thoughts`` are the ones that are kept, oldest first. ``recalls`` says
    for each of the latest recalls whether it found anything. ``skills`` counts how often each skill (recall, memorize
    and the like) was performed. ``seen_ns`` is the time of the last event that changed this memory.
    """

    exchanges: int = 0
    told: int = 0
    facts: Map[str, tuple[StatedFact, ...]] = Map()
    episodes: Episodes = Episodes()
    concepts: Map[str, Concept] = Map()
    recalls: tuple[bool, ...] = ()
    skills: Map[str, int] = Map()
    weights: Map[str, Weight] = Map()
    seats: int = 0
    thoughts: tuple[Thought, ...] = ()
    thought: int = 0
    seen_ns: int = 0


def with_exchange(
    memory: AgentMemory, episode: Episode, facts: Sequence[Fact], settings: MemorySettings
) -> AgentMemory:
    """Return the memory after an exchange, whose number is ``exchanges`` of the returned memory."""
    number = memory.exchanges + 1
    memory = with_facts(memory, facts, Origin(episode.session, episode.topic, number), settings)
    episodes, concepts = memory.episodes.adding(number, episode), memory.concepts
    while len(episodes.kept) > settings.episodes:
        oldest = episodes.oldest()
        concepts = without_episode(concepts, episodes.kept[oldest].concepts, oldest)
        episodes = episodes.without([oldest]).beginning_at(oldest + 1)
    concepts = with_occurrence(concepts, episode.concepts, number, settings)
    thoughts = with_kept_episodes(memory.thoughts, episodes.kept)
    return msgspec.structs.replace(memory, exchanges=number, episodes=episodes, concepts=concepts, thoughts=thoughts)


def with_thought(memory: AgentMemory, event: DriftThought, at_ns: int, settings: MemorySettings) -> AgentMemory:
    """Return the memory after a thought; a thought whose episode was forgotten meanwhile is counted but not kept."""
    number = memory.thought + 1
    thought = thought_of(number, event, at_ns)
    kept = memory.thoughts if thought is None else (*memory.thoughts, thought)
    thoughts = with_kept_episodes(kept, memory.episodes.kept)[-settings.thoughts :]
    return msgspec.structs.replace(memory, thought=number, thoughts=thoughts)


def with_facts(memory: AgentMemory, facts: Sequence[Fact], origin: Origin, settings: MemorySettings) -> AgentMemory:
    """Return the memory with additional facts that were stated."""
    known = with_statements(memory.facts, facts, origin, memory.told, settings)
    return msgspec.structs.replace(memory, told=memory.told + len(facts), facts=known)


def with_recalls(memory: AgentMemory, hits: Iterable[bool], settings: MemorySettings) -> AgentMemory:
    """Return the memory after recalls, ``hits``: for each, whether it found anything."""
    return msgspec.structs.replace(memory, recalls=(*memory.recalls, *hits)[-settings.recalls_judged :])


def with_skills_used(memory: AgentMemory, results: Iterable[ActionResult]) -> AgentMemory:
    """Return the memory with the performed skills counted."""
    skills = memory.skills
    for result in results:
        if result.ok:
            skills = skills.set(result.skill, skills.get(result.skill, 0) + 1)
    return msgspec.structs.replace(memory, skills=skills)


def failure_rate(memory: AgentMemory) -> float:
    """Return the share of the latest recalls that found nothing; 0 before the first."""
    return round(memory.recalls.count(False) / len(memory.recalls), 6) if memory.recalls else 0.0
