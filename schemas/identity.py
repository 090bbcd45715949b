"""Deterministic identities and hashes: the same decision made twice has the same ids."""

import secrets
from hashlib import blake2b, sha256
from typing import Any

import msgspec
import orjson


def event_id(cause: str, actor: str, index: int) -> str:
    """Return the id (32 hex digits) of the ``index``-th event that ``actor`` emits because of ``cause``."""
    return blake2b(f"{cause}\n{actor}\n{index}".encode(), digest_size=16).hexdigest()


def new_exchange_id(time_ns: int) -> str:
    """Return a fresh exchange id: 48 bits of Unix milliseconds, then 80 random bits, as 32 hex digits.

    Time-ordered, so that an index over exchanges grows at its end. Only edges call this: nothing
    random enters a decision.
    """
    return f"{time_ns // 1_000_000 & 0xFFFF_FFFF_FFFF:012x}{secrets.token_hex(10)}"


def canonical_json(value: Any) -> bytes:
    """Encode structs, maps and arrays as JSON with sorted keys and no spaces: equal values give equal bytes."""
    return orjson.dumps(msgspec.to_builtins(value), option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON as 64 hex digits."""
    return sha256(canonical_json(value)).hexdigest()
