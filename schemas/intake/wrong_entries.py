"""The path of a wrong value, with the keys of mappings in it: msgspec writes ``[...]`` for each. Pure."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

_STEP = re.compile(r"\[(\d+)\]|\[(\.{3})\]|\.?(\w+)")
_ANY = "..."
_PLAIN_KEY = re.compile(r"\w{1,60}")
_MOST_CHARACTERS = 60
"""How many characters of a key from outside a path repeats at most."""

_MOST_DIGITS = 400
"""Digits of an integer that are still converted: more are out of range, and Python refuses thousands of them."""

Step = str | int


def path_with_keys(path: str, value: Any, is_wrong: Callable[[Any], bool]) -> str:
    """Return a path with the key of the first wrong entry in place of each ``[...]``.

    The entry is found by halving: of a hundred thousand entries it takes 17 calls of ``is_wrong``.

    Args:
        path: The path of msgspec's message, such as ``settings[...]``.
        value: The plain value that it is a path of.
        is_wrong: Whether a value, with some of the entries left out, gives the same message.
    """
    if f"[{_ANY}]" not in path or not is_wrong(value):
        return path
    steps: list[Step] = []
    for index, any_key, name in _STEP.findall(path):
        if not any_key:
            steps.append(int(index) if index else name)
            continue
        entries = _value_at(value, steps)
        if not isinstance(entries, dict) or not entries:
            return path
        keys = list(entries)
        while len(keys) > 1:
            half = keys[: len(keys) // 2]
            in_half = is_wrong(_with(value, steps, {key: entries[key] for key in half}))
            keys = half if in_half else keys[len(half) :]
        value = _with(value, steps, {keys[0]: entries[keys[0]]})
        steps.append(keys[0])
    return written_path(steps)


def path_of_number_out_of_range(text: str) -> str:
    """Return the path of the first number of a JSON text that is too large for a float; empty if there is none.

    Of integers, only those of more than ``_MOST_DIGITS`` digits count.
    """
    try:
        value = json.loads(text, parse_int=lambda digits: math.inf if len(digits) > _MOST_DIGITS else 0)
    except (ValueError, RecursionError):
        return ""
    return written_path(next(_paths_of_infinities(value, ()), ()))


def written_path(steps: list[Step] | tuple[Step, ...]) -> str:
    """Return steps as one path: ``layers[0].role``, and ``settings['router.act']`` for a key that is no plain word."""
    path = ""
    for step in steps:
        if isinstance(step, str) and _PLAIN_KEY.fullmatch(step):
            path += f".{step}"
        elif isinstance(step, str):
            shown = step if len(step) <= _MOST_CHARACTERS else f"{step[:_MOST_CHARACTERS]}..."
            path += f"[{shown!a}]"
        else:
            path += f"[{step}]"
    return path.removeprefix(".")


def _paths_of_infinities(value: Any, above: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths_of_infinities(inner, (*above, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths_of_infinities(inner, (*above, index))
    elif isinstance(value, float) and math.isinf(value):
        yield above


def _value_at(value: Any, steps: list[Step]) -> Any:
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _with(value: Any, steps: list[Step], entries: dict[str, Any]) -> Any:
    """Return a copy of a value in which the mapping at ``steps`` has other entries."""
    if not steps:
        return entries
    step, copy = steps[0], value.copy()
    copy[step] = _with(value[step], steps[1:], entries)
    return copy
