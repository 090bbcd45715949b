"""Joins the layers of an input for reading: a few are read separately, many as one text.

A call costs about a tenth of a millisecond for even the shortest text, so a thousand layers cannot be read one by one.
Joined layers are separated by text that occurs in no signature (a phrase of attacks) and no encoded run.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

TEXT = "text"
"""The name of the part that is the user's text."""

MOST_SEPARATE = 16
"""Most layers that are read separately."""

_SEPARATOR = "\n~\U0010ffff~\n"
"""The separator of joined layers. Its noncharacter counts as a letter, so no signature is found across it."""


class JoinedText(NamedTuple):
    """A text to read, and the parts in it: their names, and where each begins."""

    text: str
    parts: tuple[str, ...]
    begins: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of its part, or of its first and last ones."""
        return self.parts[0] if len(self.parts) == 1 else f"{self.parts[0]}..{self.parts[-1]}"

    def part_at(self, position: int) -> tuple[str, int]:
        """Return the part that contains a character, and where the part begins."""
        number = max(0, bisect_right(self.begins, position) - 1)
        return self.parts[number], self.begins[number]


def join_layers(parts: Sequence[tuple[str, str]]) -> tuple[JoinedText, ...]:
    """Return the texts to read for some layers, each given with its name."""
    if len(parts) <= MOST_SEPARATE:
        return tuple(JoinedText(text, (name,), (0,)) for name, text in parts)
    begins = accumulate((len(text) + len(_SEPARATOR) for _, text in parts[:-1]), initial=0)
    return (JoinedText(_SEPARATOR.join(text for _, text in parts), tuple(name for name, _ in parts), tuple(begins)),)
