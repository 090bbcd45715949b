"""Forgetting: what is dropped by an operator's order, so that none of the words is left. Pure.

*A session*: its turns and gists, its facts and episodes. What an earlier session told of the same keys is known again.

*A fact*: whatever was told under its key, every remembered exchange in which it was told, and every exchange and fact
that quotes a value of it in whole words (where that says anything: a number, or a word that is not of grammar). That
takes more than the fact, and has to: its words are in all of them. Which these are is recorded by their numbers.

What an idle agent thought about an episode goes with that. In both cases the concepts are made anew of the episodes
that are left. So the state is, to the bit, what it would be had other words been said: once they cannot be read any
more, a replay still comes to it.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from actors.contract.text.terms import terms_of
from actors.memory.agent_memory import AgentMemory
from actors.memory.extraction.keys import key_of
from actors.memory.layers.concepts import rebuild_graph
from actors.memory.layers.facts import size_of, without_told
from actors.memory.layers.session import Session
from actors.memory.layers.thoughts import with_kept_episodes
from actors.memory.settings import MemorySettings

Quotes = Callable[[str], bool]
"""Whether a text holds words that are to be forgotten."""


class DroppedByFact(msgspec.Struct, frozen=True):
    """What an order about a fact drops: exchanges and facts, by their numbers."""

    exchanges: frozenset[int]
    facts: frozenset[int]


class Remaining(msgspec.Struct, frozen=True):
    """What is left: the mind, and the sessions that changed; ``count`` is the number of memories dropped."""

    mind: AgentMemory
    sessions: dict[str, Session]
    count: int


def without_session(mind: AgentMemory, session: str, own: Session, settings: MemorySettings) -> Remaining:
    """Return what is left without a session, given what it has of its own."""
    exchanges = [number for number, episode in mind.episodes.kept.items() if episode.session == session]
    facts = without_told(mind.facts, lambda each: each.session == session)
    left = _rebuilt(msgspec.structs.replace(mind, facts=facts), exchanges, settings)
    return Remaining(left, {session: Session()}, _size(own) + _lost(mind, left))


def dropped_with(mind: AgentMemory, sessions: Mapping[str, Session], key: str) -> DroppedByFact:
    """Return what goes with a fact, given what the agent's sessions have of their own, by session."""
    tellings = mind.facts.get(key_of(key), ())
    values = [each.value for each in tellings]
    quotes = quote_matcher(values)
    terms = [{*terms} for value in values if (terms := terms_of(value))]
    exchanges = {number for each in tellings for number in each.exchanges}
    for number, episode in mind.episodes.kept.items():
        if quotes(episode.text) or any(each.issubset(episode.concepts) for each in terms):
            exchanges.add(number)
    for session in sessions.values():
        exchanges.update(turn.number for turn in session.turns if quotes(turn.text))
        exchanges.update(gist.number for gist in session.gists if quotes(gist.text))
    facts = {each.number for each in tellings}
    for other, known in mind.facts.items():
        facts.update(each.number for each in known if quotes(f"{other}: {each.value}"))
    return DroppedByFact(frozenset(exchanges), frozenset(facts))


def sessions_with(mind: AgentMemory, sessions: Mapping[str, Session], exchanges: frozenset[int]) -> set[str]:
    """Return the sessions that remembered exchanges of these numbers belong to."""
    found = {episode.session for number in exchanges if (episode := mind.episodes.kept.get(number)) is not None}
    found.update(name for name, session in sessions.items() if session.without(exchanges) != session)
    return found


def without_fact(
    mind: AgentMemory, sessions: Mapping[str, Session], dropped: DroppedByFact, settings: MemorySettings
) -> Remaining:
    """Return what is left without what goes with a fact."""
    if not dropped.exchanges and not dropped.facts:
        return Remaining(mind, {}, 0)
    facts = without_told(mind.facts, lambda each: each.number in dropped.facts)
    left = _rebuilt(msgspec.structs.replace(mind, facts=facts), sorted(dropped.exchanges), settings)
    changed = {name: session.without(dropped.exchanges) for name, session in sessions.items()}
    changed = {name: session for name, session in changed.items() if session != sessions[name]}
    own = sum(_size(sessions[name]) - _size(session) for name, session in changed.items())
    return Remaining(left, changed, own + _lost(mind, left))


def quote_matcher(values: Iterable[str]) -> Quotes:
    """Return what tells whether a text holds one of these in whole words; those that say nothing are never held."""
    patterns = [
        r"\W+".join(re.escape(word) for word in re.findall(r"\w+", value.casefold()))
        for value in values
        if terms_of(value)
    ]
    if not patterns:
        return lambda _: False
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)")
    return lambda text: pattern.search(text.casefold()) is not None


def _rebuilt(mind: AgentMemory, exchanges: Iterable[int], settings: MemorySettings) -> AgentMemory:
    episodes = mind.episodes.without(exchanges)
    thoughts = with_kept_episodes(mind.thoughts, episodes.kept)
    concepts = rebuild_graph(episodes.kept, settings)
    return msgspec.structs.replace(mind, episodes=episodes, concepts=concepts, thoughts=thoughts)


def _lost(before: AgentMemory, after: AgentMemory) -> int:
    # Concepts that had been pushed out may be back: those are none the fewer lost.
    concepts = sum(term not in after.concepts for term in before.concepts)
    facts = size_of(before.facts) - size_of(after.facts)
    episodes = len(before.episodes.kept) - len(after.episodes.kept)
    return facts + episodes + concepts + len(before.thoughts) - len(after.thoughts)


def _size(session: Session) -> int:
    return len(session.turns) + len(session.gists)
