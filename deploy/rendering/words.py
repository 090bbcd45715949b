"""Hiding people's words in an event's body, by what the vocabulary marks as personal. Pure."""

from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from schemas.event import Event

HIDDEN = "[hidden]"


def without_words(event: Event) -> dict[str, Any]:
    """Return an event's body with every personal text replaced by ``[hidden]``."""
    body: dict[str, Any] = msgspec.to_builtins(event)
    hidden = _hide(_type_of(type(event)), body)
    assert isinstance(hidden, dict)
    return hidden


@cache
def _type_of(kind: type[Event]) -> inspect.Type:
    return inspect.type_info(kind)


def _hide(kind: inspect.Type, value: Any) -> Any:
    if isinstance(kind, inspect.Metadata):
        personal = (kind.extra_json_schema or {}).get("x-personal")
        return HIDDEN if personal and value else _hide(kind.type, value)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        kinds = {field.encode_name: field.type for field in kind.fields}
        return {name: _hide(kinds[name], inner) if name in kinds else inner for name, inner in value.items()}
    if isinstance(kind, inspect.VarTupleType | inspect.ListType) and isinstance(value, list | tuple):
        return [_hide(kind.item_type, inner) for inner in value]
    if isinstance(kind, inspect.DictType) and isinstance(value, dict):
        return {name: _hide(kind.value_type, inner) for name, inner in value.items()}
    if isinstance(kind, inspect.UnionType):
        return next((hidden for each in kind.types if (hidden := _hide(each, value)) != value), value)
    return value
