"""What a state's type looks like when it is stored: a hash that tells whether stored states of a type can be read.

A state that was stored before a field was added, renamed, dropped or given another type may still decode, with a
default in the place of what it lacks. A hash of the state itself would show that, too, but takes longer than all else
that is done to store it.
"""

import types
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from schemas.identity import content_hash
from schemas.persistent import Derived


def structure_hash(kind: Any) -> str:
    """Return a hash of the fields of a type and of all types within it: their stored names and types, in order.

    Neither names of classes, defaults, constraints nor allowed values count. What does not fit those any more is
    refused when it is decoded.
    """
    return _structure_hash(kind)


@cache
def _structure_hash(kind: Any) -> str:
    return content_hash(_described(kind, ()))


def _described(kind: Any, within: tuple[Any, ...]) -> Any:
    """Return a type as lists of texts; ``within`` are the structs that it is a part of, the outermost first."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _described(get_args(kind)[0], within)
    if origin is Literal:
        return "literal"
    found = origin or kind
    if found is types.UnionType or found is Union:
        return ["union", *(_described(each, within) for each in get_args(kind))]
    if kind in within:
        return ["recursive", within.index(kind)]
    if isinstance(found, type):
        if issubclass(found, Derived):
            return "derived"
        if issubclass(found, msgspec.Struct):
            config = found.__struct_config__
            fields = [
                [each.encode_name, _described(each.type, (*within, kind))] for each in msgspec.structs.fields(kind)
            ]
            return ["struct", config.array_like, config.tag, config.tag_field, fields]
        if issubclass(found, tuple) and hasattr(found, "_fields"):
            hints = get_type_hints(found, include_extras=True)
            return ["tuple", *(_described(hints[name], (*within, kind)) for name in found._fields)]
    return [getattr(found, "__name__", str(found)), *(_described(each, within) for each in get_args(kind))]
