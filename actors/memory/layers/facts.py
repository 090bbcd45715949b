"""Facts: what people stated to an agent, by key. A later value of a key replaces the earlier one.

The last value stated is the known one. The value that an earlier session stated for the same key is kept behind it: if
the later session is forgotten, the earlier value is known again. That a fact was taken back is stored as its last
statement, without a value, and can be forgotten like any other. A fact belongs to the session and topic in which it was
stated. Topics belong to a session: a topic of the same name in another session is another topic. If there are too many
facts, the oldest are dropped.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from actors.contract.text.terms import terms_of
from actors.memory.extraction.keys import ALLERGY, ASKED_AS, DRINKING, EATING, NAME, NOTE, OPINION
from actors.memory.extraction.word_lists import word_lists
from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS
from schemas.persistent import Map
from schemas.vocabulary.memory import Fact, RetiredWhy

_EXCHANGES_KEPT = 16
"""Most exchanges that are kept with a statement."""

_ASKS = tuple(
    (re.compile(pattern, re.I), term)
    for pattern, term in (
        (r"\bwho (?:am i|i am)\b|\b(?:do you )?(?:know|remember) (?:who i am|me)\b", "name"),
        (r"\bhow old (?:am i|i am)\b", "age"),
        (r"\bwhere (?:am i|i am|i'm|do i come) from\b", "origin"),
        (r"\bwhat (?:do|should|can|may) i (?:not )?(?:eat|drink)\b", "food"),
    )
)
"""Questions that consist only of grammatical words, and the term that each asks for."""

_ASKS_FOR_ALL = re.compile(
    r"\b(?:know|remember|recall|learn(?:ed|t)?|saved|stored|noted|told you|tell you|tell me)\b[^.?!\n]{0,40}"
    r"\babout (?:me|myself)\b"
    r"|\bwhat (?:have i told|did i tell) you\W*$|\bwhat (?:do|can) you (?:remember|recall)\W*$",
    re.I,
)
"""A question for everything that is known about the speaker."""

ASKED_FOR_ALL = 0.5
"""The energy (strength of recall, 0 to 1) of each fact when a person asks for everything known about them."""

_RELATED = word_lists().related
_NONE: frozenset[str] = frozenset()


class StatedFact(msgspec.Struct, frozen=True, kw_only=True):
    """The last statement of a session under a key.

    ``exchanges`` are the numbers of its remembered exchanges that stated the key, including earlier values. ``asked``
    are the terms that ask for the key, ``terms`` all terms of the fact. If the value was taken back, ``retired`` says
    why, and ``value`` is empty. ``stale`` are the exchanges that stated what this statement retired.
    """

    number: int
    value: str
    session: str
    topic: str
    exchanges: tuple[int, ...]
    asked: tuple[str, ...]
    terms: tuple[str, ...]
    retired: RetiredWhy | Literal[""] = ""
    stale: tuple[int, ...] = ()


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where facts come from; ``exchange`` is 0 if the exchange is not remembered, or not yet."""

    session: str
    topic: str
    exchange: int = 0


Facts = Map[str, tuple[StatedFact, ...]]
"""Key -> the statements of sessions under it, in order: the last one is what is known."""


class CurrentValues(Mapping[str, str]):
    """The known values, by key."""

    def __init__(self, known: Facts) -> None:
        self._known = known

    def __getitem__(self, key: str) -> str:
        """Return a key's value; raises KeyError if none is known."""
        (*_, statement) = self._known[key]
        if statement.retired:
            raise KeyError(key)
        return statement.value

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return (key for key, _ in current_facts(self._known))

    def __len__(self) -> int:
        """Return the number of keys."""
        return sum(1 for _ in self)


def current_facts(known: Facts) -> Iterator[tuple[str, StatedFact]]:
    """Yield each key that has a known value, and its statement."""
    return ((key, statements[-1]) for key, statements in known.items() if not statements[-1].retired)


def with_statements(known: Facts, facts: Sequence[Fact], origin: Origin, count: int, settings: MemorySettings) -> Facts:
    """Return the facts after some were stated; ``count`` is the number stated before, and each gets the next number."""
    for number, fact in enumerate(facts, count + 1):
        known = _with_statement(known, fact, origin, number)
    if not facts:
        return known
    # Dropped by number, not by how many are left: which ones are dropped must not depend on the texts of other facts.
    oldest = count + len(facts) - settings.facts
    known = without_statements(known, lambda each: each.number <= oldest)
    topic = (origin.session, origin.topic)
    on_topic_numbers = [each.number for each in _all_statements(known) if (each.session, each.topic) == topic]
    excess = {*sorted(on_topic_numbers)[: max(0, len(on_topic_numbers) - settings.facts_per_topic)]}
    return without_statements(known, lambda each: each.number in excess) if excess else known


def with_taken_back(known: Facts, ended: Iterable[tuple[str, RetiredWhy]], origin: Origin, count: int) -> Facts:
    """Return the facts after keys lost their values; each loss counts as a statement."""
    for number, (key, why) in enumerate(ended, count + 1):
        known = _with_statement(known, Fact(key=key, value=""), origin, number, why)
    return known


def with_stale_exchanges(known: Facts, key: str, exchanges: Iterable[int]) -> Facts:
    """Return the facts after the last statement of a key made these exchanges stale."""
    statements = known.get(key, ())
    if not statements:
        return known
    stale = tuple(dict.fromkeys((*statements[-1].stale, *exchanges)))[-_EXCHANGES_KEPT:]
    return known.set(key, (*statements[:-1], msgspec.structs.replace(statements[-1], stale=stale)))


def stale_exchanges(known: Facts) -> frozenset[int]:
    """Return the exchanges that stated something which was retired later."""
    return frozenset(number for each in _all_statements(known) for number in each.stale)


def without_statements(known: Facts, is_removed: Callable[[StatedFact], bool]) -> Facts:
    """Return the facts without the statements for which ``is_removed`` is true."""
    for key, statements in list(known.items()):
        remaining = tuple(each for each in statements if not is_removed(each))
        if len(remaining) < len(statements):
            known = known.set(key, remaining) if remaining else known.delete(key)
    return known


def size_of(known: Facts) -> int:
    """Return the number of statements, including those kept behind later ones."""
    return sum(1 for _ in _all_statements(known))


def on_topic(known: Facts, session: str, topic: str) -> tuple[str, ...]:
    """Return the keys of the known facts that belong to a topic of a session, the latest first."""
    found = [(each.number, key) for key, each in current_facts(known) if (each.session, each.topic) == (session, topic)]
    return tuple(key for _, key in sorted(found, reverse=True))


def energy_of(key: str, fact: StatedFact, sought: frozenset[str]) -> float:
    """Return how strongly terms recall a fact, in [0, 1].

    It is the mean of two shares: how many of the terms sought the fact contains or its kind relates to (an allergy to
    food), and how many of the terms that ask for its key are sought. It is 0 if the first share is 0.
    """
    related = _RELATED.get(kind_of(key), _NONE)
    shared = sum(term in fact.terms or term in related for term in sought)
    return round(0.5 * shared / len(sought) + 0.5 * _asked_for(fact, sought), DECIMALS) if shared else 0.0


def kind_of(key: str) -> str:
    """Return the kind of a key: ``allergy``, ``opinion``, ``kin`` (people and animals), or the key itself."""
    for kind, kind_name in ((ALLERGY, "allergy"), (EATING, "diet"), (DRINKING, "diet"), (OPINION, "opinion")):
        if key.startswith(f"{kind} "):
            return kind_name
    whose = key.removesuffix(f"'s {NAME}").rpartition(" ")[2]
    return "kin" if whose in word_lists().kin else key


def asked_by(text: str) -> tuple[str, ...]:
    """Return the terms that a question asks for without naming them ("Who am I?")."""
    return tuple(term for pattern, term in _ASKS if pattern.search(text))


def asks_for_all(text: str) -> bool:
    """Whether a text asks for everything known about its speaker ("What do you know about me?")."""
    return _ASKS_FOR_ALL.search(text) is not None


def text_of(key: str, fact: StatedFact) -> str:
    """Return a fact as one line of text."""
    return f"{key}: {fact.value}"


def _with_statement(
    known: Facts, fact: Fact, origin: Origin, number: int, retired: RetiredWhy | Literal[""] = ""
) -> Facts:
    """Return the facts with a statement as the last of its key; it replaces the statement of the same session."""
    before = known.get(fact.key, ())
    exchanges = next((each.exchanges for each in before if each.session == origin.session), ())
    if origin.exchange and origin.exchange not in exchanges:
        exchanges = (*exchanges, origin.exchange)[-_EXCHANGES_KEPT:]
    asked, terms = ((), ()) if retired else _terms(fact)
    statement = StatedFact(
        number=number,
        value=fact.value,
        session=origin.session,
        topic=origin.topic,
        exchanges=exchanges,
        asked=asked,
        terms=terms,
        retired=retired,
    )
    return known.set(fact.key, (*(each for each in before if each.session != origin.session), statement))


def _all_statements(known: Facts) -> list[StatedFact]:
    return [each for statements in known.values() for each in statements]


def _asked_for(fact: StatedFact, sought: frozenset[str]) -> float:
    """Return what share of the terms that ask for a fact's key is sought; for a fixed key, 1 if any of them is."""
    found = len(sought.intersection(fact.asked))
    if fact.asked in ASKED_AS.values():
        return float(found > 0)
    return found / len(fact.asked) if found else 0.0


def _terms(fact: Fact) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms that ask for a fact's key, and all terms of the fact."""
    about = (
        fact.key.removeprefix(f"{OPINION} ")
        .removeprefix(f"{NOTE} ")
        .removeprefix(f"{ALLERGY} ")
        .removesuffix(f"'s {NAME}")
    )
    asking_terms = ASKED_AS.get(fact.key) or terms_of(about)
    return asking_terms, tuple(dict.fromkeys((*asking_terms, *terms_of(fact.value))))
