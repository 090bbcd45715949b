"""Facts: what an agent was told, by key. A later value of a key replaces the earlier one; the oldest go.

A fact belongs to the session and topic in which it was told last. Topics are a session's own: another session's topic
of the same name is another topic.
"""

from collections.abc import Sequence

import msgspec

from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS, terms_of
from actors.memory.told import EMPLOYER, HOME, JOB, NAME, NOTE, OPINION
from schemas.persistent import Map
from schemas.vocabulary.memory import Fact

_EXCHANGES_KEPT = 16
_ASKED_AS = {
    NAME: ("name", "called", "call"),
    HOME: ("home", "live", "living", "city", "town", "address"),
    JOB: ("job", "work", "profession", "occupation"),
    EMPLOYER: ("employer", "work", "company", "office"),
}
"""The terms by which each of these keys is asked for: any of them is as good as the key itself."""


class KnownFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact as it is known.

    ``exchanges`` are the numbers of the remembered exchanges in which its key was told, earlier values included.
    ``asked`` are the terms that ask for it, and ``terms`` all of its own.
    """

    number: int
    value: str
    session: str
    topic: str
    exchanges: tuple[int, ...]
    asked: tuple[str, ...]
    terms: tuple[str, ...]


class Origin(msgspec.Struct, frozen=True):
    """Where facts come from; ``exchange`` is 0 where the exchange is not remembered (yet)."""

    session: str
    topic: str
    exchange: int = 0


Facts = Map[str, KnownFact]


def told(
    known: Facts, facts: Sequence[Fact], origin: Origin, named: int, settings: MemorySettings
) -> tuple[Facts, int]:
    """Return the facts known after some were told, and how many things are named by then: each gets a new number."""
    for fact in facts:
        named += 1
        before = known.get(fact.key)
        exchanges = before.exchanges if before is not None else ()
        if origin.exchange:
            exchanges = (*(each for each in exchanges if each != origin.exchange), origin.exchange)
        asked, terms = _terms(fact)
        now = KnownFact(
            number=named,
            value=fact.value,
            session=origin.session,
            topic=origin.topic,
            exchanges=exchanges[-_EXCHANGES_KEPT:],
            asked=asked,
            terms=terms,
        )
        known = known.set(fact.key, now)
    if not facts:
        return known, named
    topical = [key for key, fact in known.items() if (fact.session, fact.topic) == (origin.session, origin.topic)]
    known = _without_oldest(known, topical, settings.facts_per_topic)
    return _without_oldest(known, list(known), settings.facts), named


def on_topic(known: Facts, session: str, topic: str) -> tuple[str, ...]:
    """Return the keys of the facts that belong to a topic of a session, the latest first."""
    found = [(fact.number, key) for key, fact in known.items() if (fact.session, fact.topic) == (session, topic)]
    return tuple(key for _, key in sorted(found, reverse=True))


def energy_of(fact: KnownFact, sought: frozenset[str]) -> float:
    """Return how strongly terms bring a fact to mind, in [0, 1].

    Half of it is the share of the terms that the fact has, half the share of its key that they ask for.
    """
    if sought.isdisjoint(fact.terms):
        return 0.0
    shared = len(sought.intersection(fact.terms))
    return round(0.5 * shared / len(sought) + 0.5 * _asked_for(fact, sought), DECIMALS)


def text_of(key: str, fact: KnownFact) -> str:
    """Return a fact in a line."""
    return f"{key}: {fact.value}"


def _asked_for(fact: KnownFact, sought: frozenset[str]) -> float:
    found = len(sought.intersection(fact.asked))
    if fact.asked in _ASKED_AS.values():
        return float(found > 0)
    return found / len(fact.asked) if found else 0.0


def _terms(fact: Fact) -> tuple[tuple[str, ...], tuple[str, ...]]:
    about = fact.key.removeprefix(f"{OPINION} ").removeprefix(f"{NOTE} ")
    asked = _ASKED_AS.get(fact.key) or terms_of(about)
    return asked, tuple(dict.fromkeys((*asked, *terms_of(fact.value))))


def _without_oldest(known: Facts, keys: list[str], most: int) -> Facts:
    for key in sorted(keys, key=lambda each: known[each].number)[: max(0, len(keys) - most)]:
        known = known.delete(key)
    return known
