"""The part of a long text that is read: its beginning, its end, and the surroundings of instruction words.

Instruction words are words typical of instructions to a model. Such instructions are usually at either end of a text,
or contain these words. The whole text is searched for the words, as they are and in every rewriting
(``instruction_words``). Stretches with the most different words are read first: an instruction has several ("ignore",
"instructions", "system prompt"), while other texts repeat one. Stretches with several words that still are not read are
counted. Someone may flood a text with such words to push an instruction out of the excerpt; the count reveals that.
Texts of up to ``WHOLE`` characters are read whole. Encoded or rewritten parts are looked for in an excerpt of
``MOST_FOR_DECODING`` characters.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from actors.contract.text.judge.instruction_words import WORDS, Numbers, instruction_words_in

WHOLE = 49_152
"""Up to this many characters a text is read whole; of a longer one, at most this many are read."""

MOST_FOR_DECODING = 16_384
"""This limit for a text that is searched for encoded parts: decoding costs several times as much for each character."""

SEVERAL = 2
"""A stretch with this many different instruction words should be read."""

_AROUND = 256
"""Characters that are read on either side of an instruction word."""

_HEAD, _TAIL, _PER_STRETCH = 4, 5, 1_024
"""Of the characters read, a fourth are the beginning, a fifth the end; one stretch is read for each 1,024 of them."""


class Excerpt(NamedTuple):
    """The part of a text that is read, and the number of characters around instruction words that are not."""

    text: str
    unread: int


def excerpt(text: str) -> str:
    """Return a text of at most ``WHOLE`` characters, or the excerpt of a longer one, joined by line ends."""
    return excerpt_of(text).text


def excerpt_of(text: str, most: int = WHOLE) -> Excerpt:
    """Return the excerpt of a text; up to ``most`` characters are read whole."""
    return _of_long(text, most) if len(text) > most else Excerpt(text, 0)


@lru_cache(maxsize=8)
def _of_long(text: str, most: int) -> Excerpt:
    # Cached: several actors read the same text, and most of the time is the search.
    head, last = most // _HEAD, len(text) - most // _TAIL
    starts, unread = _chosen(_inner_instruction_words(text), text, head, last, most // _PER_STRETCH, 2 * _AROUND)
    parts = [text[:head]]
    end = head
    for word_start in starts:
        if word_start + _AROUND <= end:
            continue
        start, end = max(end, word_start - _AROUND), min(word_start + _AROUND, last)
        parts.append(text[start:end])
    return Excerpt("\n".join((*parts, text[last:])), unread)


@lru_cache(maxsize=4)
def _inner_instruction_words(text: str) -> tuple[Numbers, Numbers]:
    """Return the instruction words between the two ends that every excerpt includes; cached for all excerpts."""
    return instruction_words_in(text, MOST_FOR_DECODING // _HEAD, len(text) - MOST_FOR_DECODING // _TAIL)


def instruction_positions(text: str, begin: int, end: int, most: int, stretch: int) -> tuple[list[int], int]:
    """Return where to read a text between two positions: at most ``most`` positions, ascending, one in each stretch.

    Also returns the number of characters of stretches with several instruction words that are not among them.
    """
    return _chosen(instruction_words_in(text, begin, end), text, begin, end, most, stretch)


def _chosen(
    found: tuple[Numbers, Numbers], text: str, begin: int, end: int, most: int, stretch: int
) -> tuple[list[int], int]:
    """Return where each chosen stretch has its first instruction word, and how many characters of others are unread.

    ``found`` are the positions of instruction words and their numbers in ``WORDS``.
    """
    within = (found[0] >= begin) & (found[0] < end)
    positions, words = found[0][within], found[1][within]
    if not len(positions):
        return [], 0
    stretches = (positions - begin) // stretch
    numbered = np.flatnonzero(np.bincount(stretches))
    rows = np.searchsorted(numbered, stretches)
    # Each word counts once in a stretch.
    occurs = np.zeros((len(numbered), len(WORDS)), dtype=bool)
    occurs[rows, words] = True
    counts = occurs.sum(axis=1)
    firsts = np.full(len(numbered), len(text))
    np.minimum.at(firsts, rows, positions)
    if len(numbered) <= most:
        return firsts.tolist(), 0
    ranked: list[int] = []
    for count in range(len(WORDS), 0, -1):
        equal = np.flatnonzero(counts == count).tolist()
        room = most - len(ranked)
        # Among equal stretches, a sample from the whole text: what comes first must not hide what comes later.
        ranked += equal if len(equal) <= room else [equal[(2 * n + 1) * len(equal) // (2 * room)] for n in range(room)]
        if len(ranked) >= most:
            break
    unread = int((counts >= SEVERAL).sum()) - int((counts[ranked] >= SEVERAL).sum())
    return firsts[sorted(ranked)].tolist(), unread * stretch
