"""The parts of an input as they are read: few ones each by itself, many as one text.

A call costs some tenth of a millisecond however short the text is, so that a thousand parts could not be read one by
one. Where they are laid together, something stands between them that no signature and no encoded run holds.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

TEXT = "text"
"""The name of the part that the user said."""

MOST_APART = 16
"""Layers that are read each by itself."""

_BETWEEN = "\n~^~^~\n"


class JoinedParts(NamedTuple):
    """A text to read, and the parts on it: their names, and where each begins."""

    text: str
    parts: tuple[str, ...]
    begins: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its part, or its first and last ones."""
        return self.parts[0] if len(self.parts) == 1 else f"{self.parts[0]}..{self.parts[-1]}"

    def part_at(self, place: int) -> tuple[str, int]:
        """Return the part that a character is in, and where that begins."""
        number = max(0, bisect_right(self.begins, place) - 1)
        return self.parts[number], self.begins[number]


def joined_parts(parts: Sequence[tuple[str, str]]) -> tuple[JoinedParts, ...]:
    """Return the sheets of some parts, each with its name."""
    if len(parts) <= MOST_APART:
        return tuple(JoinedParts(text, (name,), (0,)) for name, text in parts)
    begins = accumulate((len(text) + len(_BETWEEN) for _, text in parts[:-1]), initial=0)
    return (JoinedParts(_BETWEEN.join(text for _, text in parts), tuple(name for name, _ in parts), tuple(begins)),)
