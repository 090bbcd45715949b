"""The known name that is nearest to one that somebody mistyped, for error messages. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_CHARACTERS = 200
"""How many characters of a name from outside are compared: a longer one is no mistyped name, and takes long."""


def nearest_name(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known name most similar to ``name``; empty if none has the similarity ``cutoff``, in [0, 1]."""
    return next(iter(get_close_matches(name[:_MOST_CHARACTERS], list(known), n=1, cutoff=cutoff)), "")


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the nearest known name, or all of them if none is near."""
    names = list(known)
    near = nearest_name(name, names)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(names)}"
