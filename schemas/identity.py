"""Deterministic identities and hashes: the same decision made twice has the same ids."""

import secrets
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b, sha256
from typing import Any

import msgspec
import orjson


def event_id(cause: str, actor: str, index: int) -> str:
    """Return the id (32 hex digits) of the ``index``-th event that ``actor`` emits because of ``cause``."""
    return blake2b(f"{cause}\n{actor}\n{index}".encode(), digest_size=16).hexdigest()


def new_exchange_id(time_ns: int) -> str:
    """Return a fresh exchange id: 48 bits of Unix milliseconds, then 80 random bits, as 32 hex digits.

    Time-ordered, so that an index over exchanges grows at its end. Only the entry points (gateway, operator) call this:
    nothing random enters a decision.
    """
    return f"{time_ns // 1_000_000 & 0xFFFF_FFFF_FFFF:012x}{secrets.token_hex(10)}"


def canonical_json(value: Any) -> bytes:
    """Encode structs, maps and arrays as JSON with sorted keys and no spaces: equal values give equal bytes."""
    return orjson.dumps(msgspec.to_builtins(value), option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON as 64 hex digits."""
    return sha256(canonical_json(value)).hexdigest()


def without_defaults(value: msgspec.Struct, *kept: str) -> dict[str, Any]:
    """Return a struct's fields as builtins, in order, without those that have their default.

    For hashes and texts that a decision makes of a whole struct: a field that a later release adds with a default does
    not change them, so that old logs still lead to the same decisions. ``kept`` names the fields that are never left
    out, since the first release wrote them with their defaults, too.
    """
    fields: dict[str, Any] = msgspec.to_builtins(value)
    for name, default in _defaults(type(value)).items():
        if name not in kept and getattr(value, name) == default:
            del fields[name]
    return fields


@cache
def _defaults(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the default of each field that has one, by name."""
    found = {}
    for each in msgspec.structs.fields(kind):
        if each.default is not msgspec.NODEFAULT:
            found[each.name] = each.default
        elif each.default_factory is not msgspec.NODEFAULT:
            found[each.name] = each.default_factory()
    return found
