"""Conditions on a state: a path, an operator, a JSON literal. Parsed by hand and never evaluated as code. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas.persistent import state_builtins

Step = str | int
"""A step of a path: a name or key, or an index."""
MISSING = object()
"""The value at a path that does not exist."""

_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)")
_INNER_NAME = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)")
_QUOTED = re.compile(r'\["((?:[^"\\]|\\.)*)"\]')
_INDEX = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
_OPERATOR = re.compile(r"\s*(==|!=|<=|>=|<|>|(?:in|exists)\b)\s*")


class BadCondition(ValueError):
    """A text that is not a condition; the message names the character, counted from 1, and what is expected there."""

    code = "bad_condition"

    def __init__(self, text: str, at: int, expected: str) -> None:
        """Name the character, which is at index ``at``."""
        super().__init__(f"{text!r}, character {at + 1}: expected {expected}")


class Condition(msgspec.Struct, frozen=True):
    """``path operator literal``; the literal is None with ``exists``."""

    path: tuple[Step, ...]
    operator: str
    literal: Any = None

    def holds(self, value: Any) -> bool:
        """Whether it holds for the value at its path (plain dicts, lists and scalars, or :data:`MISSING`).

        For a missing value only ``!=`` holds. An order between values of different kinds never holds.
        """
        if value is MISSING:
            return self.operator == "!="
        match self.operator:
            case "exists":
                return True
            case "==":
                return _same(value, self.literal)
            case "!=":
                return not _same(value, self.literal)
            case "in":
                return any(_same(value, each) for each in self.literal)
        return _ordered(value, self.literal, self.operator)

    def can_hold_for(self, value: Any) -> bool:
        """Whether a value is of a kind for which the condition can hold; a missing value or null may be of any kind."""
        if value is MISSING or value is None or self.literal is None or self.operator in ("exists", "!="):
            return True
        literals = self.literal if self.operator == "in" else [self.literal]
        return not literals or any(each is None or kind_of(each) == kind_of(value) for each in literals)


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value as text."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "null" if value is None else "an object"


def _same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _ordered(left: Any, right: Any, operator: str) -> bool:
    have_an_order = (isinstance(left, str) and isinstance(right, str)) or (_is_number(left) and _is_number(right))
    if not have_an_order:
        return False
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
    return bool(left >= right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def condition_of(text: str) -> Condition:
    """Parse ``trust < 0.5``, ``sessions["a"].state == "VIOLATED"``, ``mode in ["ACT", "RESPOND"]`` or ``veto exists``.

    Raises:
        BadCondition: it is no condition.
    """
    path, at = _path(text, len(text) - len(text.lstrip()))
    found = _OPERATOR.match(text, at)
    if found is None:
        raise BadCondition(text, at, "one of == != < <= > >= in exists")
    operator, rest = found[1], text[found.end() :]
    if operator == "exists":
        if rest:
            raise BadCondition(text, found.end(), "the end")
        return Condition(path, operator)
    try:
        literal = msgspec.json.decode(rest)
    except (msgspec.DecodeError, RecursionError):
        raise BadCondition(text, found.end(), 'a JSON value, such as 0.5, "text", true or null') from None
    if operator == "in" and not isinstance(literal, list):
        raise BadCondition(text, found.end(), "a JSON list")
    if operator in ("<", "<=", ">", ">=") and not (isinstance(literal, str) or _is_number(literal)):
        raise BadCondition(text, found.end(), "a number or a text: nothing else has an order")
    return Condition(path, operator, literal)


def path_of(text: str) -> tuple[Step, ...]:
    """Parse a path alone; raises ``BadCondition`` as :func:`condition_of` does."""
    path, at = _path(text, 0)
    if at != len(text):
        raise BadCondition(text, at, 'the end, or .name, [0] or ["key"]')
    return path


def _path(text: str, at: int) -> tuple[tuple[Step, ...], int]:
    steps: list[Step] = []
    while at < len(text):
        if found := _QUOTED.match(text, at):
            try:
                steps.append(msgspec.json.decode(f'"{found[1]}"', type=str))
            except msgspec.DecodeError:
                raise BadCondition(text, at + 1, "a JSON string") from None
        elif found := _INDEX.match(text, at):
            steps.append(int(found[1]))
        elif found := (_INNER_NAME if steps else _NAME).match(text, at):
            steps.append(found[1])
        else:
            break
        at = found.end()
    if not steps:
        raise BadCondition(text, at, 'a path, such as trust or sessions["name"].trust')
    return tuple(steps), at


def at_path(state: Any, path: Sequence[Step]) -> Any:
    """Return the value at a path of a state, as plain values; :data:`MISSING` if there is none."""
    for step in path:
        if isinstance(state, msgspec.Struct) and isinstance(step, str) and step in state.__struct_fields__:
            state = getattr(state, step)
        elif isinstance(state, Mapping):
            state = state.get(step, MISSING)
        elif isinstance(state, list | tuple) and isinstance(step, int) and step < len(state):
            state = state[step]
        else:
            return MISSING
    return MISSING if state is MISSING else state_builtins(state)


def names_at(state: Any) -> tuple[Step, ...]:
    """Return the names, keys or indexes by which a path can continue from a value; empty if it ends there."""
    if isinstance(state, msgspec.Struct):
        return state.__struct_fields__
    if isinstance(state, Mapping):
        return tuple(state)
    return tuple(range(len(state))) if isinstance(state, list | tuple) else ()
