"""Checks that a pattern of public subjects matches some event: otherwise its caller would wait for ever. Pure."""

from collections.abc import Sequence
from difflib import get_close_matches

from schemas.catalogue import CATALOGUE
from schemas.event import ROOT

_MAX_SUGGESTIONS = 3
_LEAST_SIMILARITY = 0.75
"""Similarity that a suggested subject has at least, by ``difflib``: 0 to 1."""

_MAX_PATTERN_CHARACTERS = 100
"""How many characters of a pattern a message repeats at most."""

_LIST_ALL = "`neuraxis schema subjects` lists all"


def unknown_topic(pattern: str) -> str:
    """Return an error if no event of this release matches a pattern, with the nearest subjects; else an empty string.

    ``*`` stands for one token, and ``>`` for one or more tokens at the end, as in NATS.
    """
    tokens = pattern.split(".")
    topics = [topic.split(".") for topic in CATALOGUE]
    if any(_matches(tokens, topic) for topic in topics):
        return ""
    known = {
        _below_root(prefix) for topic in topics for prefix in _suggestions(topic, wildcard=tokens[-1] in ("*", ">"))
    }
    asked = _below_root([*tokens[:-1], ">"] if tokens[-1] == "*" else tokens)
    near = get_close_matches(asked, sorted(known), n=_MAX_SUGGESTIONS, cutoff=_LEAST_SIMILARITY)
    hint = f"did you mean {', '.join(f'{ROOT}.{each}' for each in near)}?" if near else _LIST_ALL
    return f"no event of this release is of the subject {pattern[:_MAX_PATTERN_CHARACTERS]}: {hint}"


def _suggestions(topic: Sequence[str], *, wildcard: bool) -> list[Sequence[str]]:
    """Return the patterns to suggest for a subject: itself, or, for a ``wildcard``, its prefixes, each with ``>``."""
    return [(*topic[:count], ">") for count in range(2, len(topic))] if wildcard else [topic]


def _below_root(tokens: Sequence[str]) -> str:
    return ".".join(tokens[1:] if tokens[0] == ROOT else tokens)


def _matches(pattern: Sequence[str], topic: Sequence[str]) -> bool:
    if pattern[-1] == ">":
        pattern, topic = pattern[:-1], topic[: len(pattern) - 1] if len(topic) >= len(pattern) else ()
    return len(pattern) == len(topic) and all(each in ("*", token) for each, token in zip(pattern, topic, strict=True))
