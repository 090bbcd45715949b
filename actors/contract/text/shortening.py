"""Shortens texts: how many tokens a text has, and which parts of it are kept. Pure.

Both ends of a text and the questions between them are kept. A question may be at the end of pasted material, before it,
or between two parts of it; without the question the rest is useless. A mark with the length replaces each part that is
left out, so that a reader knows that text is missing.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from schemas.effectors.model_calls import Shortened

CHARACTERS_PER_TOKEN = 4
"""Characters per token of ASCII text; no text has more characters per token than this."""

CUT = " […]"
"""The mark at the end of a shortened text, where there is no room to state the length."""

Size = Callable[[str], int]
"""Measures a text, in tokens or characters; for two joined texts the result is at most the sum."""

Span = tuple[int, int]
"""The start and end of a part of a text."""

_LEAST_BOTH_ENDS = 48
"""With less room than this only the beginning is kept: both ends would be a few words each."""

_MOST_QUESTIONS, _QUESTION_CHARACTERS, _EXAMINED = 3, 400, 200
"""Most questions that are kept, most characters of each, and most question marks (the last ones) that are examined."""

_NEAR = 24
"""Characters from a cut within which the end of a word is looked for."""

# A question mark that ends a sentence; a line that is one question; a line that begins with "Question:" or the like.
_QUESTION = re.compile(r"[?？؟](?=[\s\"'”’»)\]*_]|$)")
_QUESTION_LINE = re.compile(r"^[^\n]{3,400}[?？؟][\"'”’»)]*[ \t]*$", re.M)
_LABELLED_LINE = re.compile(
    r"^[ \t]*(?:my )?(?:question|task|request|instruction|frage|pregunta|pergunta|aufgabe)\b[^\n:]{0,20}[:：].*",
    re.I | re.M,
)
_SENTENCE_END = re.compile(r"[.!?。！？؟]\s+|\n")


def estimate(text: str) -> int:
    """Return the approximate number of tokens of a text, where no tokenizer is available.

    The estimate is high: four ASCII characters count as a token, as in English text, and every other character counts
    as one, as in the scripts that tokenizers split most finely. For two joined texts it is at most the sum.
    """
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // CHARACTERS_PER_TOKEN) + len(text) - plain


def shorten(text: str, most: int, size: Size = estimate) -> Shortened:
    """Return a text of at most ``most`` tokens (or units of ``size``), and how much of the original it holds.

    The whole text if it fits; otherwise both ends and the questions between them, with a mark for each part left out.
    With little room only the beginning is kept, and with next to none nothing.
    """
    if len(text) <= CHARACTERS_PER_TOKEN * most and size(text) <= most:
        return Shortened(text, len(text), len(text))
    mark = size(_mark(len(text)))
    if most < max(_LEAST_BOTH_ENDS, 4 * mark):
        return _beginning(text, most, size)
    spans = _ends(text, most - mark, size)
    questions = _kept_questions(text, spans[0][1], spans[1][0], (most - mark) // 4, mark, size)
    if questions:
        spent = sum(size(text[start:end]) + mark for start, end in questions)
        head, tail = _ends(text, most - mark - spent, size)
        # The ends are shorter now, but do not overlap the questions, which were between the longer ends.
        spans = [head, *questions, tail]
    return _joined(text, spans)


def shares(needs: Sequence[int], room: int) -> list[int]:
    """Return how much room each need gets: small ones all they need, the others equal shares."""
    given, left = [0] * len(needs), max(0, room)
    for served, index in enumerate(sorted(range(len(needs)), key=lambda each: needs[each])):
        given[index] = min(needs[index], left // (len(needs) - served))
        left -= given[index]
    return given


def _joined(text: str, spans: Sequence[Span]) -> Shortened:
    parts, last = [], 0
    for start, end in spans:
        if start > last:
            parts.append(_mark(start - last))
        parts.append(text[start:end])
        last = end
    return Shortened("".join(parts), len(text), sum(end - start for start, end in spans))


def _mark(left_out: int) -> str:
    return f"\n[… {left_out:,} characters left out …]\n"


def _beginning(text: str, most: int, size: Size) -> Shortened:
    room = most - size(CUT)
    if room <= 0:
        return Shortened("", len(text), 0)
    shown = text[: _fitting(text, room, size)].rstrip()
    return Shortened(shown + CUT, len(text), len(shown))


def _ends(text: str, room: int, size: Size) -> list[Span]:
    half = room // 2
    head = _fitting(text, half, size)
    tail = len(text) - _fitting(text[-CHARACTERS_PER_TOKEN * half - 1 :][::-1], half, size)
    # Cut at the end of a word if there is one nearby.
    blank = max(text.rfind(" ", max(0, head - _NEAR), head), text.rfind("\n", max(0, head - _NEAR), head))
    head = blank if blank > 0 else head
    tail = next((at + 1 for at in range(tail, min(tail + _NEAR, len(text))) if text[at].isspace()), tail)
    return [(0, head), (tail, len(text))]


def _fitting(text: str, room: int, size: Size) -> int:
    """Return how many characters of a text's beginning fit; reads no more than could fit."""
    window = text[: CHARACTERS_PER_TOKEN * room + 1]
    return bisect_right(range(len(window) + 1), room, key=lambda length: size(window[:length])) - 1


def _kept_questions(text: str, begin: int, end: int, room: int, mark: int, size: Size) -> list[Span]:
    """Return the questions in the middle of a text, in order; lines of their own are preferred, then later ones."""
    ranked = sorted(_questions(text, begin, end), key=lambda span: (_stands_alone(text, span), span[0]), reverse=True)
    kept: list[Span] = []
    for start, stop in ranked:
        cost = size(text[start:stop]) + mark
        if cost <= room and len(kept) < _MOST_QUESTIONS and all(stop <= first or start >= last for first, last in kept):
            room -= cost
            kept.append((start, stop))
    return sorted(kept)


def _questions(text: str, begin: int, end: int) -> Iterator[Span]:
    found = [match.end() for match in _QUESTION.finditer(text, begin, end)][-_EXAMINED:]
    for stop in found:
        start = max(begin, stop - _QUESTION_CHARACTERS)
        for before in _SENTENCE_END.finditer(text, start, stop - 1):
            start = before.end()
        yield start, stop
    for pattern in (_QUESTION_LINE, _LABELLED_LINE):
        lines = [match.span() for match in pattern.finditer(text, begin, end)][-_EXAMINED:]
        yield from ((start, min(stop, start + _QUESTION_CHARACTERS)) for start, stop in lines)


def _stands_alone(text: str, span: Span) -> bool:
    return text[max(0, span[0] - 1) : span[0]] in ("", "\n") and text[span[1] : span[1] + 1] in ("", "\n")
