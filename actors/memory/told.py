"""Facts that a person tells of themselves, read from a text by patterns: no model, English only.

A text is read clause by clause. Questions, suppositions, negations and what is quoted of others give nothing: to know
nothing is better than to know something wrong. What a person asks to be remembered is kept as it was said.
"""

import re
from collections.abc import Iterator

from actors.memory.terms import word_lists
from schemas.reading.folding import fold
from schemas.reading.terms import READ, terms_of
from schemas.vocabulary.memory import Fact

MOST = 8
"""Facts read from one text."""

VALUE_CHARACTERS = 160
KEY_CHARACTERS = 60

NAME, HOME, JOB, EMPLOYER = "name", "home", "job", "employer"
OPINION, NOTE = "opinion of", "note about"
"""What keys of opinions and notes begin with."""

_LISTS = word_lists()
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})
_QUOTED = re.compile(r'"[^"]*"')
_FIRST_PERSON = re.compile(r"\b(?:i|my|me)\b", re.I)
_ABBREVIATED = re.compile(r"\b(St|Mr|Mrs|Ms|Dr|Prof)\.(?=\s)")
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*(?:[.!?]+|\n|$)")
_CLAUSE = re.compile(
    r"(?:\s*[,;:]\s*(?:and|but|so)?\s*|\s+(?:and|but|so)\s+)"
    r"(?=(?:i|i'm|my|call|please|remember|note|don't forget)\b)",
    re.I,
)
_OPENING = re.compile(
    r"(?:hi|hello|hey|well|so|and|but|also|ok|okay|oh|yes|please|actually|btw|by the way|fyi|for the record|anyway|"
    r"then|now|just so you know|as you know|in fact|you can|you may|you should know that|i should mention that)\b"
    r"[\s,:!-]*",
    re.I,
)
_QUESTION = re.compile(
    r"(?:who|whom|whose|what|what's|when|where|where's|why|how|which|is|isn't|are|am|was|were|do|does|did|don't you|"
    r"can|could|would|will|should|shall|have you|has|may|might)\b(?!\s+not\s+forget)",
    re.I,
)
_SUPPOSED = re.compile(r"(?:if|unless|suppose|imagine|pretend|let's say|say|assuming|when|whenever|i wish)\b", re.I)
_NEGATED = re.compile(r"\b(?:not|never|no longer|cannot|neither|nor|nobody|hardly)\b|n't\b", re.I)
_REMEMBER = re.compile(
    r"(?:remember|note|keep in mind|don't forget|do not forget|never forget)"
    r"(?:\s+that\b|\s*:|(?=\s+(?:my|i|i'm|the|our|we|to)\b))\s*(?P<rest>\S.*)",
    re.I | re.S,
)
_I = r"(?:i|i am|i'm)\s+(?:(?:now|currently|still)\s+)?"
_STATEMENTS = (
    (
        NAME,
        re.compile(
            r"(?:my name is|my name's|i am called|i'm called|(?:people )?call me|i go by)\s+(?P<value>.+)", re.I
        ),
    ),
    (HOME, re.compile(rf"{_I}(?:live|living)\s+(?:in|at|near)\s+(?P<value>.+)", re.I)),
    (JOB, re.compile(rf"{_I}work(?:ing)?\s+as\s+(?:an?\s+|the\s+)?(?P<value>.+?)(?:\s+(?:at|for)\s.*)?$", re.I)),
    (EMPLOYER, re.compile(rf"{_I}work(?:ing)?\s+(?:as\s.+?\s+)?(?:at|for)\s+(?P<value>.+)", re.I)),
)
_OPINION = re.compile(
    r"i\s+(?:(?:really|also|do|absolutely|still|just)\s+)*"
    r"(?P<verb>like|love|prefer|enjoy|hate|dislike)\s+(?P<what>.+)",
    re.I,
)
_VERDICTS = {
    "like": "likes it",
    "love": "loves it",
    "prefer": "prefers it",
    "enjoy": "enjoys it",
    "hate": "hates it",
    "dislike": "dislikes it",
}
_OWN = re.compile(r"my\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,3}?)\s+(?:is|are)\s+(?P<value>.+)", re.I)
_STATED = re.compile(r"(?:the|our)\s+(?P<key>[\w'-]+(?:\s+[\w'-]+){0,3}?)\s+(?:is|are)\s+(?P<value>.+)", re.I)
_REASON = re.compile(r"\s+(?:because|since|when|while|if|but|though|although|so that|more than|over|to)\s.*", re.I)
_CLOSING = re.compile(
    r"(?:\s*,)?\s+(?:by the way|please|though|too|as well|thanks|thank you|right now|actually|now|and|but)$", re.I
)
_EDGES = " \t\r\n\"'`,;:.!?()[]{}<>*_-\u2013\u2014\u2026"


def facts_in(text: str) -> tuple[Fact, ...]:
    """Return the facts that a text tells, of each key the last one; of a long text, those of its beginning."""
    sentences = _SENTENCE.findall(_plain(text[:READ]))
    found = {fact.key: fact for sentence in sentences for fact in _in_sentence(sentence.strip())}
    return tuple(found.values())[:MOST]


def key_of(text: str) -> str:
    """Return a fact's key as it is kept: lower case, single spaces, without articles before it; "" for none."""
    words = re.findall(r"[\w'-]+", fold(text[:READ]))
    while words and words[0] in _LISTS.article:
        words = words[1:]
    return " ".join(words)[:KEY_CHARACTERS].strip()


def note_of(text: str) -> Fact | None:
    """Return a text that is to be remembered as a fact: a statement under its own key, else as it is."""
    value = _value(text)
    if not value:
        return None
    stated = _STATED.match(value)
    if stated is not None and not _NEGATED.search(value) and (fact := _keyed(stated)) is not None:
        return fact
    about = " ".join(terms_of(value)[:3])
    return Fact(key=f"{NOTE} {about}"[:KEY_CHARACTERS].strip(), value=value) if about else None


def fact_of(key: str, value: str) -> Fact | None:
    """Return a fact that is to be memorized; one without a key is a note, one without a value is none."""
    kept = key_of(key)
    value = _value(value)
    if kept and value:
        return Fact(key=kept, value=value)
    return note_of(value)


def _plain(text: str) -> str:
    """Return a text with plain marks and single spaces, and without what somebody else says of themselves in it."""
    lines = "\n".join(" ".join(line.split()) for line in text.translate(_APOSTROPHES).splitlines())
    own = _QUOTED.sub(lambda quoted: "" if _FIRST_PERSON.search(quoted[0]) else quoted[0], lines)
    return _ABBREVIATED.sub(r"\1", own)


def _in_sentence(sentence: str) -> Iterator[Fact]:
    opened = _opened(sentence)
    if sentence.endswith("?") or _QUESTION.match(opened) or _SUPPOSED.match(opened):
        return
    remembered = _REMEMBER.match(opened)
    if remembered is not None:
        rest = remembered["rest"]
        told = [fact for clause in _CLAUSE.split(rest) for fact in _in_clause(_opened(clause))]
        note = None if told else note_of(rest)
        yield from told if note is None else (note,)
        return
    for clause in _CLAUSE.split(sentence):
        clause = _opened(clause)
        if not (_QUESTION.match(clause) or _SUPPOSED.match(clause)):
            yield from _in_clause(clause)


def _in_clause(clause: str) -> Iterator[Fact]:
    if _NEGATED.search(clause):
        return
    matched = [(key, found) for key, statement in _STATEMENTS if (found := statement.match(clause)) is not None]
    for key, found in matched:
        value = _value(found["value"])
        if value and (key != NAME or _is_name(value)):
            yield Fact(key=key, value=value)
    if matched:
        return
    opinion, own = _OPINION.match(clause), _OWN.match(clause)
    fact = _opinion(opinion) if opinion is not None else _keyed(own) if own is not None else None
    if fact is not None:
        yield fact


def _opened(clause: str) -> str:
    clause = clause.lstrip(_EDGES)
    while (opening := _OPENING.match(clause)) is not None and opening.end() < len(clause):
        clause = clause[opening.end() :]
    return clause


def _value(text: str) -> str:
    value = " ".join(text[: 4 * VALUE_CHARACTERS].split()).strip(_EDGES)
    while (closing := _CLOSING.search(value)) is not None:
        value = value[: closing.start()].strip(_EDGES)
    if len(value) > VALUE_CHARACTERS:
        # Whole words only: of a word that is cut nobody could tell later that it is to be forgotten.
        value = value[:VALUE_CHARACTERS].rpartition(" ")[0].strip(_EDGES)
    return value


def _is_name(value: str) -> bool:
    words = value.split()
    return len(words) <= 4 and words[0].casefold() not in _LISTS.no_name


def _opinion(found: re.Match[str]) -> Fact | None:
    what = key_of(_REASON.sub("", found["what"]))
    words = what.split()
    if not words or len(words) > 5 or words[0] in _LISTS.no_object:
        return None
    return Fact(key=f"{OPINION} {what}"[:KEY_CHARACTERS].strip(), value=_VERDICTS[found["verb"].casefold()])


def _keyed(found: re.Match[str]) -> Fact | None:
    key, value = key_of(found["key"]), _value(found["value"])
    if (
        not key
        or not value
        or not _LISTS.no_key.isdisjoint(key.split())
        or value.split()[0].casefold() in _LISTS.no_value
    ):
        return None
    return Fact(key=key, value=value)
