"""The part of recorded settings that this release knows: removed settings are dropped, at every depth. Pure.

Types of settings refuse unknown fields, so that a misspelt setting is never ignored. But recorded settings were valid
once. If they were refused because of one removed setting, defaults would replace all of them, for the whole log.
"""

from typing import Any

from msgspec import inspect

from schemas.intake.error_messages import inspected_type, union_members


def known_part(value: Any, kind: Any) -> Any:
    """Return plain values without the fields that the struct at their place in a type does not have."""
    return _known(value, (inspected_type(kind),))


def _known(value: Any, kinds: tuple[inspect.Type, ...]) -> Any:
    found = [member for kind in kinds for member in union_members(kind)]
    if isinstance(value, list | tuple):
        items = tuple(each.item_type for each in found if isinstance(each, inspect.VarTupleType | inspect.ListType))
        return [_known(item, items) for item in value] if items else value
    if not isinstance(value, dict):
        return value
    values = tuple(each.value_type for each in found if isinstance(each, inspect.DictType))
    fields: dict[str, tuple[inspect.Type, ...]] = {}
    for struct in (each for each in found if isinstance(each, inspect.StructType)):
        for field in struct.fields:
            fields[field.encode_name] = (*fields.get(field.encode_name, ()), field.type)
    return {
        key: _known(inner, (*fields.get(key, ()), *values)) for key, inner in value.items() if values or key in fields
    }
