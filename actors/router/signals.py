"""What the router reads from a text: pure, compiled once, bounded.

Texts up to ``INSPECTED_CHARACTERS`` are read whole. Of a longer text the opening and the close are read, where people
greet, ask and refer; its middle (a pasted log, a document) changes no signal, so the cost of a decision does not grow
with it.
"""

import re
from typing import Literal, NamedTuple

from actors.router import phrases

OPENING_CHARACTERS = 2000
"""How much of the beginning of a long text is read."""

CLOSING_CHARACTERS = 500
"""How much of the end of a long text is read."""

INSPECTED_CHARACTERS = OPENING_CHARACTERS + CLOSING_CHARACTERS
"""Length up to which a text is read whole."""

SOCIAL_WORDS = 40
"""A text of more words is never only a greeting, or only feedback."""

# Besides white space: control characters and the invisible format characters that chat clients leave behind.
_VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe0f\ufeff]"
)
# A mark inside a word is part of an address or of code; scripts without spaces have marks of their own.
_QUESTION_MARK = re.compile(r"\?(?=!|[\"'”’)\]}*_`.,;:]{0,2}(?:\s|$))")
_OTHER_QUESTION_MARKS = "？؟⁇⁈‽"
_SENTENCE_END = re.compile(r"[.!?…;:](?=[\"'”’)\]]?\s)|[\n。？！]")
_CLAUSE_END = re.compile(r"[,.!?…;:\n()\[\]\"“”—–~*。，？！]+|\s-+\s|\sbut\s")
_EDGES = " \t\"'“”‘’([{<>-–—*_•¿¡#"
WORD_EDGES = ".,!?;:…\"'“”‘’()[]{}<>*_`~"
# Every reference to shared history names a participant, or the last time; cheaper to look up than to search for.
_SHARING = frozenset(("i", "i've", "i'd", "we", "we've", "we'd", "you", "you've", "you'd", "my", "our", "your", "last"))


class TextSignals(NamedTuple):
    """The signals that come from the text alone; see ``schemas.vocabulary.router.Signals``."""

    prompt_token_count: int
    has_question_mark: bool
    interrogative_words: bool
    greeting_pattern: bool
    explicit_feedback: Literal["positive", "negative"] | None
    information_density: float
    implicit_reference: bool


BLANK = TextSignals(0, False, False, False, None, 0.0, False)
"""The signals of a text in which nothing is visible: the only ones with no tokens."""


def read_text(text: str) -> TextSignals:
    """Return the signals of a text.

    A token is a run of visible characters, counted in the inspected part. ``interrogative_words`` includes the question
    mark. ``greeting_pattern`` and positive ``explicit_feedback`` say what a text *is*: a request or a report behind
    the greeting or the thanks makes it that instead.
    """
    if _VISIBLE.search(text) is None:
        return BLANK
    folded = fold(text)
    words = folded.split()
    if not words:  # all that is visible lies in the middle, where nothing is read
        return BLANK._replace(prompt_token_count=1, information_density=1.0)
    unique = {word.strip(WORD_EDGES) or word for word in words}
    question_mark = _has_question_mark(folded)
    clauses = clauses_of(folded) if len(words) <= SOCIAL_WORDS else []
    return TextSignals(
        prompt_token_count=len(words),
        has_question_mark=question_mark,
        interrogative_words=question_mark or _opens_a_question(folded),
        greeting_pattern=_is_greeting(clauses),
        explicit_feedback=_feedback(clauses),
        information_density=round(len(unique) / len(words), 6),
        implicit_reference=not unique.isdisjoint(_SHARING) and phrases.IMPLICIT_REFERENCE.search(folded) is not None,
    )


def fold(text: str) -> str:
    """Return the inspected part of a text, case-folded, with plain apostrophes."""
    if len(text) > INSPECTED_CHARACTERS:
        text = f"{text[:OPENING_CHARACTERS]}\n{text[-CLOSING_CHARACTERS:]}"
    return text.casefold().replace("’", "'")


def clauses_of(folded: str) -> list[str]:
    """Return the clauses of a folded text, single spaces between words and no marks at their edges."""
    spaced = (" ".join(part.split()).strip(_EDGES) for part in _CLAUSE_END.split(folded))
    return [clause for clause in spaced if clause]


def _has_question_mark(folded: str) -> bool:
    if "?" in folded and _QUESTION_MARK.search(folded):
        return True
    return any(mark in folded for mark in _OTHER_QUESTION_MARKS)


def _opens_a_question(folded: str) -> bool:
    for part in _SENTENCE_END.split(folded):
        sentence = " ".join(part.split()).lstrip(_EDGES)
        if phrases.QUESTION_OPENING.match(sentence) or phrases.QUESTION_AFTER_COMMA.search(sentence):
            return True
    return False


def _is_social(clause: str) -> bool:
    if phrases.NAME.fullmatch(clause):
        return True
    if clause[0].isalnum() and not phrases.SOCIAL.match(clause):  # spares most texts the search of the whole clause
        return False
    left_over = phrases.SOCIAL.sub("", clause)
    return not any(map(str.isalnum, left_over)) or phrases.NAME_ADDRESSED.fullmatch(clause) is not None


def _is_comment(clause: str) -> bool:
    return phrases.COMMENT.match(clause) is not None and phrases.FURTHER.search(clause) is None


def _is_greeting(clauses: list[str]) -> bool:
    """Whether a greeting opens a text in which nothing else is said."""
    return bool(clauses) and phrases.GREETING_OPENING.match(clauses[0]) is not None and all(map(_is_social, clauses))


def _feedback(clauses: list[str]) -> Literal["positive", "negative"] | None:
    # Negative first: praise that is denied, and thanks before a complaint, are complaints.
    if any(map(phrases.NEGATIVE.match, clauses)):
        return "negative"
    if all(_is_social(clause) or _is_comment(clause) for clause in clauses) and any(
        map(phrases.POSITIVE.search, clauses)
    ):
        return "positive"
    return None
