"""Reads from a clause what its speaker has: people and animals, things, and what forms ask for. Pure.

A temporary condition is not a fact ("my card is missing"): a value must say what something is, not how it is.
"""

import re

from actors.contract.text.folding import fold
from actors.memory.extraction.keys import BIRTHDAY, CAR, LANGUAGES, NAME, SCHOOL, SPOUSE, head_of, key_of
from actors.memory.extraction.phrases import capitals_in, name_in, value_of
from actors.memory.extraction.word_lists import word_lists
from schemas.vocabulary.memory import Fact

_LISTS = word_lists()

# Each expression below is followed by what it matches, or by an example.
_CALLED = re.compile(
    r"(?:(?:my|our)\s+(?P<own>[\w-]+(?:\s+[\w-]+)?)(?:'s\s+name\s+is|\s+(?:is|are)\s+(?:called|named)|s\s+name\s+is)"
    r"|i(?:'ve got|\s+have|\s+have got)\s+an?\s+(?:\w+\s+)?(?P<had>[\w-]+)\s+(?:called|named))\s+(?P<value>.+)",
    re.I,
)
"""Such as "My dog is called Max"; "I have a cat named Tom"."""

_OWN = re.compile(r"my\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,2}?)(?:\s+(?:is|are)|'s)\s+(?:now\s+)?(?P<value>.+)", re.I)
"""Such as "My favourite colour is green"."""

_KIN_NAMED = re.compile(
    r"[Mm]y\s+(?P<kin>[\w-]+)\s+(?P<name>[A-Z][^\W\d_]+)(?:\s+(?:is|was|has|lives?|loves?|likes?|works?|goes|wants?|"
    r"and|will|turned)\b|$)"
)
"""Such as "My brother Tom lives ..."."""

_HAS_TOO = re.compile(r"\s+and\s+an?\s+(?P<had>[\w-]+)\s+(?:called|named)\s+(?P<value>.+)", re.I)
"""A second name after ``_CALLED``: "... and a cat called Tom"."""

_BORN = re.compile(r"(?:i was|i'm|i am)\s+born\s+on\s+(?P<value>.+)", re.I)
_MARRIED = re.compile(r"(?:i'm|i am)\s+(?:\w+\s+)?married\s+to\s+(?P<value>.+)", re.I)
_SPEAKS = re.compile(r"i\s+(?:also\s+)?speak\s+(?:fluent\s+)?(?P<value>.+)", re.I)
_STUDIES = re.compile(r"(?:i|i'm|i am)\s+(?:study|studying|go to school)\s+(?:\w+\s+)?at\s+(?P<value>.+)", re.I)
_DRIVES = re.compile(r"i\s+drive\s+(?P<value>an?\s+[A-Z].+)", re.I)
_NUMBER_OR_ADDRESS = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[+#]?[\d][\d\s().:/+-]*|one|two|three|four|five|six|seven|eight|nine|ten", re.I
)
"""An e-mail address, a number, or a small number as a word."""

_DATE = re.compile(
    r"(?:on |the )*(?:(?:\d{1,2}(?:st|nd|rd|th)?(?: of)? )?(?:january|february|march|april|may|june|july|august|"
    r"september|october|november|december)(?: \d{1,2}(?:st|nd|rd|th)?)?|(?:on )?(?:mon|tues|wednes|thurs|fri|satur|"
    r"sun)day|noon|midnight)(?:,? \d{4}| at .+)?",
    re.I,
)
"""A date, a day of the week, or a time of day."""

_LOCATED = re.compile(r"(?:in|at|near|on)\s+(?:the\s+)?[A-Z].*")
"""Such as "In Lisbon"."""

_FAVOURITE = ("favourite", "favorite", "preferred")
_SENTENCE_WORDS = re.compile(r"\b(?:that|which|who|because|when|if|i|is|are|you|to be)\b")
"""Words of whole sentences, which a value does not have."""

_CONDITION = re.compile(r".*(?:ing|ed)")
"""A word that says how something is: "missing", "parked"."""

_MOST_WORDS = 5
"""Most words of a value."""


def belongings_of(clause: str) -> list[Fact]:
    """Return the facts that a clause states about what its speaker has."""
    return _called(clause) or _own(clause) or _kin_named(clause) or _form_answers(clause)


def lasting_fact(key: str, value: str) -> Fact | None:
    """Return a fact with this key and value; None if one of them says nothing that lasts."""
    normal_key, value = key_of(key), value_of(value)
    words = normal_key.split()
    if _DATE.fullmatch(value):
        value = value.removeprefix("on ")
    if not words or not value or not _LISTS.no_key.isdisjoint(words):
        return None
    is_titled = words[0] in _FAVOURITE and value.startswith("The ") and value[4:5].isupper()
    is_located = words[-1] in _LISTS.site and _LOCATED.fullmatch(value) is not None
    if not (is_titled or is_located or _DATE.fullmatch(value)) and _begins_with(value, _LISTS.no_value):
        return None
    return Fact(key=normal_key, value=value)


def _called(clause: str) -> list[Fact]:
    found = _CALLED.match(clause)
    if found is None:
        return []
    further = _HAS_TOO.search(found["value"]) if found["had"] else None
    pairs = [(found["own"] or found["had"], found["value"][: further.start()] if further else found["value"])]
    pairs += [(further["had"], further["value"])] if further else []
    named = [(key_of(whose), name_in(value, may_be_lower_case=True)) for whose, value in pairs]
    known = _LISTS.kin | _LISTS.thing
    one = [Fact(key=f"{whose}'s {NAME}", value=name) for whose, name in named if name and head_of(whose) in known]
    several = [
        Fact(key=whose, value=name) for whose, name in named if name and head_of(whose).removesuffix("s") in known
    ]
    return one or several


def _own(clause: str) -> list[Fact]:
    found = _OWN.match(clause)
    if found is None:
        return []
    key = key_of(found["key"])
    name = name_in(found["value"], may_be_lower_case=False) if head_of(key) in _LISTS.kin else ""
    if name and name.casefold() not in _LISTS.no_person:
        return [Fact(key=key, value=name)]
    if len(key.split()) > 1 and key.split()[0] in _LISTS.kin and _KIN_NAMED.match(clause):
        return []
    fact = lasting_fact(found["key"], found["value"])
    return [fact] if fact is not None and _lasts(fact) else []


def _kin_named(clause: str) -> list[Fact]:
    found = _KIN_NAMED.match(clause)
    if found is None or found["kin"].casefold() not in _LISTS.kin or found["name"].isupper():
        return []
    return [Fact(key=f"{found['kin'].casefold()}'s {NAME}", value=found["name"])]


def _form_answers(clause: str) -> list[Fact]:
    """Return what a form would ask for: date of birth, spouse, languages, school, car."""
    born, married, speaks = _BORN.match(clause), _MARRIED.match(clause), _SPEAKS.match(clause)
    studies, drives = _STUDIES.match(clause), _DRIVES.match(clause)
    if born is not None and _DATE.fullmatch(value_of(born["value"])):
        return [Fact(key=BIRTHDAY, value=value_of(born["value"]))]
    if married is not None and (name := name_in(married["value"], may_be_lower_case=False)):
        return [Fact(key=SPOUSE, value=name)]
    if speaks is not None and (spoken := capitals_in(speaks["value"])):
        return [Fact(key=LANGUAGES, value=spoken)]
    if studies is not None and (school := capitals_in(studies["value"])):
        return [Fact(key=SCHOOL, value=school)]
    if drives is not None and drives["value"].split()[1][0].isupper():
        return [Fact(key=CAR, value=value_of(drives["value"]))]
    return []


def _lasts(fact: Fact) -> bool:
    """Whether the value of something that somebody has says what it is, rather than its present condition."""
    words, head, first = fact.value.split(), head_of(fact.key), fact.key.split()[0]
    if _NUMBER_OR_ADDRESS.fullmatch(fact.value) or _DATE.fullmatch(fact.value):
        return True
    if len(words) > _MOST_WORDS or _SENTENCE_WORDS.search(fold(fact.value)):
        return False
    if first not in _FAVOURITE and words[0].islower() and _CONDITION.fullmatch(words[0]):
        return False
    is_a = fold(words[0]) in ("a", "an")
    if is_a and not _LISTS.no_kind.isdisjoint(map(fold, words)):
        return False
    if first in _FAVOURITE or head in _LISTS.attribute or fact.key in _LISTS.attribute:
        return True
    if head in _LISTS.site and _LOCATED.fullmatch(fact.value):
        return True
    if head in _LISTS.thing and fold(words[-1]) in _LISTS.colour:
        return True
    if is_a:
        return len(words) > 1 and (head in _LISTS.kin or head in _LISTS.thing)
    return name_in(fact.value, may_be_lower_case=False) == fact.value and fact.value.casefold() not in _LISTS.no_person


def _begins_with(value: str, words: frozenset[str]) -> bool:
    words_of_value = fold(value).split()
    return words_of_value[0].strip(",;") in words or " ".join(words_of_value[:2]) in words
