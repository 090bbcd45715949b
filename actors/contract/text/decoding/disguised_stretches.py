"""The parts of a long text around the positions where a form of disguise was found: the rest of the text is plain.

A disguise is an encoding, a cipher, letters apart and the like. The decoder of each form limits its work, and counts
what it leaves out.
"""

from collections.abc import Iterable
from typing import NamedTuple

WHOLE = 4_096
"""Up to this many characters a text is decoded as a whole."""

AROUND = 256
"""Characters on either side of a match that are decoded with it: an instruction may be disguised only in part."""


def stretches_of(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the surroundings of some ascending spans of a text, one stretch on each line; a short text whole."""
    if len(text) <= WHOLE:
        return text
    parts: list[str] = []
    begin = end = -1
    for start, stop in spans:
        if end >= 0 and start - AROUND > end:
            parts.append(text[begin:end])
            begin = -1
        begin = max(0, start - AROUND) if begin < 0 else begin
        end = min(len(text), stop + AROUND)
    if end >= 0:
        parts.append(text[begin:end])
    return "\n".join(parts)


class Undecoded(NamedTuple):
    """The number of characters that may be disguised but that a decoder did not examine."""

    characters: int
