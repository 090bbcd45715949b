"""Forgetting: what is dropped by an operator's order, so that none of the words is left. Pure.

*A session*: its turns and gists, its facts and episodes, and every concept and link that only these were behind.

*A fact*: the fact, every remembered exchange in which its key was told, every exchange and fact that quotes its value
in whole words (where the value says anything: a number, or a word that is not of grammar), and the concepts and links
that only these were behind. That takes more than the fact, and has to: its words are in all of them.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from actors.memory.concepts import pruned
from actors.memory.mind import Mind
from actors.memory.session import Session
from actors.memory.terms import terms_of
from actors.memory.told import key_of

Quotes = Callable[[str], bool]
"""Whether a text holds the words to be forgotten."""


class Forgotten(msgspec.Struct, frozen=True):
    """What is left: the mind, and the sessions that changed; ``count`` is the number of memories dropped."""

    mind: Mind
    sessions: dict[str, Session]
    count: int


def forget_session(mind: Mind, session: str, own: Session) -> Forgotten:
    """Return what is left without a session, given what it had of its own."""
    numbers = frozenset(number for number, episode in mind.episodes.kept.items() if episode.session == session)
    keys = [key for key, fact in mind.facts.items() if fact.session == session]
    left = _left(mind, numbers, keys)
    own_count = len(own.turns) + len(own.gists)
    return Forgotten(left, {session: Session()}, own_count + _dropped(mind, left))


def forget_fact(mind: Mind, sessions: Mapping[str, Session], key: str) -> Forgotten:
    """Return what is left without a fact, given what the agent's sessions have of their own, by session."""
    name = key_of(key)
    fact = mind.facts.get(name)
    if fact is None:
        return Forgotten(mind, {}, 0)
    quotes = quoting(fact.value)
    terms = {*terms_of(fact.value)}
    numbers = frozenset(
        (
            *fact.exchanges,
            *(
                number
                for number, episode in mind.episodes.kept.items()
                if quotes(episode.text) or (terms and terms.issubset(episode.concepts))
            ),
            *(number for session in sessions.values() for number in _quoting_own(session, quotes)),
        )
    )
    keys = [other for other, known in mind.facts.items() if other == name or quotes(f"{other}: {known.value}")]
    left = _left(mind, numbers, keys)
    changed = {name: session.without(numbers) for name, session in sessions.items()}
    changed = {name: session for name, session in changed.items() if session != sessions[name]}
    own_count = sum(_size(sessions[name]) - _size(session) for name, session in changed.items())
    return Forgotten(left, changed, own_count + _dropped(mind, left))


def quoting(value: str) -> Quotes:
    """Return what tells whether a text holds a value in whole words; nothing does where the value says nothing."""
    if not terms_of(value):
        return lambda _: False
    words = r"\W+".join(re.escape(word) for word in re.findall(r"\w+", value.casefold()))
    pattern = re.compile(rf"(?<!\w){words}(?!\w)")
    return lambda text: pattern.search(text.casefold()) is not None


def _quoting_own(session: Session, quotes: Quotes) -> Iterable[int]:
    yield from (turn.number for turn in session.turns if quotes(turn.text))
    yield from (gist.number for gist in session.gists if quotes(gist.text))


def _left(mind: Mind, numbers: frozenset[int], keys: Iterable[str]) -> Mind:
    facts = mind.facts
    for key in keys:
        facts = facts.delete(key)
    return msgspec.structs.replace(
        mind,
        facts=facts,
        episodes=mind.episodes.without(sorted(numbers)),
        concepts=pruned(mind.concepts, list(mind.concepts), numbers),
    )


def _dropped(before: Mind, after: Mind) -> int:
    return (
        len(before.facts)
        - len(after.facts)
        + len(before.episodes.kept)
        - len(after.episodes.kept)
        + len(before.concepts)
        - len(after.concepts)
    )


def _size(session: Session) -> int:
    return len(session.turns) + len(session.gists)
