"""Encoding a large state piece by piece, so that other work can be done in between.

A state may hold an entry for each session of the last days. To encode such a state at once takes seconds, in which no
message is decided. States are immutable, so that the pieces belong together, however long they take. The bytes are the
same as those of ``schemas.persistent.encode_state`` and ``state_hash``, which encode at once.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin

import msgspec
import orjson

from schemas.persistent import Map, state_encoder, to_builtin

PIECE = 256
"""Entries of a map in a piece: some milliseconds of work."""

_MAP16 = 2**16


def json_pieces(state: object) -> Iterator[bytes]:
    """Yield the canonical JSON of a state, whose SHA-256 is its ``state_hash``."""
    if not _is_divided(state):
        yield _canonical(state)
        return
    begin = b"{"
    for group in _grouped(_sorted_entries(state)):
        if len(group) == 1 and _is_divided(value := group[0][1]):
            yield begin + orjson.dumps(str(group[0][0])) + b":"
            yield from json_pieces(value)
        else:
            yield begin + _canonical(dict(group))[1:-1]
        begin = b","
    yield b"}"


def msgpack_pieces(state: object) -> Iterator[bytes]:
    """Yield what ``encode_state`` returns for a state."""
    if not _is_divided(state):
        yield state_encoder.encode(state)
        return
    entries = _entries(state)
    yield _map_header(len(entries))
    for group in _grouped(entries):
        if len(group) == 1 and _is_divided(value := group[0][1]):
            yield state_encoder.encode(group[0][0])
            yield from msgpack_pieces(value)
        else:
            yield state_encoder.encode(dict(group))[len(_map_header(len(group))) :]


Entry = tuple[Any, Any]
"""A key and its value: of a map, or of a struct, whose keys are the names of its fields."""


def _is_divided(value: object) -> bool:
    """Whether a value is encoded in pieces: a large map, or a map or a struct that holds one."""
    if isinstance(value, Map):
        if not isinstance(next(iter(value), ""), str | int):
            return False  # the order of other keys as texts is not known here
        return len(value) > PIECE or any(_is_divided(inner) for inner in value.values())
    if not isinstance(value, msgspec.Struct) or not _may_hold_maps(type(value)):
        return False
    config = value.__struct_config__
    if config.array_like or config.tag is not None or config.omit_defaults:
        return False
    return any(_is_divided(getattr(value, name)) for name in value.__struct_fields__)


@cache
def _may_hold_maps(kind: Any) -> bool:
    """Whether values of a type can hold maps in places that are looked at: as fields, and fields of those."""
    if (get_origin(kind) or kind) is Map:
        return True
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return any(_may_hold_maps(field.type) for field in msgspec.structs.fields(origin))
    return any(map(_may_hold_maps, get_args(kind)))


def _entries(state: Any) -> list[Entry]:
    if isinstance(state, Map):
        return list(state.items())
    names = zip(state.__struct_encode_fields__, state.__struct_fields__, strict=True)
    return [(encoded, getattr(state, name)) for encoded, name in names]


def _sorted_entries(state: Any) -> list[Entry]:
    return sorted(_entries(state), key=lambda entry: str(entry[0]))  # keys are texts in JSON


def _grouped(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield entries in groups of one piece each; one that is divided itself is alone."""
    group: list[Entry] = []
    for entry in entries:
        alone = _is_divided(entry[1])
        if group and (alone or len(group) == PIECE):
            yield group
            group = []
        group.append(entry)
        if alone:
            yield group
            group = []
    if group:
        yield group


def _canonical(value: object) -> bytes:
    plain = msgspec.to_builtins(value, enc_hook=to_builtin, str_keys=True)
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def _map_header(count: int) -> bytes:
    """Return the header of a MessagePack map of so many entries."""
    if count < 16:
        return bytes([0x80 | count])
    if count < _MAP16:
        return b"\xde" + count.to_bytes(2, "big")
    return b"\xdf" + count.to_bytes(4, "big")
