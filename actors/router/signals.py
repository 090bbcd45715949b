"""The signals that the router reads from a text. Pure; the work is bounded.

Texts of up to ``INSPECTED_CHARACTERS`` are read whole. Of a longer text the beginning and the end are read, where
people greet, ask and refer. Its middle (a pasted log, a document) changes no signal, so the cost of a decision does not
grow with it.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, NamedTuple

from actors.router import phrases

OPENING_CHARACTERS = 2000
"""Characters read at the beginning of a long text."""

CLOSING_CHARACTERS = 500
"""Characters read at the end of a long text."""

INSPECTED_CHARACTERS = OPENING_CHARACTERS + CLOSING_CHARACTERS
"""Length up to which a text is read whole."""

SOCIAL_WORDS = 40
"""A text with more words than this is never only a greeting, or only feedback."""

# Besides white space: control characters, and invisible format characters that chat clients leave in texts.
_VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe0f\ufeff]"
)
# A question mark inside a word is part of a URL or of code; scripts without spaces have marks of their own.
_QUESTION_MARK = re.compile(r"\?(?=!|[\"'”’)\]}*_`.,;:]{0,2}(?:\s|$))")
_OTHER_QUESTION_MARKS = "？؟⁇⁈‽"
# The single class at the start lets the search jump from mark to mark, without trying each character.
_SENTENCE_END = re.compile(r"[.!?…;:\n。？！](?:(?<=[\n。？！])|(?=[\"'”’)\]]?\s))")
_CLAUSE_END = re.compile(r"[,.!?…;:\n()\[\]\"“”—–~*。，？！]+|\s-+\s|\sbut\s")
_EDGES = " \t\"'“”‘’([{<>-–—*_•¿¡#"
WORD_EDGES = ".,!?;:…\"'“”‘’()[]{}<>*_`~"
"""Marks that are removed from the ends of a word; ``_EDGES``: from those of a sentence or clause."""

# Up to this many characters, searching the whole text costs less than finding out where to search.
_SEARCHED_WHOLE = 200
_INNER_WORD = re.compile(r"\w+")
# Every reference to shared history contains one of these words; a set look-up is cheaper than a search.
_SHARED_HISTORY_WORDS = frozenset(
    ("i", "i've", "i'd", "we", "we've", "we'd", "you", "you've", "you'd", "my", "our", "your", "last")
)


class TextSignals(NamedTuple):
    """The signals that come from the text alone; ``read_text`` says what sets them.

    ``interrogative_words``: it asks something. ``explicit_feedback``: it praises or criticises an answer.
    ``information_density`` is the share of distinct words. ``implicit_reference``: it refers to what was said or done
    before.
    """

    prompt_token_count: int
    has_question_mark: bool
    interrogative_words: bool
    greeting_pattern: bool
    explicit_feedback: Literal["positive", "negative"] | None
    information_density: float
    implicit_reference: bool


BLANK = TextSignals(0, False, False, False, None, 0.0, False)
"""The signals of a text without visible characters: the only ones without tokens."""


def read_text(text: str) -> TextSignals:
    """Return the signals of a text.

    A token is a run of visible characters, counted in the inspected part. ``interrogative_words`` includes the question
    mark. ``greeting_pattern`` and positive ``explicit_feedback`` describe the whole text: if a request or a report
    follows the greeting or the thanks, they are not set.
    """
    if _VISIBLE.search(text) is None:
        return BLANK
    folded = fold(text)
    lines = [line.split() for line in folded.split("\n")]
    words = [*chain.from_iterable(lines)]
    if not words:  # all that is visible lies in the middle, where nothing is read
        return BLANK._replace(prompt_token_count=1, information_density=1.0)
    distinct = {*words}
    marked = [word for word in distinct if not word.isalnum()]
    stripped = [word.strip(WORD_EDGES) or word for word in marked]
    unique = distinct.difference(marked).union(stripped)
    question_mark = _has_question_mark(folded)
    clauses = clauses_of(folded) if len(words) <= SOCIAL_WORDS else []
    return TextSignals(
        prompt_token_count=len(words),
        has_question_mark=question_mark,
        interrogative_words=question_mark or _opens_a_question(_single_spaced(folded, lines)),
        greeting_pattern=_is_greeting(clauses),
        explicit_feedback=_feedback(clauses),
        information_density=round(len(unique) / len(words), 6),
        implicit_reference=_refers_to_shared_history(folded, unique, stripped),
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


def _single_spaced(folded: str, lines: Iterable[Iterable[str]]) -> str:
    """Return the words of a text's lines separated by single spaces, with a space at the end if the text had one."""
    spaced = "\n".join(map(" ".join, lines))
    return f"{spaced} " if folded[-1].isspace() else spaced


def _opens_a_question(spaced: str) -> bool:
    sentences = [part.rstrip().lstrip(_EDGES) for part in _SENTENCE_END.split(spaced)]
    if any(map(phrases.QUESTION_OPENING.match, sentences)):
        return True
    # One search of the whole text makes a search of each sentence unnecessary for most texts.
    return phrases.QUESTION_AFTER_COMMA.search(spaced) is not None and any(
        map(phrases.QUESTION_AFTER_COMMA.search, sentences)
    )


def _refers_to_shared_history(folded: str, unique: set[str], marked: Iterable[str]) -> bool:
    """Whether a reference is found; each is searched for only near the words that it must contain.

    ``marked`` are words that may be several words, joined by dashes or slashes.
    """
    if unique.isdisjoint(_SHARED_HISTORY_WORDS):
        return False
    joined = _INNER_WORD.findall(" ".join(word for word in marked if not word.isalnum()))
    words = unique.union(joined)
    return any(
        reference.pattern.search(folded, start, end)
        for reference in phrases.IMPLICIT_REFERENCES
        if not reference.words.isdisjoint(words)
        for start, end in _spans_of(reference, words, folded)
    )


def _spans_of(reference: phrases.Reference, words: set[str], folded: str) -> list[tuple[int, int]]:
    """Return stretches, in order and without overlaps, that contain every match of a reference.

    Each ends after a space, or at the end of the text: the search treats its end as the end of the text, so no word may
    be cut there.
    """
    if len(folded) <= _SEARCHED_WHOLE:
        return [(0, len(folded))]
    spans: list[tuple[int, int]] = []
    for position in sorted(
        position for word in reference.words & words for position in _positions_of(word + reference.then, folded)
    ):
        if reference.after and not folded.endswith(reference.after, 0, position):
            continue
        start, end = (
            max(0, position - reference.before),
            folded.find(" ", position + phrases.REFERENCE_LENGTH) + 1 or len(folded),
        )
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _positions_of(phrase: str, text: str) -> Iterator[int]:
    position = text.find(phrase)
    while position >= 0:
        yield position
        position = text.find(phrase, position + 1)


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
    """Whether a text opens with a greeting and says nothing else."""
    return bool(clauses) and phrases.GREETING_OPENING.match(clauses[0]) is not None and all(map(_is_social, clauses))


def _feedback(clauses: list[str]) -> Literal["positive", "negative"] | None:
    # Negative first: negated praise, and thanks before a complaint, are complaints.
    if any(map(phrases.NEGATIVE.match, clauses)):
        return "negative"
    if all(_is_social(clause) or _is_comment(clause) for clause in clauses) and any(
        map(phrases.POSITIVE.search, clauses)
    ):
        return "positive"
    return None
