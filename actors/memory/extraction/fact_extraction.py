"""Extracts the facts that a person states about themselves or takes back, by rules: no model, English only.

First the person's own clauses are found (``own_statements``), then what each clause states (``statements``) or takes
back (``corrections``). What a person asks to be remembered is kept as they said it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from actors.contract.text.terms import terms_of
from actors.memory.extraction.belongings import lasting_fact
from actors.memory.extraction.corrections import (
    CORRECTION_OPENING,
    EndedValue,
    KnownValues,
    asked_for,
    denies,
    is_same,
    restated_fact,
    restates,
    spells,
    stated_as,
    taken_back,
    with_value,
)
from actors.memory.extraction.keys import KEY_CHARACTERS, NOTE, key_of
from actors.memory.extraction.own_statements import Sentence, own_sentences, without_opening
from actors.memory.extraction.phrases import value_of
from actors.memory.extraction.statements import facts_of
from schemas.vocabulary.memory import Fact

MOST_FACTS = 8
"""Most facts extracted from one text."""

# Each expression below is followed by what it matches, or by an example.
_REMEMBER = re.compile(
    r"(?:remember|note|keep in mind|don't forget|do not forget|never forget)"
    r"(?:\s+that\b|\s*:|(?=\s+(?:my|i|i'm|the|our|we|to)\b))\s*(?P<rest>\S.*)",
    re.I | re.S,
)
"""Such as "Remember that ..."; "Note: ..."."""

_STATED = re.compile(r"(?:the|our)\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,3}?)\s+(?:is|are)\s+(?P<value>.+)", re.I)
"""Such as "The door code is 1234"."""

_OWN = re.compile(r"my\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,3}?)\s+(?:is|are)\s+(?P<value>.+)", re.I)
"""Such as "My locker is number 12"."""

_NEGATED = re.compile(r"\b(?:not|never|no longer|cannot|neither|nor|nobody|hardly)\b|n't\b", re.I)
_TO_OTHERS = re.compile(
    r"\b(?:you|your|yours|yourself|this|these|following|above|below|response|answer|output|user|always|must|only)\b",
    re.I,
)
"""Words addressed to a reader or to the agent."""

_NOT_IT = re.compile(r"(?:and\s+)?not\s+(?P<old>.+)", re.I)
"""(My name is Sarah,) "not Chad"."""

_NOT_BUT = re.compile(
    r"not\s+(?P<old>[^,;]+?)(?:\s*[,;]\s*(?:but\s+)?|\s+but\s+|\s+[-\u2013\u2014]+\s+)(?P<new>.+)", re.I
)
"""Such as "Not Chad but Sarah"; "not Chad, Sarah"."""

_INTRODUCTION_CHARACTERS = 300
"""In a text longer than this, "I am Brutus" is role play, and "remember" is advice to a reader."""


class ExtractedFacts(NamedTuple):
    """What a text states: the last fact of each key, and the keys whose values it takes back."""

    facts: tuple[Fact, ...]
    ended: tuple[EndedValue, ...]


def facts_in(text: str) -> tuple[Fact, ...]:
    """Return the facts that a text states, the last one of each key, if nothing is known before."""
    return extract_facts(text, KnownValues()).facts


def extract_facts(text: str, known: KnownValues) -> ExtractedFacts:
    """Return what a text states and takes back, given what is known."""
    reader = _Reader(known, len(text) <= _INTRODUCTION_CHARACTERS)
    for sentence in own_sentences(text):
        reader.read(sentence)
    return ExtractedFacts(tuple(reader.facts.values())[:MOST_FACTS], tuple(reader.ended.values()))


def note_of(text: str) -> Fact | None:
    """Return a text to be remembered as a fact: a statement under its own key, any other text as a note."""
    value = value_of(text)
    if not value:
        return None
    stated = _STATED.match(value)
    if stated is not None and not value_of(stated["value"]):
        return None
    if (
        stated is not None
        and not _NEGATED.search(value)
        and (fact := lasting_fact(stated["key"], stated["value"])) is not None
    ):
        return fact
    about = " ".join(terms_of(value)[:3])
    return Fact(key=f"{NOTE} {about}"[:KEY_CHARACTERS].strip(), value=value) if about else None


def fact_of(key: str, value: str) -> Fact | None:
    """Return a fact to be memorized: without a key it is a note; without a value there is none."""
    kept = key_of(key)
    value = value_of(value)
    if kept and value:
        return Fact(key=kept, value=value)
    return note_of(value)


class _Reader:
    """Reads a text sentence by sentence.

    ``facts`` and ``ended`` are what was found so far, by key. ``is_short``: the text may introduce a person, or ask to
    remember something. ``denied`` are the keys whose values were denied last, until a new value is stated: "it is
    Sarah" may be about them. ``before`` is the text of the sentence before.
    """

    def __init__(self, known: KnownValues, is_short: bool) -> None:
        self.known = known
        self.is_short = is_short
        self.facts: dict[str, Fact] = {}
        self.ended: dict[str, EndedValue] = {}
        self.denied: tuple[str, ...] = ()
        self.before = ""

    def read(self, sentence: Sentence) -> None:
        """Read a sentence."""
        opens = CORRECTION_OPENING.match(sentence.text) is not None
        is_correcting = opens or (self.before != "" and _only_opens(self.before))
        before, stated = "", list[Fact]()
        for clause in sentence.clauses:
            ended, facts = self._read_clause(clause, before, stated, is_correcting and _only_opens(before))
            corrected = [EndedValue(fact.key, "corrected") for fact in facts] if opens else []
            for each in (*ended, *corrected):
                self.ended.setdefault(each.key, each)
            stated += facts
            ended_keys = tuple(each.key for each in ended)
            self.denied = () if facts else ended_keys or denies(clause, self.known) or self.denied
            before = clause
        for fact in stated:
            self.facts.pop(fact.key, None)
            self.facts[fact.key] = fact
        self.before = sentence.text

    def _read_clause(
        self, clause: str, before: str, stated: Sequence[Fact], is_correcting: bool
    ) -> tuple[Sequence[EndedValue], Sequence[Fact]]:
        """Return what a clause takes back and states, given the clause before it and the sentence's facts so far."""
        remembered, negative = _REMEMBER.match(clause), _NOT_IT.fullmatch(clause)
        if remembered is not None:
            return (), _remembered(remembered, self.is_short)
        other = _NOT_BUT.fullmatch(clause)
        if other is not None:
            return _replaced(other["old"], other["new"], self.known)
        if negative is not None:
            return _contrasted(negative["old"], before, self.known, stated)
        ended, facts = taken_back(clause, self.known)
        if ended or facts:
            return ended, facts
        facts = list(facts_of(clause, introduces=self.is_short))
        if facts or not restates(clause):
            return (), facts
        recent = (tuple(self.facts)[-1:] or _recent_keys(self.known)) if is_correcting or spells(clause) else ()
        about = self.denied or recent
        facts = restated_fact(clause, about)
        return [EndedValue(fact.key, "corrected") for fact in facts], facts


def _only_opens(before: str) -> bool:
    """Whether the text before a clause is empty, or only opens a correction ("No, wait")."""
    return not before or CORRECTION_OPENING.fullmatch(before.strip(" .,!-")) is not None


def _recent_keys(known: KnownValues) -> tuple[str, ...]:
    """Return the keys that the last turn stated or asked about."""
    return tuple(fact.key for fact in facts_in(known.last_said)) or asked_for(known.last_said, known)


def _replaced(old: str, new: str, known: KnownValues) -> tuple[list[EndedValue], list[Fact]]:
    """Return what "not Chad, Sarah" corrects: the only key that has the old value, if the new value is of its kind."""
    keys = with_value(known, old)
    facts = stated_as(keys[0], new) if len(keys) == 1 else []
    return [EndedValue(fact.key, "corrected") for fact in facts], facts


def _contrasted(
    old: str, before: str, known: KnownValues, found: Sequence[Fact]
) -> tuple[list[EndedValue], list[Fact]]:
    """Return what "…, not Chad" corrects: the fact just stated, or else the only key that has this value."""
    if found:
        return [EndedValue(found[-1].key, "corrected")], []
    keys = with_value(known, old)
    if len(keys) != 1:
        return [], []
    facts = restated_fact(before, keys) or stated_as(keys[0], before)
    return [EndedValue(keys[0], "corrected")] if facts else [], [fact for fact in facts if not is_same(fact.value, old)]


def _remembered(found: re.Match[str], is_short: bool) -> list[Fact]:
    rest = found["rest"]
    clause = without_opening(rest)
    facts = list(facts_of(clause))
    if facts:
        return facts
    own = _OWN.match(clause)
    if own is not None and not _NEGATED.search(clause) and (fact := lasting_fact(own["key"], own["value"])) is not None:
        return [fact]
    # Words addressed to a reader, or in a longer text, are advice or instructions, not about the person.
    if _TO_OTHERS.search(rest) or not is_short or found[0].lower().startswith("note"):
        return []
    note = note_of(rest)
    return [] if note is None else [note]
