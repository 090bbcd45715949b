"""Forgetting: what an operator's order removes, so that none of the text is left. Pure.

*A session*: its turns (the latest exchanges) and gists (summaries of exchanges in one line), its facts and episodes
(exchanges as the agent remembers them). If an earlier session stated a value for the same key, that value is known
again.

*A fact*: everything stated under its key, every remembered exchange in which it was stated, and every exchange and fact
that quotes one of its values in whole words. Values that consist only of grammatical words are not searched for. This
removes more than the fact itself, because the words of the fact are in all of these. The numbers of all that is removed
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
from actors.memory.layers.facts import size_of, without_statements
from actors.memory.layers.session import Session
from actors.memory.layers.thoughts import with_kept_episodes
from actors.memory.settings import MemorySettings

Quotes = Callable[[str], bool]
"""Whether a text contains words that must be forgotten."""


class RemovedByFact(msgspec.Struct, frozen=True):
    """What an order about a fact removes: exchanges and facts, by their numbers."""

    exchanges: frozenset[int]
    facts: frozenset[int]


class Remaining(msgspec.Struct, frozen=True):
    """What is left: the agent's memory, and the changed sessions; ``count`` is the number of memories removed."""

    memory: AgentMemory
    sessions: dict[str, Session]
    count: int


def without_session(memory: AgentMemory, session: str, own_memory: Session, settings: MemorySettings) -> Remaining:
    """Return what is left without a session, given the session's own turns and gists."""
    exchanges = [number for number, episode in memory.episodes.kept.items() if episode.session == session]
    facts = without_statements(memory.facts, lambda each: each.session == session)
    rest = _without_exchanges(msgspec.structs.replace(memory, facts=facts), exchanges, settings)
    return Remaining(rest, {session: Session()}, _size(own_memory) + _removed_count(memory, rest))


def removed_with(memory: AgentMemory, sessions: Mapping[str, Session], key: str) -> RemovedByFact:
    """Return what is removed with a fact, given the turns and gists of the agent's sessions."""
    statements = memory.facts.get(key_of(key), ())
    values = [each.value for each in statements]
    quotes = quote_matcher(values)
    terms = [{*terms} for value in values if (terms := terms_of(value))]
    exchanges = {number for each in statements for number in each.exchanges}
    for number, episode in memory.episodes.kept.items():
        if quotes(episode.text) or any(each.issubset(episode.concepts) for each in terms):
            exchanges.add(number)
    for session in sessions.values():
        exchanges.update(turn.number for turn in session.turns if quotes(turn.text))
        exchanges.update(gist.number for gist in session.gists if quotes(gist.text))
    facts = {each.number for each in statements}
    for other, known in memory.facts.items():
        facts.update(each.number for each in known if quotes(f"{other}: {each.value}"))
    return RemovedByFact(frozenset(exchanges), frozenset(facts))


def sessions_with(memory: AgentMemory, sessions: Mapping[str, Session], exchanges: frozenset[int]) -> set[str]:
    """Return the sessions to which the remembered exchanges with these numbers belong."""
    found = {episode.session for number in exchanges if (episode := memory.episodes.kept.get(number)) is not None}
    found.update(name for name, session in sessions.items() if session.without(exchanges) != session)
    return found


def without_fact(
    memory: AgentMemory, sessions: Mapping[str, Session], removed: RemovedByFact, settings: MemorySettings
) -> Remaining:
    """Return what is left without a fact and everything removed with it."""
    if not removed.exchanges and not removed.facts:
        return Remaining(memory, {}, 0)
    facts = without_statements(memory.facts, lambda each: each.number in removed.facts)
    rest = _without_exchanges(msgspec.structs.replace(memory, facts=facts), sorted(removed.exchanges), settings)
    changed = {name: session.without(removed.exchanges) for name, session in sessions.items()}
    changed = {name: session for name, session in changed.items() if session != sessions[name]}
    in_sessions = sum(_size(sessions[name]) - _size(session) for name, session in changed.items())
    return Remaining(rest, changed, in_sessions + _removed_count(memory, rest))


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


def _without_exchanges(memory: AgentMemory, exchanges: Iterable[int], settings: MemorySettings) -> AgentMemory:
    episodes = memory.episodes.without(exchanges)
    thoughts = with_kept_episodes(memory.thoughts, episodes.kept)
    concepts = rebuild_graph(episodes.kept, settings)
    return msgspec.structs.replace(memory, episodes=episodes, concepts=concepts, thoughts=thoughts)


def _removed_count(before: AgentMemory, after: AgentMemory) -> int:
    # Concepts that had been dropped for lack of room may be back. They do not reduce the count of removed ones.
    concepts = sum(term not in after.concepts for term in before.concepts)
    facts = size_of(before.facts) - size_of(after.facts)
    episodes = len(before.episodes.kept) - len(after.episodes.kept)
    return facts + episodes + concepts + len(before.thoughts) - len(after.thoughts)


def _size(session: Session) -> int:
    return len(session.turns) + len(session.gists)
