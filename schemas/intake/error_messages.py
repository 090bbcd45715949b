"""Error messages for wrong values: msgspec's message, with the values that would be accepted. Pure."""

import re
from functools import cache
from typing import Any

from msgspec import inspect

# What msgspec writes: a text, then " - at `$.path`" or, for the names of a mapping, " - at `key` in `$.path`".
_MESSAGE = re.compile(r"(.*?)(?: - at (?:`(\w+)` in )?`\$(.*)`)?", re.DOTALL)
_MOST_KEPT = 400
"""How many characters of a longer message are kept, from its beginning and from its end."""

# Beginnings of msgspec's messages.
_NOT_A_CHOICE = ("Invalid enum value", "Expected")
_NOT_MATCHING = "Expected `str` matching regex"
_NOT_BOOLEAN = "Expected `bool`"


def explain_error(kind: Any, message: str) -> tuple[str, str]:
    """Return the error with the accepted values, if these can be listed or described; and the path of the value.

    Args:
        kind: The type that was read, or its inspected form.
        message: ``str`` of msgspec's ValidationError. The path is empty if the message names none.
    """
    if len(message) > 2 * _MOST_KEPT:
        # msgspec repeats the whole of a wrong value, however long; the path is at the end.
        message = f"{message[:_MOST_KEPT]}...{message[-_MOST_KEPT:]}"
    found = _MESSAGE.fullmatch(message)
    assert found is not None  # the expression takes any text
    text, inside, path = found[1], found[2], found[3] or ""
    inspected = kind if isinstance(kind, inspect.Type) else inspected_type(kind)
    return _with_choices(text, types_at(inspected, path, inside)), path.lstrip(".")


def error_line(kind: Any, message: str) -> str:
    """Return the error and its path as one line: ``layers[0].role: ...``."""
    text, path = explain_error(kind, message)
    return f"{path}: {text}" if path else text


def _with_choices(message: str, expected: list[inspect.Type]) -> str:
    choices = [choice for one in expected for member in union_members(one) for choice in _choices(member)]
    if choices and message.startswith(_NOT_A_CHOICE):
        return f"{message}: there are {', '.join(dict.fromkeys(choices))}"
    if message.startswith(_NOT_BOOLEAN):
        return f"{message}: write true or false"
    described = [text for one in expected for text in _descriptions(one)]
    return f"write {described[0]}" if described and message.startswith(_NOT_MATCHING) else message


@cache
def inspected_type(kind: Any) -> inspect.Type:
    """Return the inspected form of a type. It is cached: it takes a millisecond, and every body needs it."""
    return inspect.type_info(kind)


def union_members(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """Return the members of a union, or the type itself if it is no union; without constraints on the whole."""
    if isinstance(kind, inspect.Metadata):
        return union_members(kind.type)
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def types_at(inspected: inspect.Type, path: str, inside: str | None) -> list[inspect.Type]:
    """Return the types of the value at ``path``; with ``inside`` set to ``key``, the types of its entries' names."""
    kinds = [inspected]
    for step in [*re.findall(r"\w+|\.{3}", path), *([inside] if inside else [])]:
        kinds = [inner for one in kinds for member in union_members(one) for inner in _types_below(member, step)]
    return kinds


def _types_below(kind: inspect.Type, step: str) -> list[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        return [field.type for field in kind.fields if field.encode_name == step]
    if isinstance(kind, inspect.DictType):
        return [kind.key_type if step == "key" else kind.value_type]
    return [kind.item_type] if isinstance(kind, inspect.VarTupleType | inspect.ListType) else []


def _choices(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.EnumType):
        return [str(member.value) for member in kind.cls]
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []


def _descriptions(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.Metadata):
        own = (kind.extra_json_schema or {}).get("description")
        return [own] if own else _descriptions(kind.type)
    return [text for each in kind.types for text in _descriptions(each)] if isinstance(kind, inspect.UnionType) else []
