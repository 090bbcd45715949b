"""The assignments of ``--set``: each key once where a person writes them, the last where a set adds its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from schemas.settings.nested_values import leaves

SET = "--set"


def key_of(assignment: str) -> str:
    """Return the key of ``SECTION.KEY=VALUE``, for comparisons: a section and its keys are written in any case.

    Names deeper inside stay as they are: agents or receivers may differ in nothing but their case.
    """
    section, first_dot, rest = assignment.partition("=")[0].partition(".")
    key, dot, inner = rest.partition(".")
    return f"{section.lower()}{first_dot}{key.lower()}{dot}{inner}"


def repeated_key(assignments: Iterable[str]) -> str:
    """Return the first key that is set twice, or an empty text: of its values only the last would count."""
    seen = set()
    for assignment in assignments:
        if (key := key_of(assignment)) in seen:
            return key
        seen.add(key)
    return ""


def dotted_keys(values: Mapping[str, Any]) -> Iterator[str]:
    """Return the keys of nested values, as ``--set`` writes them."""
    return (key for key, value in leaves(values) if value != {})


def without_overridden(flags: Sequence[str]) -> tuple[str, ...]:
    """Return configuration flags, as pairs of option and value, without a ``--set`` that a later one overrides."""
    pairs = list(zip(flags[::2], flags[1::2], strict=True))
    last = {key_of(value): place for place, (option, value) in enumerate(pairs) if option == SET}
    kept = (pair for place, pair in enumerate(pairs) if pair[0] != SET or last[key_of(pair[1])] == place)
    return tuple(part for pair in kept for part in pair)
