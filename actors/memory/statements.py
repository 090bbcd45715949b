"""What a clause states of the person who says it, as facts: strict readings, one for each kind of fact. Pure.

Each kind says what its values look like, and a value that does not is no fact: "I go by bus" tells no name, "I work at
night" no employer. Words that are none are lists (``words.json``). What belongs to the moment ("my card is missing")
is no fact either.
"""

import re
from collections.abc import Callable

from actors.memory.phrases import head_of, is_typed_small, job_in, name_in, organisation_in, place_in, value_of
from actors.memory.terms import word_lists
from schemas.reading.folding import fold
from schemas.reading.terms import READ
from schemas.vocabulary.memory import Fact

KEY_CHARACTERS = 60

NAME, HOME, JOB, EMPLOYER, ORIGIN, AGE, DIET = "name", "home", "job", "employer", "origin", "age", "diet"
OPINION, ALLERGY, NOTE = "opinion of", "allergy to", "note about"
"""What keys of opinions, allergies and notes begin with."""

DISLIKED = "does not like it"
ALLERGIC = "is allergic to it"

_LISTS = word_lists()
_I = r"(?:i|i am|i'm|i've been|i have been)\s+(?:(?:now|currently|still|actually|also|both|just)\s+)*"
_AM = r"(?:i'm|i am)\s+(?:(?:now|currently|still|actually|also|originally)\s+)*"
_NAME = re.compile(
    r"(?P<sure>my name is|my name's|my name was always|name's|i am called|i'm called|i am named|i'm named|"
    r"i changed my name to)\s+(?:now\s+|actually\s+)?(?P<value>.+)"
    r"|(?:(?:people|friends|everyone|everybody|they|my friends) (?:just )?call me|(?:just )?call me|"
    r"i (?:now )?go by)\s+(?P<called>.+)",
    re.I,
)
_BARE_NAME = re.compile(rf"(?:{_AM.rstrip()})(?P<value>[^,]+)(?:,.*)?$", re.I)
_AFTER_NAME = re.compile(r"(?:from|and|here|by the way|btw|but)\b|$", re.I)
_HOME = re.compile(
    rf"(?:{_I}(?:live|living|based|reside|residing|settled)\s+(?P<how>in|at|near|on)"
    r"|(?:i've|i have|i)\s+(?:(?:just|recently|now|since|already|finally)\s+)*(?:moved|relocated)\s+(?:back\s+|"
    r"over\s+|away\s+)?"
    r"(?:from\s+.+?\s+)?(?P<moved>to))\s+(?P<value>.+)",
    re.I,
)
_LIVED = re.compile(r"(?:i've|i have)\s+(?:always\s+)?lived\s+in\s+(?P<value>.+?)\s+(?:for|since|all my life)\b", re.I)
_ORIGIN = re.compile(rf"(?:{_AM}|i\s+(?:originally\s+)?come\s+)from\s+(?P<value>.+)", re.I)
_JOB = re.compile(rf"{_I}work(?:ing)?\s+as\s+(?P<value>.+)", re.I)
_IS_A = re.compile(rf"{_AM}(?P<value>(?:an?|the)\s+.+)", re.I)
_EMPLOYER = re.compile(
    rf"{_I}(?:work(?:ing)?|employed)\s+(?:(?:remotely|part[- ]time|full[- ]time|mostly|in\s+\S+)\s+)?(?:at|for|"
    rf"by)\s+(?P<value>.+)",
    re.I,
)
_AT = re.compile(r"\s+(?:at|for)\s+(?P<value>.+)", re.I)
_AGE = re.compile(
    rf"{_AM}(?P<value>\d{{1,3}})(?P<unit>\s*-?\s*(?:years?|yrs?)[ -]?olds?|\s*(?:yo|y/o))?(?P<rest>.*)$", re.I
)
_ALLERGY = re.compile(rf"{_AM}(?:(?:severely|very|highly|mildly|deathly|a bit)\s+)*allergic\s+to\s+(?P<value>.+)", re.I)
_DIET = re.compile(
    rf"{_AM}(?:(?:a|an|strictly|strict)\s+)*(?P<value>{{}})\b(?!\s+\w+\s+(?:fan|lover))".format(
        "|".join(sorted(_LISTS.diet))
    ),
    re.I,
)
_OPINION = re.compile(
    r"i\s+(?:(?:really|also|do|absolutely|still|just|truly|now|always|simply)\s+)*"
    r"(?P<verb>like|love|prefer|enjoy|hate|dislike|adore|detest|(?:don't|do not)(?: really| particularly)? (?:like|"
    r"enjoy|love)|can't stand|cannot stand)\s+(?P<what>.+)",
    re.I,
)
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
_LIKED_TO = re.compile(r"to\s+(?P<deed>[\w-]+)(?P<rest>(?:\s+[\w'-]+){0,2})$", re.I)
_POINTS = re.compile(
    r"\b(?:the|a|an|this|that|these|those|it|you|your|him|her|them|any|some|one|more|about|out|if)\b", re.I
)
_CALLED = re.compile(
    r"(?:my\s+(?P<own>[\w-]+(?:\s+[\w-]+)?)(?:'s\s+name\s+is|\s+is\s+(?:called|named)|s\s+name\s+is)"
    r"|i(?:'ve got|\s+have|\s+have got)\s+an?\s+(?:\w+\s+)?(?P<had>[\w-]+)\s+(?:called|named))\s+(?P<value>.+)",
    re.I,
)
_OWN = re.compile(r"my\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,2}?)(?:\s+(?:is|are)|'s)\s+(?:now\s+)?(?P<value>.+)", re.I)
_REASON = re.compile(
    r"\s+(?:because|since|when|while|if|but|though|although|so that|more than|rather than|over|than|to|as|for|"
    r"especially|most|"
    r"the most|very much|a lot|so much|best|better|and|these days|in (?:the )?(?:morning|evening|summer|winter)s?)\b.*",
    re.I,
)
_CODE = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[+#]?[\d][\d\s().:/+-]*|one|two|three|four|five|six|seven|eight|nine|ten", re.I
)
_DATE = re.compile(
    r"(?:on |the )*(?:(?:\d{1,2}(?:st|nd|rd|th)?(?: of)? )?(?:january|february|march|april|may|june|july|august|"
    r"september|october|november|"
    r"december)(?: \d{1,2}(?:st|nd|rd|th)?)?|(?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|noon|"
    r"midnight)(?:,? \d{4}| at .+)?",
    re.I,
)
_FAVOURITE = ("favourite", "favorite", "preferred")


def facts_of(clause: str, *, introduces: bool = True) -> tuple[Fact, ...]:
    """Return what a clause states of its speaker; several facts where one tells them ("a nurse at St Mary's").

    ``introduces``: "I'm Ada" tells a name.
    """
    for read in _READINGS if introduces else _READINGS[1:]:
        found = read(clause)
        if found:
            return tuple(fact for fact in found if fact.value)
    return ()


def key_of(text: str) -> str:
    """Return a fact's key as it is kept: lower case, single spaces, without articles before it; "" for none."""
    words = re.findall(r"[\w'-]+", fold(text[:READ]))
    while words and words[0] in _LISTS.article:
        words = words[1:]
    return " ".join(words)[:KEY_CHARACTERS].strip()


def keyed(key: str, value: str) -> Fact | None:
    """Return a fact of this key and value, None where either says nothing that lasts."""
    kept, value = key_of(key), value_of(value)
    words = kept.split()
    if not words or not value or not _LISTS.no_key.isdisjoint(words) or _begins_with(value, _LISTS.no_value):
        return None
    return Fact(key=kept, value=value)


def _named(clause: str) -> list[Fact]:
    found = _NAME.match(clause)
    if found is not None:
        value, is_sure = (found["value"], True) if found["sure"] else (found["called"], False)
        name = name_in(value, small=is_sure or is_typed_small(clause))
        return [Fact(key=NAME, value=name)] if name else []
    return []


def _introduced(clause: str) -> list[Fact]:
    if _NAME.match(clause) is not None:
        return []
    bare = _BARE_NAME.match(clause)
    if bare is None:
        return []
    name = name_in(bare["value"], small=False, after=_AFTER_NAME)
    if not name or not _LISTS.no_person.isdisjoint(fold(name).split()) or (name.isupper() and len(name) > 1):
        return []
    origin = (
        place_in(bare["value"][len(name) :].strip().removeprefix("from "), clause) if " from " in bare["value"] else ""
    )
    return [Fact(key=NAME, value=name), *([Fact(key=ORIGIN, value=origin)] if origin else [])]


def _home(clause: str) -> list[Fact]:
    found = _HOME.match(clause) or _LIVED.match(clause)
    if found is None:
        return []
    place = place_in(found["value"], clause)
    return [Fact(key=HOME, value=place)] if place else []


def _origin(clause: str) -> list[Fact]:
    found = _ORIGIN.match(clause)
    place = place_in(found["value"], clause, generic=False) if found is not None else ""
    return [Fact(key=ORIGIN, value=place)] if place else []


def _job(clause: str) -> list[Fact]:
    found = _JOB.match(clause)
    job, rest = job_in(found["value"], known=False) if found is not None else ("", "")
    if found is None and (found := _IS_A.match(clause)) is not None:
        job, rest = job_in(found["value"], known=True)
    if not job:
        return []
    at = _AT.match(rest)
    employer = organisation_in(at["value"], clause) if at is not None else ""
    return [Fact(key=JOB, value=job), *([Fact(key=EMPLOYER, value=employer)] if employer else [])]


def _employer(clause: str) -> list[Fact]:
    found = _EMPLOYER.match(clause)
    employer = organisation_in(found["value"], clause) if found is not None else ""
    return [Fact(key=EMPLOYER, value=employer)] if employer else []


def _age(clause: str) -> list[Fact]:
    found = _AGE.match(clause)
    if found is None or not 3 <= int(found["value"]) <= 115:
        return []
    rest = found["rest"].strip(" .!,")
    is_age = (
        not rest
        if found["unit"] is None
        else not rest or not rest[0].isalnum() or rest.split()[0] in ("and", "from", "now")
    )
    return [Fact(key=AGE, value=found["value"])] if is_age else []


def _allergy(clause: str) -> list[Fact]:
    found = _ALLERGY.match(clause)
    if found is None:
        return []
    things = [key_of(each) for each in re.split(r"\s*,\s*|\s+(?:and|or)\s+", _REASON_BUT_AND.sub("", found["value"]))]
    kept = [each for each in things if each and len(each.split()) <= 3 and _LISTS.no_allergy.isdisjoint(each.split())]
    return (
        [Fact(key=f"{ALLERGY} {each}"[:KEY_CHARACTERS], value=ALLERGIC) for each in kept]
        if len(kept) == len(things)
        else []
    )


_REASON_BUT_AND = re.compile(r"\s+(?:because|since|so|but|which|that|when|if)\b.*", re.I)


def _diet(clause: str) -> list[Fact]:
    found = _DIET.match(clause)
    return [Fact(key=DIET, value=found["value"].casefold())] if found is not None else []


def _opinion(clause: str) -> list[Fact]:
    found = _OPINION.match(clause)
    if found is None or re.search(r"\bplease\b", clause, re.I):
        return []
    verb = found["verb"].casefold()
    liked = _LIKED_TO.match(value_of(found["what"]))
    if liked is not None:
        rest = liked["rest"].strip()
        if fold(liked["deed"]) in _LISTS.no_deed or _POINTS.search(rest) or verb in ("prefer",):
            return []
        what = key_of(f"{liked['deed']} {rest}")
    else:
        what = key_of(_REASON.sub("", value_of(found["what"])))
        words = what.split()
        if (
            not words
            or len(words) > 5
            or words[0] in _LISTS.no_object
            or fold(found["what"].split()[0]) in _LISTS.no_object
        ):
            return []
        if re.search(
            r"\b(?:that|which|who|you|your|it|this|these|those|me|is|are|was|was|can|will|would|please)\b", what
        ):
            return []
    return [Fact(key=f"{OPINION} {what}"[:KEY_CHARACTERS].strip(), value=_VERDICTS.get(verb, DISLIKED))]


def _called(clause: str) -> list[Fact]:
    found = _CALLED.match(clause)
    if found is None:
        return []
    whose = key_of(found["own"] or found["had"])
    name = name_in(found["value"], small=True)
    is_kept = name and head_of(whose) in _LISTS.kin | _LISTS.thing
    return [Fact(key=f"{whose}'s {NAME}", value=name)] if is_kept else []


def _own(clause: str) -> list[Fact]:
    found = _OWN.match(clause)
    if found is not None and head_of(key_of(found["key"])) in _LISTS.kin:
        name = name_in(found["value"], small=False)
        if name and name.casefold() not in _LISTS.no_person:
            return [Fact(key=key_of(found["key"]), value=name)]
    fact = keyed(found["key"], found["value"]) if found is not None else None
    return [fact] if fact is not None and _lasts(fact) else []


def _lasts(fact: Fact) -> bool:
    """Whether a value of what somebody has says what it is, rather than how it is at the moment."""
    words, head, first = fact.value.split(), head_of(fact.key), fact.key.split()[0]
    if _CODE.fullmatch(fact.value) or _DATE.fullmatch(fact.value):
        return True
    is_plain = len(words) <= 5 and not re.search(
        r"\b(?:that|which|who|because|when|if|i|is|are|you|to be)\b", fold(fact.value)
    )
    if not is_plain or (re.fullmatch(r".*(?:ing|ed)", words[0]) and words[0].islower() and first not in _FAVOURITE):
        return False
    is_a = fold(words[0]) in ("a", "an")
    if is_a and not _LISTS.no_kind.isdisjoint(map(fold, words)):
        return False
    if first in _FAVOURITE or head in _LISTS.attribute or fact.key in _LISTS.attribute:
        return True
    if head in _LISTS.thing and fold(words[-1]) in _LISTS.colour:
        return True
    if is_a:
        return len(words) > 1 and (head in _LISTS.kin or head in _LISTS.thing)
    return name_in(fact.value, small=False) == fact.value and fact.value.casefold() not in _LISTS.no_person


def _begins_with(value: str, words: frozenset[str]) -> bool:
    told = fold(value).split()
    return told[0].strip(",;") in words or " ".join(told[:2]) in words


_READINGS: tuple[Callable[[str], list[Fact]], ...] = (
    _introduced,
    _named,
    _home,
    _origin,
    _job,
    _employer,
    _age,
    _allergy,
    _diet,
    _opinion,
    _called,
    _own,
)
