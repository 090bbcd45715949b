"""Forgetting: what an operator's order removes, so that none of the text is left. Pure.

*A session*: its turns and gists, its facts and episodes. If an earlier session stated a value for the same key, that
value is known again.

*A fact*: everything stated under its key, every remembered exchange in which it was stated, and every exchange and fact
that quotes one of its values in whole words. A value counts if it has meaning: a number, or a word that is not
grammatical. This removes more than the fact itself, and must: the words of the fact are in all of them. Their numbers
are recorded.

The thoughts of an idle agent about an episode are removed with it. In both cases the concepts are computed again from
the remaining episodes. So the resulting state does not depend on the forgotten words: a replay gives the same bits even
when those words can no longer be decrypted.
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
"""Whether a text contains words that must be forgotten."""


class DroppedByFact(msgspec.Struct, frozen=True):
    """What an order about a fact removes: exchanges and facts, by their numbers."""

    exchanges: frozenset[int]
    facts: frozenset[int]


class Remaining(msgspec.Struct, frozen=True):
    """What is left: the agent's memory, and the changed sessions; ``count`` is the number of memories removed."""

    mind: AgentMemory
    sessions: dict[str, Session]
    count: int


def without_session(mind: AgentMemory, session: str, own: Session, settings: MemorySettings) -> Remaining:
    """Return what is left without a session, given the session's own turns and gists."""
    exchanges = [number for number, episode in mind.episodes.kept.items() if episode.session == session]
    facts = without_told(mind.facts, lambda each: each.session == session)
    left = _rebuilt(msgspec.structs.replace(mind, facts=facts), exchanges, settings)
    return Remaining(left, {session: Session()}, _size(own) + _lost(mind, left))


def dropped_with(mind: AgentMemory, sessions: Mapping[str, Session], key: str) -> DroppedByFact:
    """Return what is removed with a fact, given the turns and gists of the agent's sessions."""
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
    """Return the sessions to which the remembered exchanges with these numbers belong."""
    found = {episode.session for number in exchanges if (episode := mind.episodes.kept.get(number)) is not None}
    found.update(name for name, session in sessions.items() if session.without(exchanges) != session)
    return found


def without_fact(
    mind: AgentMemory, sessions: Mapping[str, Session], dropped: DroppedByFact, settings: MemorySettings
) -> Remaining:
    """Return what is left without a fact and everything removed with it."""
    if not dropped.exchanges and not dropped.facts:
        return Remaining(mind, {}, 0)
    facts = without_told(mind.facts, lambda each: each.number in dropped.facts)
    left = _rebuilt(msgspec.structs.replace(mind, facts=facts), sorted(dropped.exchanges), settings)
    changed = {name: session.without(dropped.exchanges) for name, session in sessions.items()}
    changed = {name: session for name, session in changed.items() if session != sessions[name]}
    own = sum(_size(sessions[name]) - _size(session) for name, session in changed.items())
    return Remaining(left, changed, own + _lost(mind, left))


def quote_matcher(values: Iterable[str]) -> Quotes:
    """Return a check whether a text contains a value in whole words; values without meaning never match."""
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
    # Concepts that had been displaced may be back; they do not reduce the count of removed ones.
    concepts = sum(term not in after.concepts for term in before.concepts)
    facts = size_of(before.facts) - size_of(after.facts)
    episodes = len(before.episodes.kept) - len(after.episodes.kept)
    return facts + episodes + concepts + len(before.thoughts) - len(after.thoughts)


def _size(session: Session) -> int:
    return len(session.turns) + len(session.gists)
