"""How much disguised text was not decoded: the decoder of each form limits its work and counts what it leaves out.

A disguise is an encoding, a cipher, letters apart and the like.
"""

from typing import NamedTuple


class Undecoded(NamedTuple):
    """The number of characters that may be disguised but that a decoder did not examine."""

    characters: int
