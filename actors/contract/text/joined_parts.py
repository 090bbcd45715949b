"""Joins the many parts of an input into few texts for a judge (a trained classifier of texts).

Judging a text takes time for its length and a fixed time besides. So neither a thousand parts nor many long parts can
each be judged separately. If all parts fit into ``most`` characters, each is judged separately, otherwise only the
first part. Every other part gets an equal share of the remaining characters; what short parts leave over goes to longer
ones. So no part can use up the share of another. Of a part longer than its share, the beginning, the end and the
surroundings of instruction words (words typical of instructions to a model) are read. The pieces are joined into larger
texts, each judged as one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from actors.contract.text.excerpt import WHOLE, Excerpt, instruction_positions

MOST_JOINED = 4_096
"""Most characters of a joined text, which judges do not treat as a long one yet."""

PER_TEXT = 256
"""The fixed cost of judging one more text, in characters."""

_STRETCH = 512
"""Characters that are read around an instruction word."""


class JoinedParts(NamedTuple):
    """A text to judge, and the indexes of the parts in it, ascending.

    ``unread`` is the number of characters around instruction words of these parts that are not in the text.
    """

    text: str
    indexes: tuple[int, ...]
    unread: int = 0


def joined_parts(texts: Sequence[str], most: int) -> tuple[JoinedParts, ...]:
    """Return the texts to judge for the parts of an input.

    Args:
        texts: Distinct texts; the first is what the user said.
        most: Characters to read in total; each separate text counts ``PER_TEXT`` more.
    """
    lengths = [min(len(text), WHOLE) for text in texts]
    if sum(lengths) + PER_TEXT * len(texts) <= most or len(texts) <= 2:
        return tuple(JoinedParts(text, (index,)) for index, text in enumerate(texts))
    left = max(most - lengths[0] - PER_TEXT, most // 2)
    # A line end separates the pieces.
    allotted = shares([length + 1 for length in lengths[1:]], left)
    pieces = [_piece(text, max(share - 1, 0)) for text, share in zip(texts[1:], allotted, strict=True)]
    return JoinedParts(texts[0], (0,)), *_joined(pieces, 1)


def shares(lengths: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the share of each length out of ``most`` in total: equal shares, but none larger than its length."""
    left, level = most, 0
    for served, length in enumerate(sorted(lengths)):
        level = left // (len(lengths) - served)
        if length > level:
            break
        level = length
        left -= length
    return tuple(min(length, level) for length in lengths)


def _joined(pieces: Sequence[Excerpt], first: int) -> Iterator[JoinedParts]:
    begin, size = 0, 0
    for index, piece in enumerate(pieces):
        if begin < index and size + len(piece.text) > MOST_JOINED:
            yield _as_one(pieces[begin:index], first + begin)
            begin, size = index, 0
        size += len(piece.text) + 1
    yield _as_one(pieces[begin:], first + begin)


def _as_one(pieces: Sequence[Excerpt], first: int) -> JoinedParts:
    text = "\n".join(piece.text for piece in pieces)
    return JoinedParts(text, tuple(range(first, first + len(pieces))), sum(piece.unread for piece in pieces))


def _piece(text: str, share: int) -> Excerpt:
    """Return the excerpt of a part: its beginning, the surroundings of instruction words, its end."""
    if len(text) <= share:
        return Excerpt(text, 0)
    stretch = max(1, min(share // 2, _STRETCH))
    word_starts, unread = instruction_positions(
        text, share // 4, len(text) - share // 4, share // 2 // stretch, stretch
    )
    room = max(share - len(word_starts) * (stretch + 1) - 1, 0)
    end, last = (room + 1) // 2, len(text) - room // 2
    parts = [text[:end]]
    for word_start in word_starts:
        start = max(end, word_start - stretch // 4)
        end = max(start, min(start + stretch, last))
        parts.append(text[start:end])
    return Excerpt("\n".join((*parts, text[last:])), unread)
