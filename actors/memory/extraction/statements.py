"""Reads from a clause what it states about its speaker, by strict rules for each kind of fact. Pure.

Each kind defines the form of its values; other values are no facts: "I go by bus" states no name, "I work at night" no
employer. The lists of excluded words are in ``words.json``.
"""

import re
from collections.abc import Callable

from actors.contract.text.folding import fold
from actors.memory.extraction.belongings import belongings_of
from actors.memory.extraction.keys import AGE, EMPLOYER, HOME, JOB, NAME, ORIGIN, key_of
from actors.memory.extraction.phrases import is_lower_case, job_in, name_in, organisation_in, place_in
from actors.memory.extraction.tastes import taste_of
from actors.memory.extraction.word_lists import word_lists
from schemas.vocabulary.memory import Fact

_LISTS = word_lists()

# Each expression below is followed by what it matches, or by an example.
_I = r"(?:i|i am|i'm|i've been|i have been)\s+(?:(?:now|currently|still|actually|also|both|just)\s+)*"
_AM = r"(?:i'm|i am)\s+(?:(?:now|currently|still|actually|also|originally)\s+)*"
_NAME = re.compile(
    r"(?P<sure>my name is|my name's|my name was always|(?:the )?name's|i am called|i'm called|i am named|"
    r"i'm named)\s+(?:now\s+|actually\s+|spelled\s+|spelt\s+|written\s+)*(?P<value>.+)"
    r"|(?:(?:people|friends|everyone|everybody|they|my friends) (?:just )?calls? me|(?:just )?call me|"
    r"i (?:now )?go by(?: the name of| the name)?)\s+(?P<called>.+)"
    r"|(?:(?:(?:all|most) )?(?:of )?(?:my|the) [\w-]+(?: [\w-]+)? (?:(?:just|always|usually) )?calls? me|"
    r"i(?:'d)? (?:prefer|like|want) to be called|(?:i'm|i am) (?:also |better |best )?known as)\s+(?P<capital>[A-Z].*)",
    re.I,
)
"""A name: ``sure`` behind words that only a name follows; ``called`` and ``capital`` behind other words."""

_LATELY = r"(?:(?:just|recently|since|finally|legally|officially|now)\s+)*"
_CHANGED = re.compile(
    rf"(?:(?:i|we)(?:'ve|\s+have)?\s+{_LATELY}(?:changed|switched|updated)\s+(?:my|our)\s+(?P<key>[\w' -]+?)"
    rf"|(?:my|our)\s+(?P<its>[\w' -]+?)\s+(?:(?:has|was|is|got)\s+{_LATELY}(?:been\s+{_LATELY})?)?changed)"
    r"\s+(?:from\s+.+?\s+)?to\s+(?P<value>.+)",
    re.I,
)
"""A change, which is a statement, too: "I've changed my name to Sarah"."""

_ADVERBS = re.compile(
    r"\b(i|we|is|are|am|was|has|have|i'm|i've|we're|we've)\s+"
    r"(?:(?:now|currently|actually|officially|legally|recently|already|finally|since|still|just)\s+)+",
    re.I,
)
"""A verb with adverbs after it, which are left out: "is now"."""

_BARE_NAME = re.compile(rf"(?:{_AM.rstrip()})(?P<value>[^,]+)(?:,.*)?$", re.I)
"""Such as "I'm Ada"."""

_AFTER_NAME = re.compile(r"(?:from|and|here|by the way|btw|but)\b|$", re.I)
"""What may follow a name after "I'm"."""

_HOME = re.compile(
    rf"(?:(?:{_I}|we(?:'re|\s+are)?\s+)(?:live|living|based|reside|residing|settled)\s+(?P<how>in|at|near|on)"
    r"|(?:i've|i have|i|we|we've)\s+(?:(?:just|recently|now|since|already|finally)\s+)*(?:moved|"
    r"relocated)\s+(?:back\s+|over\s+|away\s+)?"
    r"(?:from\s+.+?\s+)?(?P<moved>to))\s+(?P<value>.+)",
    re.I,
)
"""Such as "I live in Rome"; "we moved to Rome"."""

_LIVED = re.compile(r"(?:i've|i have)\s+(?:always\s+)?lived\s+in\s+(?P<value>.+?)\s+(?:for|since|all my life)\b", re.I)
"""Such as "I've lived in Rome for years"."""

_ORIGIN = re.compile(
    rf"(?:(?:{_AM}|i\s+(?:originally\s+)?come\s+)from|(?:i was|i'm|i am)\s+born\s+in|"
    rf"i\s+grew\s+up\s+in)\s+(?P<value>.+)",
    re.I,
)
"""Such as "I come from Rome"; "I was born in Rome"."""

_JOB = re.compile(rf"{_I}work(?:ing)?\s+as\s+(?P<value>.+)", re.I)
_IS_A = re.compile(rf"{_AM}(?P<value>(?:an?|the)\s+.+)", re.I)
"""What may be a job: "I'm a nurse"."""

_EMPLOYER = re.compile(
    rf"{_I}(?:work(?:ing)?|employed)\s+(?:(?:remotely|part[- ]time|full[- ]time|mostly|in\s+\S+)\s+)?(?:at|for|"
    rf"by)\s+(?P<value>.+)",
    re.I,
)
"""Such as "I work for Acme"."""

_AT = re.compile(r"\s+(?:at|for)\s+(?P<value>.+)", re.I)
_AGE = re.compile(
    rf"{_AM}(?P<value>\d{{1,3}})(?P<unit>\s*-?\s*(?:years?|yrs?)[ -]?olds?|\s*(?:yo|y/o))?(?P<rest>.*)$", re.I
)
"""Such as "I'm 40"; "I'm 40 years old"."""

_AS = re.compile(r"\s+as\s+(?P<value>.+)", re.I)
_AFTER_AGE = ("and", "from", "now")
"""Words that may follow an age with its unit."""

_NOW = ("", "now", "today")
"""All that may follow an age without a unit."""

_MOST_NAMES = 2
"""Most words of a new name in lower case."""

_FORMS_OF_BE = frozenset(("is", "was", "has", "got", "were", "are", "be", "been"))


def facts_of(clause: str, *, introduces: bool = True) -> tuple[Fact, ...]:
    """Return the facts that a clause states about its speaker; there may be several ("a nurse at St Mary's").

    If ``introduces``, "I'm Ada" states a name.
    """
    changed = _CHANGED.fullmatch(clause)
    if changed is not None:
        return _changed(changed, is_lower_case(clause))
    # Adverbs of time or certainty are not part of the fact: "my dog is now called Max".
    for form in dict.fromkeys((clause, _ADVERBS.sub(r"\1 ", clause))):
        for read in _READERS if introduces else _READERS[1:]:
            found = read(form)
            if found:
                return tuple(fact for fact in found if fact.value)
    return ()


def _changed(found: re.Match[str], is_lower: bool) -> tuple[Fact, ...]:
    key, value = found["key"] or found["its"], found["value"]
    if not _FORMS_OF_BE.isdisjoint(key.lower().split()):
        return ()
    if key_of(key) == NAME and not (value[:1].isupper() or (is_lower and len(value.split()) <= _MOST_NAMES)):
        return ()
    return facts_of(f"my {key} is {value}", introduces=False)


def _named(clause: str) -> list[Fact]:
    found = _NAME.match(clause)
    if found is not None:
        value = found["value"] or found["called"] or found["capital"]
        may_be_lower_case = found["sure"] is not None or (found["called"] is not None and is_lower_case(clause))
        return _fact(NAME, name_in(value, may_be_lower_case=may_be_lower_case))
    return []


def _introduced(clause: str) -> list[Fact]:
    if _NAME.match(clause) is not None:
        return []
    bare = _BARE_NAME.match(clause)
    if bare is None:
        return []
    name = name_in(bare["value"], may_be_lower_case=False, after=_AFTER_NAME)
    if not name or not _LISTS.no_person.isdisjoint(fold(name).split()) or (name.isupper() and len(name) > 1):
        return []
    _, is_from, place = bare["value"].partition(" from ")
    return [*_fact(NAME, name), *_fact(ORIGIN, place_in(place, clause, may_lack_name=False) if is_from else "")]


def _home(clause: str) -> list[Fact]:
    found = _HOME.match(clause) or _LIVED.match(clause)
    return _fact(HOME, place_in(found["value"], clause)) if found is not None else []


def _origin(clause: str) -> list[Fact]:
    found = _ORIGIN.match(clause)
    return _fact(ORIGIN, place_in(found["value"], clause, may_lack_name=False)) if found is not None else []


def _job(clause: str) -> list[Fact]:
    found = _JOB.match(clause)
    job, rest = job_in(found["value"], known=False) if found is not None else ("", "")
    if found is None and (found := _IS_A.match(clause)) is not None:
        job, rest = job_in(found["value"], known=True)
    if not job:
        return []
    at = _AT.match(rest)
    return [*_fact(JOB, job), *_fact(EMPLOYER, organisation_in(at["value"], clause) if at is not None else "")]


def _employer(clause: str) -> list[Fact]:
    found = _EMPLOYER.match(clause)
    employer = organisation_in(found["value"], clause) if found is not None else ""
    if found is None or not employer:
        return []
    role = _AS.search(found["value"])
    job, _ = job_in(role["value"], known=False) if role is not None else ("", "")
    return [*_fact(EMPLOYER, employer), *_fact(JOB, job)]


def _age(clause: str) -> list[Fact]:
    found = _AGE.match(clause)
    if found is None or not 3 <= int(found["value"]) <= 115:
        return []
    rest = found["rest"].strip(" .!,")
    is_stated = found["unit"] is not None and (not rest[:1].isalnum() or rest.split()[0] in _AFTER_AGE)
    return [Fact(key=AGE, value=found["value"])] if is_stated or rest in _NOW else []


def _fact(key: str, value: str) -> list[Fact]:
    """Return the fact of a key; none without a value."""
    return [Fact(key=key, value=value)] if value else []


_READERS: tuple[Callable[[str], list[Fact]], ...] = (
    _introduced,
    _named,
    _home,
    _origin,
    _job,
    _employer,
    _age,
    taste_of,
    belongings_of,
)
"""The readers of all kinds of facts; the first one that finds something counts."""
