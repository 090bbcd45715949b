"""Many texts as few: what a judge of texts reads of an input, however many parts it has.

Judging a text takes as long as reading it and a fixed while besides, so that neither a thousand parts nor long ones can
each be judged by themselves. Up to ``most`` characters they are. Beyond, only the first is; every other part gets an
equal share of what is left (what short parts leave goes to the longer ones), so that no part can use up what another
needs; what is read of a longer part is its beginning, its end and what stands around telling words; and the pieces are
laid together on sheets, each judged as one text.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from actors.contract.text.excerpt import WHOLE, Excerpt, instruction_places

SHEET = 4_096
"""Characters that pieces are laid together to: a text below the length from which judges hold texts to be long."""

PER_TEXT = 256
"""What judging one text more takes, in characters read."""

_STRETCH = 512
"""Characters read around a telling word."""


class JoinedParts(NamedTuple):
    """A text to judge, and the places of the parts that it stands for, ascending.

    ``unread`` counts the characters around telling words of these parts that are not in it.
    """

    text: str
    places: tuple[int, ...]
    unread: int = 0


def joined_parts(texts: Sequence[str], most: int) -> tuple[JoinedParts, ...]:
    """Return what to judge of some texts.

    Args:
        texts: Distinct texts; the first is what the user said.
        most: Characters to read in all; each text by itself counts for ``PER_TEXT`` more.
    """
    lengths = [min(len(text), WHOLE) for text in texts]
    if sum(lengths) + PER_TEXT * len(texts) <= most or len(texts) <= 2:
        return tuple(JoinedParts(text, (place,)) for place, text in enumerate(texts))
    left = max(most - lengths[0] - PER_TEXT, most // 2)
    # A line end each lies between pieces.
    had = shares([length + 1 for length in lengths[1:]], left)
    pieces = [_piece(text, max(share - 1, 0)) for text, share in zip(texts[1:], had, strict=True)]
    return JoinedParts(texts[0], (0,)), *_laid_together(pieces, 1)


def shares(lengths: Sequence[int], most: int) -> tuple[int, ...]:
    """Return how much of each length is had when all have ``most`` in all: equal shares, none beyond its length."""
    left, level = most, 0
    for taken, length in enumerate(sorted(lengths)):
        level = left // (len(lengths) - taken)
        if length > level:
            break
        level = length
        left -= length
    return tuple(min(length, level) for length in lengths)


def _laid_together(pieces: Sequence[Excerpt], first: int) -> Iterator[JoinedParts]:
    begin, size = 0, 0
    for place, piece in enumerate(pieces):
        if begin < place and size + len(piece.text) > SHEET:
            yield _sheet(pieces[begin:place], first + begin)
            begin, size = place, 0
        size += len(piece.text) + 1
    yield _sheet(pieces[begin:], first + begin)


def _sheet(pieces: Sequence[Excerpt], first: int) -> JoinedParts:
    text = "\n".join(piece.text for piece in pieces)
    return JoinedParts(text, tuple(range(first, first + len(pieces))), sum(piece.unread for piece in pieces))


def _piece(text: str, share: int) -> Excerpt:
    """Return what is read of a text: its beginning, what stands around telling words, its end."""
    if len(text) <= share:
        return Excerpt(text, 0)
    stretch = max(1, min(share // 2, _STRETCH))
    spots, unread = instruction_places(text, share // 4, len(text) - share // 4, share // 2 // stretch, stretch)
    room = max(share - len(spots) * (stretch + 1) - 1, 0)
    end, last = (room + 1) // 2, len(text) - room // 2
    parts = [text[:end]]
    for spot in spots:
        start = max(end, spot - stretch // 4)
        end = max(start, min(start + stretch, last))
        parts.append(text[start:end])
    return Excerpt("\n".join((*parts, text[last:])), unread)
