"""Reads from a clause which earlier statements it takes back: as wrong, as ended, or as to be forgotten. Pure.

Only known facts are taken back, and only if the words name the fact or leave no doubt which one is meant: "I no longer
work for Acme" does not affect another employer.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from actors.contract.text.folding import fold
from actors.contract.text.terms import terms_of
from actors.memory.extraction.keys import (
    ALLERGY,
    ASKED_AS,
    DRINKING,
    EATING,
    EMPLOYER,
    HOME,
    JOB,
    NAME,
    OPINION,
    key_of,
    list_key,
)
from actors.memory.extraction.statements import facts_of
from actors.memory.extraction.tastes import DISLIKED
from schemas.vocabulary.memory import Fact, RetiredWhy


class KnownValues(msgspec.Struct, frozen=True):
    """What was stated before: current values by key, and the person's text of the session's last turn."""

    values: Mapping[str, str] = {}
    last_said: str = ""


class EndedValue(NamedTuple):
    """A key whose value no longer holds, and the reason."""

    key: str
    why: RetiredWhy


_ANY_VALUE = (OPINION, ALLERGY, EATING, DRINKING)
"""Prefixes of keys that are complete statements by themselves ("allergy to nuts"), whatever their values."""

# Each expression below is followed by what it matches, or by an example.
_WORDS = re.compile(r"\w+")
_ANY_MORE = re.compile(r"\s+(?:any ?more|any longer)\b", re.I)
_CONTRACTED_NOT = re.compile(r"\b(is|are|do|does|was|did)n't\b", re.I)
_DENIALS = (
    (re.compile(r"i\s+(?:now\s+)?no longer\s+(?P<rest>.+)", re.I), "I {rest}"),
    (
        re.compile(
            r"i\s+do not\s+(?:actually\s+|really\s+|even\s+)?(?P<rest>(?:live|work|come|go by|speak|study|drive|"
            r"have)\b.+)",
            re.I,
        ),
        "I {rest}",
    ),
    (re.compile(r"(?:i'm|i am)\s+(?:no longer|not)\s+(?:actually\s+|really\s+)?(?P<rest>.+)", re.I), "I'm {rest}"),
    (re.compile(r"my\s+(?P<key>.+?)\s+is\s+(?:no longer|not)\s+(?P<rest>.+)", re.I), "my {key} is {rest}"),
    (re.compile(r"i\s+used to be\s+(?P<rest>.+)", re.I), "I'm {rest}"),
    (re.compile(r"i\s+used to\s+(?P<rest>.+)", re.I), "I {rest}"),
    (re.compile(r"my\s+(?P<key>.+?)\s+used to be\s+(?P<rest>.+)", re.I), "my {key} is {rest}"),
    (
        re.compile(
            r"i(?:'ve| have)?\s+(?:just\s+|recently\s+)?(?:stopped|quit|given up|gave up)\s+(?P<rest>(?:work|"
            r"liv)ing\b.+)",
            re.I,
        ),
        "I'm {rest}",
    ),
    (re.compile(r"i(?:'ve| have)?\s+(?:stopped|quit)\s+(?:lik|lov|enjoy)ing\s+(?P<rest>.+)", re.I), "I like {rest}"),
    (re.compile(r"i(?:'ve| have)?\s+gone off\s+(?P<rest>.+)", re.I), "I like {rest}"),
)
"""A denial, and the statement that it denies: "I no longer live in Rome" denies "I live in Rome"."""

_ENDS = re.compile(r"\b(?:no longer|used to|any ?more|any longer|stopped|quit|given up|gave up|gone off)\b", re.I)
"""Words that say that something was true before."""

_NOT_BUT = re.compile(r"(?P<head>.+?\b)\s*not\s+(?P<old>.+?),?\s+but\s+(?P<new>.+)", re.I)
"""Such as "My name is not Ann but Eve"."""

_QUIT = re.compile(
    r"(?:i|i've|i have|i was|i got|i've been|i have been)\s+(?:just\s+|recently\s+|finally\s+)?"
    r"(?:quit|left|lost|resigned(?: from)?|fired(?: from| by)?|laid off(?: from| by)?|retired(?: from)?)"
    r"(?:(?P<mine>\s+my\s+(?:old\s+)?(?:job|position|post))(?:\s+(?:at|with|for)\s+(?P<at>.+?)|"
    r"\s+as\s+(?:an?\s+)?(?P<role>.+?))?|\s+(?P<other>.+?))?"
    r"(?:\s+(?:last|this|a|in|two|three|\d+|today|yesterday|recently)\b.*)?",
    re.I,
)
"""Such as "I quit my job at Acme"; "I left Rome"."""

_LEFT_FOR = re.compile(
    r"(?P<left>(?:i|i've|i have)\s+(?:just\s+|recently\s+|finally\s+)?(?:quit|left|resigned\s+from)\s+(?P<old>.+?))"
    r"(?:\s+(?:last|this|a|in|two|three|\d+|today|yesterday|recently)\b.*?)?"
    r"(?:(?P<for>\s+for)|(?:\s*,)?(?:\s+and)?\s+(?:(?:then|now|have|i)\s+)*(?:to\s+join|joined|to\s+work\s+(?:at|for)|"
    r"started\s+(?:at|with)|to\s+live\s+in))\s+(?P<new>.+)",
    re.I,
)
"""Such as "I left Acme for Initech"; "I left Acme and joined Initech"."""

_FOR_GOOD = re.compile(r"(?:good|ever|always)\b|.*\breasons?$", re.I)
"""What may follow "I left Rome for" without being a new place: "good", "family reasons"."""

_ENDS_WORK = re.compile(r"\b(?:retired|resigned|fired|laid off)$", re.I)
"""A verb that ends a job even if no employer is named."""

_MOVED = re.compile(
    r"(?:i've|i have|i|we|we've)\s+(?:(?:just|recently|now|finally)\s+)*(?:moved|relocated)\s+(?:away\s+|"
    r"out\s+)?(?:from|of)\s+(?P<old>.+?)(?:\s+to\s+.+)?",
    re.I,
)
"""Such as "I moved away from Rome"."""

_FORGET = re.compile(
    r"(?:please\s+)?(?:(?:forget|disregard|ignore|do not remember|don't remember)\s+"
    r"(?:(?:the fact\s+)?that\s+(?:i\s+(?:told you|said)\s+(?:that\s+)?)?(?P<stated>(?:i|i'm|my)\b.+)|"
    r"(?:all|everything|what)\s+i\s+(?:said|told you|mentioned)\s+about\s+(?:my\s+)?(?P<about>[\w' -]+))|"
    # "Ignore my email" is about a message, not about the address.
    r"(?:forget|do not remember|don't remember)\s+(?:about\s+)?my\s+(?P<key>[\w' -]+)|"
    r"(?:forget|delete|erase)\s+(?P<all>(?:all|everything|anything|whatever|what)\s+(?:that\s+)?(?:(?:you\s+(?:know|"
    r"remember|have|saved|stored|learned)|i\s+(?:said|told\s+you|mentioned))\s+)?about\s+(?:me|myself)))",
    re.I,
)
"""A request to forget: "Forget that I said my name is Ann"; "Forget my address"; "Forget everything about me"."""

_IT_IS = re.compile(
    r"(?:(?:it|that)(?:'s| is| should be| must be)|should be|i meant|i mean|make (?:it|that)|(?:she|he)(?:'s|"
    r" is) called)\s+"
    r"(?:actually\s+|really\s+|in fact\s+|now\s+|meant to be\s+)*(?P<spelled>(?:spelled|spelt|written)\s+(?:as\s+|"
    r"like\s+)?)?(?P<value>.+)",
    re.I,
)
"""A new value for something mentioned before: "It is Sarah"; "It's spelled S-A-R-A"."""

_NOT_MINE = re.compile(r"(?:that|this|it)(?:'s| is) not my\s+(?P<key>[\w' -]+)", re.I)
"""Such as "That is not my name"."""

_NOT_VALUE = re.compile(r"(?:that|it)(?:'s| is) not\s+(?P<old>.+)", re.I)
"""Such as "It is not Ann"."""

_OWN_QUESTION = re.compile(r"\b(?:my|i|me|mine)\b", re.I)
"""A word of a question about the speaker."""

_IT_IS_ONLY = re.compile(r"(?:that|it)(?:'s| is)\s*", re.I)
"""The whole beginning of ``_NOT_BUT`` if it does not name the fact: "It is not Ann but Eve"."""

_SPELLED_OUT = re.compile(r"\b(?:\w-){2,}\w\b")
"""Such as "S-A-R-A"."""

CORRECTION_OPENING = re.compile(
    r"\W*(?:(?:oh|ah|hm+|well|ok|okay|um+|uh|but|and)\W+)*"
    r"(?:no|nope|nah|wait|sorry|actually|oops|wrong|correction|not quite|incorrect|i meant|i mean|"
    r"that's (?:wrong|not right|incorrect|not it|not correct|a mistake)|that is (?:wrong|not right|incorrect))\b",
    re.I,
)
"""Words that open a correction."""

_STATEMENT_FORMS = {
    NAME: "my name is {}",
    HOME: "I live in {}",
    EMPLOYER: "I work for {}",
    JOB: "I work as a {}",
    "origin": "I'm from {}",
    "age": "I am {} years old",
}
"""Key -> the statement that gives it a value. A value fits a key only if this is read as a fact of the key."""


def taken_back(clause: str, known: KnownValues) -> tuple[list[EndedValue], list[Fact]]:
    """Return what a clause takes back, and what it states instead."""
    clause = _CONTRACTED_NOT.sub(r"\1 not", clause)
    forgotten = _FORGET.fullmatch(clause)
    if forgotten is not None:
        return _withdrawn(forgotten, known), []
    instead = _NOT_BUT.fullmatch(clause)
    if instead is not None:
        keys = with_value(known, instead["old"]) if _IT_IS_ONLY.fullmatch(instead["head"]) else ()
        facts = stated_as(keys[0], instead["new"]) if len(keys) == 1 else []
        facts = facts or list(facts_of(f"{instead['head'].rstrip()} {instead['new']}"))
        return [EndedValue(fact.key, "corrected") for fact in facts], facts
    not_mine = _NOT_MINE.fullmatch(clause)
    if not_mine is not None:
        return [EndedValue(key, "corrected") for key in (key_of(not_mine["key"]),) if key in known.values], []
    moved = _MOVED.fullmatch(clause)
    if moved is not None:
        return [EndedValue(HOME, "ended")] if _has_value(known, HOME, moved["old"]) else [], list(facts_of(clause))
    left_for = _LEFT_FOR.fullmatch(clause)
    if left_for is not None and (ends := _ended_by(left_for["left"], known)):
        facts = stated_as(ends[0].key, left_for["new"])
        # "I left Rome for the weekend" takes nothing back.
        is_over = bool(facts) or left_for["for"] is None or _FOR_GOOD.match(left_for["new"]) is not None
        return ends if is_over else [], facts
    quit_match = _QUIT.fullmatch(clause)
    if quit_match is not None:
        return _ended_by_quitting(quit_match, known), []
    return _denied(clause, known)


def _ended_by(clause: str, known: KnownValues) -> list[EndedValue]:
    """Return the job or home that a clause such as "I left Acme" ends."""
    quit_match = _QUIT.fullmatch(clause)
    return _ended_by_quitting(quit_match, known) if quit_match is not None else []


def denies(clause: str, known: KnownValues) -> tuple[str, ...]:
    """Return the keys that a clause denies something about."""
    clause = _CONTRACTED_NOT.sub(r"\1 not", clause)
    other = _NOT_VALUE.fullmatch(clause)
    if other is not None:
        return with_value(known, other["old"])
    return tuple(fact.key for fact in facts_of(_affirmed(clause)))


def restates(clause: str) -> bool:
    """Whether a clause names something that was mentioned before ("it is Sarah")."""
    return _IT_IS.fullmatch(clause) is not None


def spells(clause: str) -> bool:
    """Whether a clause says how something is spelled."""
    found = _IT_IS.fullmatch(clause)
    return found is not None and found["spelled"] is not None


def restated_fact(clause: str, about: tuple[str, ...]) -> list[Fact]:
    """Return the fact that "it is Sarah" states about the only key that it can be about, given the mentioned keys."""
    found = _IT_IS.fullmatch(clause)
    if found is None:
        return []
    value = _SPELLED_OUT.sub(lambda letters: letters[0].replace("-", "").capitalize(), found["value"])
    if found["spelled"]:
        about = tuple(key for key in about if key == NAME or key.endswith(f" {NAME}"))
    return stated_as(about[-1], value) if len({*about}) == 1 else []


def stated_as(key: str, value: str) -> list[Fact]:
    """Return a value as a fact of a key, if it looks like one; a name needs a capital, or any word would be a name."""
    is_name = key == NAME or key.endswith(f"'s {NAME}")
    if key.startswith(_ANY_VALUE) or (is_name and not value[:1].isupper()):
        return []
    kept = [fact for fact in facts_of(_STATEMENT_FORMS.get(key, f"my {key} is {{}}").format(value)) if fact.key == key]
    return kept[:1]


def asked_for(text: str, known: KnownValues) -> tuple[str, ...]:
    """Return the keys of known facts that a question asks about."""
    terms = frozenset(terms_of(text))
    if not terms or not text.rstrip().endswith("?") or _OWN_QUESTION.search(text) is None:
        return ()
    return tuple(key for key in known.values if terms.issubset(ASKED_AS.get(key, ())) or terms == {*terms_of(key)})


def with_value(known: KnownValues, value: str) -> tuple[str, ...]:
    """Return the keys that have this value."""
    return tuple(key for key in known.values if not key.startswith(_ANY_VALUE) and _has_value(known, key, value))


def is_same(value: str, other: str) -> bool:
    """Whether two values consist of the same words."""
    return _spaced_words(value) == _spaced_words(other)


def _withdrawn(found: re.Match[str], known: KnownValues) -> list[EndedValue]:
    if found["all"]:
        return [EndedValue(key, "withdrawn") for key in known.values]
    if found["stated"]:
        facts = facts_of(found["stated"])
        return [EndedValue(fact.key, "withdrawn") for fact in facts if _has_value(known, fact.key, fact.value)]
    key = key_of(found["key"] or found["about"])
    kinds = tuple(kind for kind, words in ASKED_AS.items() if key in words) if key not in known.values else ()
    keys = (key, *kinds[:1], list_key(OPINION, key), list_key(ALLERGY, key))
    return [EndedValue(each, "withdrawn") for each in dict.fromkeys(keys) if each in known.values]


def _ended_by_quitting(found: re.Match[str], known: KnownValues) -> list[EndedValue]:
    at, role, other = found["at"], found["role"], found["other"]
    if other:
        return [EndedValue(key, "ended") for key in (EMPLOYER, HOME) if _has_value(known, key, other)]
    if at:
        return [EndedValue(EMPLOYER, "ended")] if _has_value(known, EMPLOYER, at) else []
    if role:
        return [EndedValue(JOB, "ended")] if _has_value(known, JOB, role) else []
    if found["mine"] is None and _ENDS_WORK.search(found[0]) is None:
        return []
    return [EndedValue(key, "ended") for key in (EMPLOYER, JOB) if key in known.values]


def _denied(clause: str, known: KnownValues) -> tuple[list[EndedValue], list[Fact]]:
    ends = _ENDS.search(clause) is not None
    affirmed = _affirmed(clause)
    if not affirmed:
        # "I do not like tea any more" is an opinion by itself.
        facts = list(facts_of(_ANY_MORE.sub("", clause))) if _ANY_MORE.search(clause) else []
        return [EndedValue(fact.key, "ended") for fact in facts], facts
    why: RetiredWhy = "ended" if ends else "corrected"
    denied = [fact for fact in facts_of(affirmed) if _has_value(known, fact.key, fact.value)]
    instead = [
        Fact(key=fact.key, value=DISLIKED)
        for fact in facts_of(affirmed)
        if fact.key.startswith(OPINION) and clause.lower().lstrip().startswith(("i no longer", "i now no longer"))
    ]
    return [EndedValue(fact.key, why) for fact in denied], instead


def _affirmed(clause: str) -> str:
    for denial, form in _DENIALS:
        found = denial.fullmatch(_ANY_MORE.sub("", clause))
        if found is not None:
            return form.format(**found.groupdict())
    return ""


def _has_value(known: KnownValues, key: str, value: str) -> bool:
    """Whether ``value`` is a key's known value, or one of the two contains the other in whole words."""
    current = known.values.get(key)
    if current is None:
        return False
    if key.startswith(_ANY_VALUE):
        return True
    current_words, other_words = _spaced_words(current), _spaced_words(value)
    return (
        current_words.strip() != ""
        and other_words.strip() != ""
        and (current_words in other_words or other_words in current_words)
    )


def _spaced_words(text: str) -> str:
    return f" {' '.join(_WORDS.findall(fold(text)))} "
