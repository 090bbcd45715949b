"""Reads the phrase at the beginning of a fact's value: a name, a place, an organisation or a job. Pure.

A phrase is read as far as it extends; "" means that the words are not of this kind. Capitals are the best evidence;
from people who type without capitals fewer values are accepted.
"""

import re

from actors.contract.text.folding import fold
from actors.memory.extraction.word_lists import word_lists

VALUE_CHARACTERS = 160
"""Most characters of a value."""

_LISTS = word_lists()

EDGES = " \t\r\n\"'`,;:.!?()[]{}<>*_-\u2013\u2014\u2026"
"""White space and marks that are removed from the ends of a value."""

# Each expression below is followed by what it matches, or by an example.
_CLOSING = re.compile(
    r"(?:\s*,)?\s+(?:by the way|please|though|too|as well|thanks|thank you|right now|actually|now|and|but|btw|"
    r"at the moment|these days|nowadays|currently|also|:\)|lol)$",
    re.I,
)
"""Words at the end of a value that do not belong to it: "please", "these days"."""

_PLACEHOLDER = re.compile(
    r"(?:[x*_?.#\-]\s*){2,}|(?:your|my|insert|enter|some|full|first|last)?\s*names?(?:\s+here)?|(?:john|jane) doe|"
    r"redacted|unknown|undefined|unspecified|n/?a|null|nil|tb[acd]|to be (?:determined|decided|confirmed|announced)|"
    r"withheld|omitted|removed|deleted|hidden|censored|confidential|private|secret|classified|anonymous|anonymi[sz]ed|"
    r"placeholder|foo(?:bar)?|asdf\w*|lorem(?: ipsum)?",
    re.I,
)
"""Words that stand in the place of a value but are none."""

_LOCATED = re.compile(r"\b(?:in|near|at|on|by|of|outside|from)\s+(?:the\s+)?[A-Z]")
"""The name of a place after a preposition: "near Brno"."""

_MOST_NAMES, _MOST_PLACES, _MOST_JOBS = 4, 5, 5
"""Most words of a name, of a place, and of a job."""

_AFTER_NAME = re.compile(
    r"(?:,|from\b|and\b|but\b|by the way\b|btw\b|here\b|now\b|not\b|if\b|or\b|because\b|since\b|so\b|these days\b|"
    r"to\b|at\b|for short\b|in\b|the\b|$)",
    re.I,
)
"""What may follow a name; if something else follows, the words before it are not a whole name."""

_BEFORE_PLACE = frozenset(
    ("a", "an", "the", "north", "south", "east", "west", "northern", "southern", "eastern", "western")
)
"""Words that the name of a place or of a kind of place may follow."""

_AFTER_PLACE = re.compile(
    r"(?:,|with|since|for|now|right|at|these|nowadays|near|close|by|where|which|because|but|and|last|this|again|in|"
    r"as|these|today|while|"
    r"yesterday|on|already|earlier|before|two|three|four|five|\d+|a|some|recently|permanently|years|months|weeks)\b|,|$",
    re.I,
)
"""What may follow a place."""

_NOT_NOW = re.compile(r"\b(?:next|soon|tomorrow|one day|someday|eventually|again if)\b", re.I)
"""Words that move a statement into the future."""

_NO_PLACE_TAIL = re.compile(
    r"(?:support|sales|team|department|dept|company|office|helpdesk|hr|it|marketing|bank|inc|corp|ltd|security|"
    r"version|mode)\b",
    re.I,
)
"""Words after a name that show that it is not a place: "London Sales"."""


def value_of(text: str) -> str:
    """Return a value in normal form: one line without closing words; a long value is cut after a whole word.

    "" for placeholders ("XXXX", "redacted").
    """
    value = " ".join(text[: 4 * VALUE_CHARACTERS].split()).strip(EDGES)
    while (closing := _CLOSING.search(value)) is not None:
        value = value[: closing.start()].strip(EDGES)
    if len(value) > VALUE_CHARACTERS:
        # Cut only at whole words: a part of a word could not be matched later, when the word must be forgotten.
        value = value[:VALUE_CHARACTERS].rpartition(" ")[0].strip(EDGES)
    return "" if _PLACEHOLDER.fullmatch(value) is not None else value


def is_lower_case(clause: str) -> bool:
    """Whether a clause is in lower case: the person types without capitals."""
    return clause == clause.lower()


def name_in(text: str, *, may_be_lower_case: bool, after: re.Pattern[str] = _AFTER_NAME) -> str:
    """Return the name that a text begins with.

    ``may_be_lower_case``: one or two words without capitals may be a whole name.
    """
    text = value_of(text)
    words = text.split()
    found = _capitals(words, _LISTS.particle, _MOST_NAMES)
    if found:
        rest = text[len(found) :].strip()
        first = fold(words[0]).strip(",")
        is_one = (found.endswith(",") or after.match(rest) is not None) and first not in _LISTS.no_name
        return found.rstrip(",") if is_one and "'s" not in found else ""
    beginning = re.split(r"\s*,|\s+(?:and|but|by the way|from|not)\b", text)[0]
    words = fold(beginning).split()
    is_one = (
        may_be_lower_case
        and 1 <= len(words) <= 2
        and all(re.fullmatch(r"[^\W\d_]+(?:['-][^\W\d_]+)*", word) for word in words)
    )
    return beginning if is_one and not any(_is_no_name(word) for word in words) else ""


def capitals_in(text: str) -> str:
    """Return the capitalised words that a text begins with: "German, Czech and Polish"."""
    return _capitals(value_of(text).split(), _LISTS.particle | _LISTS.joining, _MOST_PLACES).rstrip(",")


def place_in(text: str, clause: str, *, may_lack_name: bool = True) -> str:
    """Return the place that a text begins with: "Lima, Peru" or, if it ``may_lack_name``, "a village near Brno".

    "A house" is not a place: it does not say where.
    """
    text = value_of(text)
    words = text.split()
    if not words or _NOT_NOW.search(text):
        return ""
    if fold(words[0]) in _BEFORE_PLACE:
        named = _capitals(words[1:], _LISTS.joining, _MOST_PLACES)
        if named and fold(words[0]) not in ("a", "an"):
            return f"{words[0]} {named}".rstrip(",") if not _is_no_place(named) and _ends_well(words[1:], named) else ""
        phrase = re.split(r"\s+(?:with|where|which|that|and|but|for|since|because)\b|,", text)[0]
        is_settlement = any(fold(word).strip(".") in _LISTS.place for word in phrase.split()[1:4])
        is_somewhere = fold(words[0]) not in ("a", "an") or _LOCATED.search(phrase) is not None
        return phrase if may_lack_name and is_settlement and is_somewhere and len(phrase.split()) <= 6 else ""
    found = _capitals(words, _LISTS.joining, _MOST_PLACES)
    if found:
        return found.rstrip(",") if not _is_no_place(found) and _ends_well(words, found) else ""
    if words[0][0].isdigit() and len(words) > 1 and words[1][0].isupper():
        return text if len(words) <= 6 else ""
    beginning = re.split(r"\s+(?:with|since|for|now|and|but|at the moment)\b|,", text)[0]
    folded = fold(beginning).split()
    is_one = is_lower_case(clause) and 1 <= len(folded) <= 2 and all(word.isalpha() for word in folded)
    return beginning if is_one and _LISTS.no_place.isdisjoint(folded) else ""


def organisation_in(text: str, clause: str) -> str:
    """Return the organisation that a text begins with: "Acme Corp", "the harbour", "a bank"."""
    text = value_of(text)
    words = text.split()
    if not words:
        return ""
    first = fold(words[0])
    if first in ("a", "an", "the", "my", "our", "one"):
        phrase = re.split(
            r"\s+(?:as|in|with|where|which|that|who|and|but|for|since|because|near|of my|from|now|on|at)\b|,", text
        )[0]
        inner = [fold(word) for word in phrase.split()[1:]]
        is_one = 1 <= len(inner) <= 5 and inner[-1] not in _LISTS.no_employer and "same" not in inner and first != "one"
        # "A bank" employs people, "a problem" does not: an organisation without a name must be of a kind that employs.
        is_one = is_one and (first not in ("a", "an") or not _LISTS.workplace.isdisjoint(inner[-2:]))
        return phrase if is_one and not (set(inner) & {"greater", "moment", "longest", "better"}) else ""
    found = _capitals(words, _LISTS.joining | {"and"}, 6)
    if found:
        return found.rstrip(",") if fold(words[0]).strip(",") not in _LISTS.no_employer else ""
    beginning = re.split(r"\s+(?:as|since|for|now|and|but|in)\b|,", text)[0]
    folded = fold(beginning).split()
    is_one = is_lower_case(clause) and 1 <= len(folded) <= 2 and folded[-1].isalpha()
    return beginning if is_one and _LISTS.no_employer.isdisjoint(folded) else ""


def job_in(text: str, *, known: bool) -> tuple[str, str]:
    """Return the job that a text begins with, without article, and the text after it; if ``known``, a listed job."""
    text = value_of(text)
    job = re.split(
        r"\s+(?:at|for|in|with|who|which|that|and|but|since|from|by|on|near|now|of)\b|,|\s+(?=because\b)", text
    )[0]
    rest = text[len(job) :]
    words = job.split()
    has_article = bool(words) and fold(words[0]) in ("a", "an", "the")
    if has_article:
        words = words[1:]
    if not words or len(words) > _MOST_JOBS:
        return "", ""
    head = fold(words[-1]).rstrip(".")
    if not _LISTS.no_job.isdisjoint(map(fold, words)):
        return "", ""
    is_known = head in _LISTS.occupation or " ".join(map(fold, words[-2:])) in _LISTS.occupation
    is_one = is_known or (not known and has_article)
    return (" ".join(words), rest) if is_one else ("", "")


def _capitals(words: list[str], joining: frozenset[str], most: int) -> str:
    """Return the capitalised words that a text begins with, and the small words that join them; "" for none."""
    count = 0
    for index, word in enumerate(words[: most + 2]):
        bare = word.lstrip("\"'")
        if bare[:1].isupper():
            count = index + 1
            if word.endswith((".", ";")) and len(bare) > 3:
                break
        elif bare.casefold() not in joining or index == 0:
            break
    return " ".join(words[:count]) if 0 < count <= most else ""


def _ends_well(words: list[str], found: str) -> bool:
    rest = " ".join(words[len(found.split()) :])
    return _NO_PLACE_TAIL.match(rest) is None and _AFTER_PLACE.match(rest) is not None


def _is_no_place(found: str) -> bool:
    words = fold(found).replace(",", "").split()
    return words[0] in _LISTS.no_place or "'s" in found or _NO_PLACE_TAIL.match(words[-1]) is not None


def _is_no_name(word: str) -> bool:
    return word in _LISTS.no_name or (len(word) > 4 and word.endswith(("ing", "ly", "able", "ful", "ous", "less")))
