"""The part of a long text that is looked at: its beginning, its end, and what stands around telling words.

The parts are chosen where instructions to a model are put: at either end, and where words of instruction occur. The
whole text is searched for these words, as they are and in every rewriting (``telling``); of the places that have any,
those with the most different ones come first, since an order has several ("ignore", "instructions", "system prompt")
where other texts repeat one. Places with several that are not read all the same are counted: whoever floods a text with
such words can push others out, and is told on by that count. Texts up to ``WHOLE`` characters are read whole; what is
encoded or rewritten in a text is looked for in an excerpt of ``DECODED``.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from actors.contract.text.judge.instruction_words import WORDS, Numbers, instruction_words_in

WHOLE = 49_152
"""Characters up to which a text is read whole; of a longer one less is read."""

DECODED = 16_384
"""The same for what is decoded, which costs several times as much a character."""

SEVERAL = 2
"""Different telling words that make a place one that should be read."""

_AROUND = 256
_HEAD, _TAIL, _PLACE = 4, 5, 1_024
"""Of the characters read, a fourth from the beginning, a fifth from the end, and a place for so many."""


class Excerpt(NamedTuple):
    """What is read of a text, and how many characters around telling words are not."""

    text: str
    unread: int


def excerpt(text: str) -> str:
    """Return a text of at most ``WHOLE`` characters, or the telling parts of a longer one, joined by line ends."""
    return excerpt_of(text).text


def excerpt_of(text: str, most: int = WHOLE) -> Excerpt:
    """Return what is read of a text, with what is left out of it; ``most`` characters are read whole."""
    return _of_long(text, most) if len(text) > most else Excerpt(text, 0)


@lru_cache(maxsize=8)
def _of_long(text: str, most: int) -> Excerpt:
    # Several actors read the same text, and searching it takes most of the time.
    head, last = most // _HEAD, len(text) - most // _TAIL
    places, unread = _chosen(_told(text), text, head, last, most // _PLACE, 2 * _AROUND)
    parts = [text[:head]]
    end = head
    for place in places:
        if place + _AROUND <= end:
            continue
        start, end = max(end, place - _AROUND), min(place + _AROUND, last)
        parts.append(text[start:end])
    return Excerpt("\n".join((*parts, text[last:])), unread)


@lru_cache(maxsize=4)
def _told(text: str) -> tuple[Numbers, Numbers]:
    """Return the telling words of a long text between the ends that any excerpt of it holds: searched once for all."""
    return instruction_words_in(text, DECODED // _HEAD, len(text) - DECODED // _TAIL)


def instruction_places(text: str, begin: int, end: int, most: int, stretch: int) -> tuple[list[int], int]:
    """Return where to read a text between two places: at most so many places, ascending, one for each stretch.

    Also how many characters of stretches with several telling words are not among them.
    """
    return _chosen(instruction_words_in(text, begin, end), text, begin, end, most, stretch)


def _chosen(
    told: tuple[Numbers, Numbers], text: str, begin: int, end: int, most: int, stretch: int
) -> tuple[list[int], int]:
    within = (told[0] >= begin) & (told[0] < end)
    places, words = told[0][within], told[1][within]
    if not len(places):
        return [], 0
    stretches = (places - begin) // stretch
    numbered = np.flatnonzero(np.bincount(stretches))
    rows = np.searchsorted(numbered, stretches)
    # Each word counts once for a stretch.
    has = np.zeros((len(numbered), len(WORDS)), dtype=bool)
    has[rows, words] = True
    counts = has.sum(axis=1)
    firsts = np.full(len(numbered), len(text))
    np.minimum.at(firsts, rows, places)
    if len(numbered) <= most:
        return firsts.tolist(), 0
    ranked: list[int] = []
    for count in range(len(WORDS), 0, -1):
        equal = np.flatnonzero(counts == count).tolist()
        room = most - len(ranked)
        # Of equals some from everywhere: what comes first must not hide what comes later.
        ranked += equal if len(equal) <= room else [equal[(2 * n + 1) * len(equal) // (2 * room)] for n in range(room)]
        if len(ranked) >= most:
            break
    unread = int((counts >= SEVERAL).sum()) - int((counts[ranked] >= SEVERAL).sum())
    return firsts[sorted(ranked)].tolist(), unread * stretch
