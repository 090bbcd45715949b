"""Where an event holds people's words: the fields that the vocabulary marks as personal or as an echo. Pure.

An event is given as its struct, or as the JSON object of its body. A text's position in it is a JSON Pointer (RFC
6901), such as ``/recollections/0/text``.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import inspect

from schemas.event import Event

Echo = Annotated[str, msgspec.Meta(extra_json_schema={"x-echo": True})]
"""Text that repeats some of what a person wrote, such as a signature found in it: not sealed, redacted on export."""

CALLER_TEXT_FIELDS = frozenset({
    "by", "current", "identity_current", "identity_stable", "label", "overridden_by", "override_by", "situation",
    "stable", "why", "working_memory",
})  # fmt: skip
"""Fields, in any event, whose texts callers and operators choose, such as names, reasons and labels.

They are stored as they are, and redacted on export. Deciders only copy and compare them. So decisions on an export,
where hashes replace them, are the same.
"""


_ANY = "any"
"""In place of a mark: every text counts as marked."""


class Text(msgspec.Struct, frozen=True):
    """A personal text."""


class Fields(msgspec.Struct, frozen=True):
    """A struct, some of whose fields hold personal texts."""

    fields: Mapping[str, "Location"]


class Items(msgspec.Struct, frozen=True):
    """A list or tuple whose items hold personal texts."""

    item: "Location"


class Values(msgspec.Struct, frozen=True):
    """A mapping whose values hold personal texts."""

    value: "Location"


Location: TypeAlias = Text | Fields | Items | Values

Replacement: TypeAlias = Callable[[str, str], Any]
"""(JSON Pointer, text there) -> what replaces the text."""


@cache
def personal_location(event: type[Event]) -> Location | None:
    """Return where an event type holds personal texts; None when nowhere.

    Raises:
        TypeError: it holds them in a form that is not supported here: they would be missed.
    """
    return _location(inspect.type_info(event), "x-personal")


@cache
def unsealed_location(event: type[Event]) -> Location | None:
    """Return where an event type holds texts that are redacted, but never sealed: echoes, and those of
    :data:`CALLER_TEXT_FIELDS`.

    None when nowhere. Raises as :func:`personal_location`.
    """
    return _location(inspect.type_info(event), "x-echo", CALLER_TEXT_FIELDS)


def change_personal(location: Location, value: Any, change: Replacement, pointer: str = "") -> Any:
    """Return a copy in which ``change`` has replaced every personal text; empty texts stay as they are."""
    if isinstance(location, Text):
        return change(pointer, value) if isinstance(value, str) and value else value
    if isinstance(location, Fields):
        if isinstance(value, dict):
            changed = {
                name: change_personal(inner, value[name], change, f"{pointer}/{name}")
                for name, inner in location.fields.items()
                if name in value
            }
            return value | changed
        if isinstance(value, msgspec.Struct):
            fields = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
            changed = {
                fields[name]: change_personal(inner, getattr(value, fields[name]), change, f"{pointer}/{name}")
                for name, inner in location.fields.items()
            }
            return msgspec.structs.replace(value, **changed)
        return value
    if isinstance(location, Items):
        if not isinstance(value, list | tuple):
            return value
        items = [change_personal(location.item, item, change, f"{pointer}/{at}") for at, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    if not isinstance(value, dict):
        return value
    return {
        name: change_personal(location.value, item, change, pointer_below(pointer, name))
        for name, item in value.items()
    }


def pointer_below(pointer: str, name: str) -> str:
    """Return the pointer of a mapping's value."""
    if "~" in name or "/" in name:
        name = name.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{name}"


def _location(kind: inspect.Type, mark: str, names: frozenset[str] = frozenset()) -> Location | None:
    """Return where texts with a mark are, or all texts in fields of these names; with the mark :data:`_ANY`, all."""
    if isinstance(kind, inspect.StrType):
        return Text() if mark == _ANY else None
    if isinstance(kind, inspect.Metadata):
        return Text() if (kind.extra_json_schema or {}).get(mark) else _location(kind.type, mark, names)
    if isinstance(kind, inspect.StructType):
        marks = {field.encode_name: _ANY if field.encode_name in names else mark for field in kind.fields}
        locations = {field.encode_name: _location(field.type, marks[field.encode_name], names) for field in kind.fields}
        fields = {name: location for name, location in locations.items() if location is not None}
        return Fields(fields) if fields else None
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        item = _location(kind.item_type, mark, names)
        return Items(item) if item is not None else None
    if isinstance(kind, inspect.DictType):
        value = _location(kind.value_type, mark, names)
        return Values(value) if value is not None else None
    members: tuple[inspect.Type, ...] = ()
    if isinstance(kind, inspect.UnionType):
        members = kind.types
    elif isinstance(kind, inspect.TupleType):
        members = kind.item_types
    found = [location for member in members if (location := _location(member, mark, names)) is not None]
    if len(found) > 1 or (found and isinstance(kind, inspect.TupleType)):
        raise TypeError(f"personal texts within {kind!r} cannot be told apart: put them into a struct")
    return found[0] if found else None
