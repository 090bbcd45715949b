"""Facts that a person tells of themselves, and what they take back, read from a text by rule: no model, English only.

Whose words they are is asked first (``voice``), then what each clause states (``statements``) or takes back
(``corrections``). What a person asks to be remembered is kept as it was said.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from actors.memory.corrections import (
    CUE,
    Ended,
    Known,
    asked_for,
    denies,
    is_same,
    restated,
    restates,
    stated_as,
    taken_back,
    with_value,
)
from actors.memory.phrases import value_of
from actors.memory.statements import KEY_CHARACTERS, NOTE, facts_of, key_of, keyed
from actors.memory.voice import Sentence, opened, own_sentences
from schemas.reading.terms import terms_of
from schemas.vocabulary.memory import Fact

MOST = 8
"""Facts read from one text."""

_REMEMBER = re.compile(
    r"(?:remember|note|keep in mind|don't forget|do not forget|never forget)"
    r"(?:\s+that\b|\s*:|(?=\s+(?:my|i|i'm|the|our|we|to)\b))\s*(?P<rest>\S.*)",
    re.I | re.S,
)
_STATED = re.compile(r"(?:the|our)\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,3}?)\s+(?:is|are)\s+(?P<value>.+)", re.I)
_OWN = re.compile(r"my\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,3}?)\s+(?:is|are)\s+(?P<value>.+)", re.I)
_NEGATED = re.compile(r"\b(?:not|never|no longer|cannot|neither|nor|nobody|hardly)\b|n't\b", re.I)
_TO_OTHERS = re.compile(
    r"\b(?:you|your|yours|yourself|this|these|following|above|below|response|answer|output|user|always|must|only)\b",
    re.I,
)
_NOT_IT = re.compile(r"(?:and\s+)?not\s+(?P<old>.+)", re.I)
_INTRODUCTION_CHARACTERS = 300
"""Who says "I am Brutus" in a longer text is on a stage, and who says "remember" there gives advice."""


class Reading(NamedTuple):
    """What a text tells: facts, of each key the last one, and the keys whose values it takes back."""

    facts: tuple[Fact, ...]
    ended: tuple[Ended, ...]


def facts_in(text: str) -> tuple[Fact, ...]:
    """Return the facts that a text tells, of each key the last one, to somebody who knows nothing yet."""
    return told_in(text, Known()).facts


def told_in(text: str, known: Known) -> Reading:
    """Return what a text tells and takes back, given what is known."""
    sentences = own_sentences(text)
    is_short = len(text) <= _INTRODUCTION_CHARACTERS
    facts: dict[str, Fact] = {}
    ended: dict[str, Ended] = {}
    is_correcting = False
    for sentence in sentences:
        is_correcting = CUE.match(sentence.text) is not None or (is_correcting and not facts)
        for fact in _told(sentence, known, tuple(facts), ended, is_correcting, is_short):
            facts.pop(fact.key, None)
            facts[fact.key] = fact
    kept = tuple(facts.values())[:MOST]
    return Reading(kept, tuple(ended.values()))


def note_of(text: str) -> Fact | None:
    """Return a text that is to be remembered as a fact: a statement under its own key, else as it is."""
    value = value_of(text)
    if not value:
        return None
    stated = _STATED.match(value)
    if (
        stated is not None
        and not _NEGATED.search(value)
        and (fact := keyed(stated["key"], stated["value"])) is not None
    ):
        return fact
    about = " ".join(terms_of(value)[:3])
    return Fact(key=f"{NOTE} {about}"[:KEY_CHARACTERS].strip(), value=value) if about else None


def fact_of(key: str, value: str) -> Fact | None:
    """Return a fact that is to be memorized; one without a key is a note, one without a value is none."""
    kept = key_of(key)
    value = value_of(value)
    if kept and value:
        return Fact(key=kept, value=value)
    return note_of(value)


def _told(
    sentence: Sentence,
    known: Known,
    told: tuple[str, ...],
    ended: dict[str, Ended],
    is_correcting: bool,
    is_short: bool,
) -> list[Fact]:
    """Return what a sentence tells, and add what it takes back to ``ended``."""
    found: list[Fact] = []
    about = told
    before = ""
    for clause in sentence.clauses:
        remembered = _REMEMBER.match(clause)
        back, facts = ([], []) if remembered is not None else taken_back(clause, known)
        negative = _NOT_IT.fullmatch(clause)
        if remembered is not None:
            facts = _remembered(remembered, is_short)
        elif negative is not None:
            back, facts = _contrasted(negative["old"], before, known, [*found])
        elif not (back or facts):
            facts = list(facts_of(clause, introduces=is_short))
            if not facts and (is_correcting or about != told) and restates(clause):
                facts = restated(clause, about or _lately(known))
                back = [Ended(fact.key, "corrected") for fact in facts]
        found += facts
        for each in back:
            ended.setdefault(each.key, each)
        spoken = (*(each.key for each in back), *(fact.key for fact in facts)) or denies(clause)
        about = spoken or about
        before = clause
    return found


def _lately(known: Known) -> tuple[str, ...]:
    """Return the keys that the last turn told or asked for."""
    return tuple(fact.key for fact in facts_in(known.last_said)) or asked_for(known.last_said, known)


def _contrasted(old: str, before: str, known: Known, found: Sequence[Fact]) -> tuple[list[Ended], list[Fact]]:
    """Return what "…, not Chad" corrects: what was just told, or else the one key whose value that is."""
    if found:
        return [Ended(found[-1].key, "corrected")], []
    keys = with_value(known, old)
    if len(keys) != 1:
        return [], []
    facts = restated(before, keys) or stated_as(keys[0], before)
    return [Ended(keys[0], "corrected")] if facts else [], [fact for fact in facts if not is_same(fact.value, old)]


def _remembered(found: re.Match[str], is_short: bool) -> list[Fact]:
    rest = found["rest"]
    clause = opened(rest)
    facts = list(facts_of(clause))
    if facts:
        return facts
    own = _OWN.match(clause)
    if own is not None and not _NEGATED.search(clause) and (fact := keyed(own["key"], own["value"])) is not None:
        return [fact]
    # What is addressed to a reader, or stands in a longer text, is advice or instructions, and nobody's own.
    if _TO_OTHERS.search(rest) or not is_short or found[0].lower().startswith("note"):
        return []
    note = note_of(rest)
    return [] if note is None else [note]
