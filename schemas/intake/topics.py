"""Which public subjects a pattern from outside can mean: one that no event has would be waited for in vain. Pure."""

from collections.abc import Sequence
from difflib import get_close_matches

from schemas.catalogue import CATALOGUE
from schemas.event import ROOT

_NEAREST, _NEAR = 3, 0.75


def unknown_topic(pattern: str) -> str:
    """Return why no event of this release is of a pattern of public subjects, with the nearest that there are.

    Empty where one is. ``*`` stands for a token and ``>`` for one or more at the end, as in NATS.
    """
    tokens = pattern.split(".")
    topics = [topic.split(".") for topic in CATALOGUE]
    if any(_matches(tokens, topic) for topic in topics):
        return ""
    known = {_below_root(prefix) for topic in topics for prefix in _alike(topic, wide=tokens[-1] in ("*", ">"))}
    asked = _below_root([*tokens[:-1], ">"] if tokens[-1] == "*" else tokens)
    near = get_close_matches(asked, sorted(known), n=_NEAREST, cutoff=_NEAR)
    meant = f"did you mean {', '.join(f'{ROOT}.{each}' for each in near)}?" if near else _ALL
    return f"no event of this release is of the subject {pattern[:_LONGEST]}: {meant}"


_LONGEST = 100
"""Characters of a pattern that a message repeats."""

_ALL = "`neuraxis schema subjects` lists all"


def _alike(topic: Sequence[str], *, wide: bool) -> list[Sequence[str]]:
    """Return what could have been meant instead: a subject, or all below each of its beginnings."""
    return [(*topic[:count], ">") for count in range(2, len(topic))] if wide else [topic]


def _below_root(tokens: Sequence[str]) -> str:
    return ".".join(tokens[1:] if tokens[0] == ROOT else tokens)


def _matches(pattern: Sequence[str], topic: Sequence[str]) -> bool:
    if pattern[-1] == ">":
        pattern, topic = pattern[:-1], topic[: len(pattern) - 1] if len(topic) >= len(pattern) else ()
    return len(pattern) == len(topic) and all(each in ("*", token) for each, token in zip(pattern, topic, strict=True))
