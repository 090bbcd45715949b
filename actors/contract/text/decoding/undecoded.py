"""A report of disguised text that was not decoded: each form limits its work and says how much that leaves out."""

from typing import NamedTuple


class Undecoded(NamedTuple):
    """The number of characters that a form may contain but that it did not examine."""

    characters: int
