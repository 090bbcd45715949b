"""Where an event holds people's words: the fields that the vocabulary marks as personal or as an echo. Pure.

An event is taken as its struct, or as the JSON object of its body. Places are JSON Pointers (RFC 6901), such as
``/recollections/0/text``.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import inspect

from schemas.event import Event

Echo = Annotated[str, msgspec.Meta(extra_json_schema={"x-echo": True})]
"""Our own text about what a person wrote, such as what was found in it: stored as it is, redacted on export."""

CALLER_TEXT_FIELDS = frozenset(
    {
        "by",
        "current",
        "identity_current",
        "identity_stable",
        "label",
        "overridden_by",
        "override_by",
        "situation",
        "stable",
        "why",
        "working_memory",
    }
)
"""Fields, in any event, whose texts callers and operators choose, such as names, reasons and labels.

They are stored as they are, and redacted on export. Deciders only copy and compare them. So decisions on an export,
where hashes replace them, are the same.
"""


_ANY = "any"


class Words(msgspec.Struct, frozen=True):
    """A personal text."""


class Fields(msgspec.Struct, frozen=True):
    """A struct, some of whose fields hold personal texts."""

    fields: Mapping[str, "Part"]


class Items(msgspec.Struct, frozen=True):
    """A list or tuple whose items hold personal texts."""

    item: "Part"


class Values(msgspec.Struct, frozen=True):
    """A mapping whose values hold personal texts."""

    value: "Part"


Part: TypeAlias = Words | Fields | Items | Values

Change: TypeAlias = Callable[[str, str], Any]
"""(place, text there) -> what replaces the text."""


@cache
def personal_part(event: type[Event]) -> Part | None:
    """Return where an event type holds personal texts; None when nowhere.

    Raises:
        TypeError: it holds them in a form that is not supported here: they would be missed.
    """
    return _part(inspect.type_info(event), "x-personal")


@cache
def unsealed_part(event: type[Event]) -> Part | None:
    """Return where an event type holds texts that are redacted, but never sealed: echoes, and those of
    :data:`CALLER_TEXT_FIELDS`.

    None when nowhere. Raises as :func:`personal_part`.
    """
    return _part(inspect.type_info(event), "x-echo", CALLER_TEXT_FIELDS)


def change_personal(part: Part, value: Any, change: Change, place: str = "") -> Any:
    """Return a copy in which ``change`` has replaced every personal text; empty texts stay as they are."""
    if isinstance(part, Words):
        return change(place, value) if isinstance(value, str) and value else value
    if isinstance(part, Fields):
        if isinstance(value, dict):
            changed = {
                name: change_personal(inner, value[name], change, f"{place}/{name}")
                for name, inner in part.fields.items()
                if name in value
            }
            return value | changed
        if isinstance(value, msgspec.Struct):
            changed = {
                name: change_personal(inner, getattr(value, name), change, f"{place}/{name}")
                for name, inner in part.fields.items()
            }
            return msgspec.structs.replace(value, **changed)
        return value
    if isinstance(part, Items):
        if not isinstance(value, list | tuple):
            return value
        items = [change_personal(part.item, item, change, f"{place}/{at}") for at, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    if not isinstance(value, dict):
        return value
    return {name: change_personal(part.value, item, change, below(place, name)) for name, item in value.items()}


def below(place: str, name: str) -> str:
    """Return the place of a mapping's value."""
    if "~" in name or "/" in name:
        name = name.replace("~", "~0").replace("/", "~1")
    return f"{place}/{name}"


def _part(kind: inspect.Type, mark: str, names: frozenset[str] = frozenset()) -> Part | None:
    """Return where texts with a mark are, or all texts in fields of these names; with the mark :data:`_ANY`, all."""
    if isinstance(kind, inspect.StrType):
        return Words() if mark == _ANY else None
    if isinstance(kind, inspect.Metadata):
        return Words() if (kind.extra_json_schema or {}).get(mark) else _part(kind.type, mark, names)
    if isinstance(kind, inspect.StructType):
        marks = {field.encode_name: _ANY if field.encode_name in names else mark for field in kind.fields}
        parts = {field.encode_name: _part(field.type, marks[field.encode_name], names) for field in kind.fields}
        fields = {name: part for name, part in parts.items() if part is not None}
        return Fields(fields) if fields else None
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        item = _part(kind.item_type, mark, names)
        return Items(item) if item is not None else None
    if isinstance(kind, inspect.DictType):
        value = _part(kind.value_type, mark, names)
        return Values(value) if value is not None else None
    members: tuple[inspect.Type, ...] = ()
    if isinstance(kind, inspect.UnionType):
        members = kind.types
    elif isinstance(kind, inspect.TupleType):
        members = kind.item_types
    found = [part for member in members if (part := _part(member, mark, names)) is not None]
    if len(found) > 1 or (found and isinstance(kind, inspect.TupleType)):
        raise TypeError(f"personal texts within {kind!r} cannot be told apart: put them into a struct")
    return found[0] if found else None
