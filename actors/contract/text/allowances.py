"""Allowances: texts and phrases that an operator allows for an agent. The guards judge an input without them.

All guards use this one pure function, so that an allowance applies to each of them alike. A whole text or layer is
compared by its hash, after folding case and white space, so that no state holds people's text. An allowed phrase is
replaced with blanks of the same length, so that positions in the text do not change.
"""

import re
from functools import lru_cache
from hashlib import blake2b

import msgspec
from immutables import Map

from actors.contract.text.folding import fold
from schemas.intake.blank import is_blank, says_nothing
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.gateway import InputReceived

MOST_ALLOWANCES = 90
"""Most allowances of an agent; further ones are ignored."""

MOST_CHARACTERS = 16_000
"""Most characters of an allowed text or phrase; longer ones are ignored."""

_SOUGHT_FIRST = 4
"""Number of a phrase's longest words: the phrase itself is looked for only in a text that has all of these."""

# Characters that Python's patterns compare without case, although they are not each other's lower case. Of those with
# two lower cases, such as sigma, one is written for both; a capital I with a dot becomes two characters in lower case.
_EQUAL_WITHOUT_CASE = (
    *(("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"), ("\u00b5", "\u03bc"), ("\u03a3", "\u03c3")),
    *(("\u03c2", "\u03c3"), ("\u0345", "\u03b9"), ("\u1fbe", "\u03b9"), ("\u03d0", "\u03b2"), ("\u03f5", "\u03b5")),
    *(("\u03d1", "\u03b8"), ("\u03f4", "\u03b8"), ("\u03f0", "\u03ba"), ("\u03d6", "\u03c0"), ("\u03f1", "\u03c1")),
    *(("\u03d5", "\u03c6"), ("\u1e9b", "\u1e61"), ("\u1fd3", "\u0390"), ("\u1fe3", "\u03b0"), ("\ufb05", "\ufb06")),
    *(("\u1c80", "\u0432"), ("\u1c81", "\u0434"), ("\u1c82", "\u043e"), ("\u1c83", "\u0441"), ("\u1c84", "\u0442")),
    *(("\u1c85", "\u0442"), ("\u1c86", "\u044a"), ("\u1c87", "\u0463"), ("\u1c88", "\ua64b")),
)

LEAST_OF_PHRASE = 2
"""Fewest letters or digits of a phrase that an operator can allow; older logs may record phrases with fewer."""


class Allowance(msgspec.Struct, frozen=True):
    """An allowance: the hash of a text, or a phrase."""

    name: str
    text: str = ""
    phrase: str = ""


class Allowances(msgspec.Struct, frozen=True):
    """The allowances of each agent, in the order of recording."""

    agents: Map[str, tuple[Allowance, ...]] = Map()

    def after(self, agent: str, event: AllowanceRecorded | AllowanceWithdrawn) -> "Allowances":
        """Return the allowances after an event; never raises."""
        known = self.agents.get(agent, ())
        kept = tuple(each for each in known if each.name != event.allowance)
        if isinstance(event, AllowanceRecorded):
            phrase = " ".join(event.phrase.split())
            if not (event.text.strip() or phrase) or len(kept) >= MOST_ALLOWANCES:
                return self
            text = text_key(event.text) if event.text.strip() else ""
            kept = (*kept, Allowance(event.allowance, text, phrase))
        if kept == known:
            return self
        return Allowances(self.agents.set(agent, kept) if kept else self.agents.delete(agent))

    def judged(self, agent: str, received: InputReceived) -> tuple[InputReceived, tuple[str, ...]]:
        """Return the part of an input that the guards judge, and the names of the allowances that removed the rest."""
        allowances = self.agents.get(agent)
        if not allowances:
            return received, ()
        names: dict[str, None] = {}
        text = _without_allowed(received.text, allowances, names)
        layers = tuple(
            msgspec.structs.replace(layer, content=_without_allowed(layer.content, allowances, names))
            for layer in received.layers
        )
        if not names:
            return received, ()
        return msgspec.structs.replace(received, text=text, layers=layers), tuple(names)


def why_refused(text: str, phrase: str) -> tuple[str, str] | None:
    """Return which argument an operator has to change, and why; None if the text or phrase can be allowed."""
    if bool(text) == bool(phrase):
        return "phrase", "give either a phrase or a whole text"
    field, words = ("text", text) if text else ("phrase", phrase)
    if says_nothing(words):
        return field, "there is no text in it"
    if len(words) > MOST_CHARACTERS:
        return field, f"at most {MOST_CHARACTERS:,} characters can be allowed as one text: allow a phrase of it instead"
    if phrase and sum(each.isalnum() and not is_blank(each) for each in phrase) < LEAST_OF_PHRASE:
        return field, f"a phrase has {LEAST_OF_PHRASE} letters or digits at least: the guards ignore it in every text"
    return None


def text_key(text: str) -> str:
    """Return the hash by which a text is compared."""
    return blake2b(" ".join(fold(text).split()).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _without_allowed(text: str, allowances: tuple[Allowance, ...], names: dict[str, None]) -> str:
    """Return a text without what is allowed in it; the names of the allowances that apply are added to ``names``."""
    key = text_key(text) if text.strip() and any(each.text for each in allowances) else ""
    for each in allowances:
        if key and each.text == key:
            names[each.name] = None
            return ""
    phrases = _phrases_to_search(text, [each for each in allowances if each.phrase])
    if not phrases:
        return text

    def blank(match: re.Match[str]) -> str:
        names[phrases[(match.lastindex or 1) - 1].name] = None
        return " " * len(match[0])

    return _phrase_pattern(tuple(each.phrase for each in phrases)).sub(blank, text)


def _phrases_to_search(text: str, phrases: list[Allowance]) -> list[Allowance]:
    """Return those of the phrases that may be in a text: hardly any.

    The others are left out of the pattern that is searched for. A pattern of all phrases would be tried at each word of
    a text, and take seconds to make where phrases are long.
    """
    if not phrases:
        return []
    compared = without_case(text)
    return [each for each in phrases if all(word in compared for word in _longest_words(each.phrase))]


@lru_cache(maxsize=1_024)
def _longest_words(phrase: str) -> tuple[str, ...]:
    """Return the longest words of a phrase, without case: a text that lacks one of them cannot contain the phrase."""
    return tuple(sorted(set(without_case(phrase).split()), key=lambda word: (-len(word), word))[:_SOUGHT_FIRST])


def without_case(text: str) -> str:
    """Return a text in lower case; characters that ``re.IGNORECASE`` takes for equal become the same one."""
    if not text.isascii():
        for written, compared in _EQUAL_WITHOUT_CASE:
            text = text.replace(written, compared)
    return text.lower()


@lru_cache(maxsize=64)
def _phrase_pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    spelled = (r"(" + r"\s+".join(map(re.escape, phrase.split())) + r")" for phrase in phrases)
    return re.compile(rf"(?i)(?<!\w)(?:{'|'.join(spelled)})(?!\w)")
