"""Reads from a clause its speaker's tastes: opinions, allergies, and what they do not eat. Pure."""

import re

from actors.contract.text.folding import fold
from actors.memory.extraction.keys import ALLERGY, DIET, DRINKING, EATING, OPINION, key_of, list_key
from actors.memory.extraction.phrases import value_of
from actors.memory.extraction.word_lists import word_lists
from schemas.vocabulary.memory import Fact

DISLIKED = "does not like it"
ALLERGIC = "is allergic to it"
NOT_EATEN, NOT_DRUNK = "does not eat it", "does not drink it"
"""The values of such facts; their keys name the thing ("opinion of jazz")."""

_LISTS = word_lists()
_MOST_WORDS = 5
"""Most words of what an opinion is about."""

# Each expression below is followed by what it matches, or by an example.
_AM = r"(?:i'm|i am)\s+(?:(?:now|currently|still|actually|also)\s+)*"
_OPINION = re.compile(
    r"i\s+(?:(?:really|also|do|absolutely|still|just|truly|now|always|simply)\s+)*"
    r"(?P<verb>like|love|prefer|enjoy|hate|dislike|adore|detest|(?:don't|do not)(?: really| particularly)? (?:like|"
    r"enjoy|love)|can't stand|cannot stand)\s+(?P<what>.+)",
    re.I,
)
"""Such as "I really love jazz"."""

_VERDICTS = {
    "like": "likes it",
    "love": "loves it",
    "adore": "loves it",
    "prefer": "prefers it",
    "enjoy": "enjoys it",
    "hate": "hates it",
    "detest": "hates it",
    "dislike": "dislikes it",
}
"""Verb -> the value of the opinion."""

_LIKED_TO = re.compile(r"to\s+(?P<deed>[\w-]+)(?P<rest>(?:\s+[\w'-]+){0,2})$", re.I)
"""Such as "(I like) to swim in lakes"."""

_POINTS_AT = re.compile(
    r"\b(?:the|a|an|this|that|these|those|it|you|your|him|her|them|any|some|one|more|about|out|if)\b", re.I
)
"""Words that point at something particular, so that "I like to ..." is a request rather than an opinion."""

_ADDRESSED = re.compile(
    r"\b(?:that|which|who|you|your|it|this|these|those|me|is|are|was|can|will|would|please)\b", re.I
)
"""Words that show that a clause is not simply an opinion of a thing."""

_REASON = re.compile(
    r"\s+(?:because|since|when|while|if|but|though|although|so that|more than|rather than|over|than|to|as|for|"
    r"especially|most|the most|very much|a lot|so much|best|better|these days|and (?:i|hate|love|like|dislike|enjoy|"
    r"prefer|want|need|would|am|do|can|so|then)|in (?:the )?(?:morning|evening|summer|winter)s?)\b.*",
    re.I,
)
"""What follows the thing: a reason, a comparison, a time."""

_ALLERGIC = re.compile(
    rf"{_AM}(?:(?:severely|very|highly|mildly|deathly|a bit)\s+)*allergic\s+to\s+(?P<value>.+)"
    r"|(?:i have|i've got|i've)\s+an?\s+(?:(?:severe|bad|mild|serious)\s+)?(?P<kind>\w+(?:\s+\w+)?)\s+allergy\b.*",
    re.I,
)
"""Such as "I'm allergic to nuts"; "I have a nut allergy"."""

_NOT_EATEN = re.compile(
    r"i\s+(?:also\s+)?(?:don't|do not|never|can't|cannot|mustn't|must not)\s+(?P<deed>eat|drink)\s+(?P<value>.+)", re.I
)
"""Such as "I don't eat meat"."""

_NUT = re.compile(r"(nut)$", re.I)
"""The "nut" of a nut allergy, which becomes "nuts"."""

_LIST = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|(?:^|\s+)(?:and|or)\s+")
"""Between two things of a list."""

_AFTER_LIST = re.compile(
    r"(?:^|\s+)(?:because|since|so|but|which|that|when|if|at all|before|after|for|in|at|on|with)\b.*", re.I
)
"""What follows the list."""

_DIET = re.compile(
    rf"{_AM}(?:(?:a|an|strictly|strict)\s+)*(?P<value>{{}})\b(?!\s+\w+\s+(?:fan|lover))".format(
        "|".join(sorted(_LISTS.diet))
    ),
    re.I,
)


def taste_of(clause: str) -> list[Fact]:
    """Return the facts that a clause states about its speaker's tastes."""
    return _allergies(clause) or _diet(clause) or _not_eaten(clause) or _opinion(clause)


def _allergies(clause: str) -> list[Fact]:
    found = _ALLERGIC.match(clause)
    things = _listed(found["value"] or _NUT.sub(r"\1s", found["kind"])) if found is not None else []
    if any(not _LISTS.no_allergy.isdisjoint(each.split()) for each in things):
        return []
    return [Fact(key=list_key(ALLERGY, each), value=ALLERGIC) for each in things]


def _diet(clause: str) -> list[Fact]:
    found = _DIET.match(clause)
    return [Fact(key=DIET, value=found["value"].casefold())] if found is not None else []


def _not_eaten(clause: str) -> list[Fact]:
    found = _NOT_EATEN.match(clause)
    if found is None:
        return []
    things, eats = _listed(found["value"]), found["deed"].casefold() == "eat"
    if any(each.split()[0] in _LISTS.no_object for each in things):
        return []
    prefix, value = (EATING, NOT_EATEN) if eats else (DRINKING, NOT_DRUNK)
    return [Fact(key=list_key(prefix, each), value=value) for each in things]


def _listed(text: str) -> list[str]:
    """Return the things that a text lists; none if one of them is not the name of a thing."""
    things = [key_of(each) for each in _LIST.split(_AFTER_LIST.sub("", value_of(text)))]
    return things if all(each and len(each.split()) <= 3 for each in things) else []


def _opinion(clause: str) -> list[Fact]:
    found = _OPINION.match(clause)
    if found is None or _ADDRESSED.search(found["what"]):
        return []
    verb, what = found["verb"].casefold(), value_of(found["what"])
    liked = _LIKED_TO.match(what)
    about = _object(what) if liked is None else _deed(liked) if verb != "prefer" else ""
    return [Fact(key=list_key(OPINION, about), value=_VERDICTS.get(verb, DISLIKED))] if about else []


def _deed(found: re.Match[str]) -> str:
    rest = found["rest"].strip()
    is_asked_for = fold(found["deed"]) in _LISTS.no_deed or _POINTS_AT.search(rest) is not None
    return "" if is_asked_for else key_of(f"{found['deed']} {rest}")


def _object(what: str) -> str:
    about = key_of(_REASON.sub("", what))
    words = about.split()
    if not words or len(words) > _MOST_WORDS or {words[0], fold(what.split()[0])} & _LISTS.no_object:
        return ""
    return about
