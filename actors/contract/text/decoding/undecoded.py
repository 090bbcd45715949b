"""What a form of disguise was seen in, and not undone: each form bounds its work, and says what that leaves out."""

from typing import NamedTuple


class Undecoded(NamedTuple):
    """Characters that a form did not look at, among those that may be in it."""

    characters: int
