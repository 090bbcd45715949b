"""Persistent containers for deciders' states, and how states become bytes.

``immutables.Map`` (a hash-array-mapped trie) gives immutable states with cheap updates: any state
that was ever current can be kept, hashed or written out later without copying.
"""

from collections.abc import Callable, Iterator
from functools import cache
from operator import is_
from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from immutables import Map

from schemas.identity import content_hash

K = TypeVar("K")
V = TypeVar("V")

_PIECE_ENTRIES = 256
"""Entries of a map that ``state_pieces`` encodes at once."""


class ExpiringMap(msgspec.Struct, Generic[V], frozen=True):
    """A map that drops each entry between one and two lifetimes after its last use.

    It has two generations. Entries are written to the younger, which began at ``since_ns``. When that is one lifetime
    old, it becomes the older, and what the older held is dropped. Every step costs O(1). The time is that of the
    messages, so that a replay drops the same entries at the same positions of the log.
    """

    young: Map[str, V] = Map()
    old: Map[str, V] = Map()
    since_ns: int = 0

    def get(self, key: str) -> V | None:
        """Return the entry of ``key``, or None."""
        found = self.young.get(key)
        return found if found is not None else self.old.get(key)

    def set(self, key: str, value: V, now_ns: int, lifetime_ns: int) -> "ExpiringMap[V]":
        """Return the map with ``key`` set at ``now_ns``, after dropping expired entries."""
        age = now_ns - self.since_ns
        if age < lifetime_ns:
            return ExpiringMap(self.young.set(key, value), self.old, self.since_ns)
        survivors: Map[str, V] = self.young if age < 2 * lifetime_ns else Map()
        young: Map[str, V] = Map()
        # Generations begin at multiples of the lifetime. Else, from ``now_ns`` on, an entry could last three lifetimes.
        return ExpiringMap(young.set(key, value), survivors, self.since_ns + age // lifetime_ns * lifetime_ns)

    def aged(self, now_ns: int, lifetime_ns: int) -> "ExpiringMap[V]":
        """Return the map without the entries that have expired at ``now_ns``. Generations begin at multiples of the
        lifetime.

        Call it on every message. Then each entry is kept for at least one lifetime after its last use, and is dropped
        at the latest by the first message that comes two lifetimes after that use.
        """
        age = now_ns - self.since_ns
        if age < lifetime_ns:
            return self
        survivors: Map[str, V] = self.young if age < 2 * lifetime_ns else Map()
        return ExpiringMap(Map(), survivors, now_ns - age % lifetime_ns)

    def delete(self, key: str) -> "ExpiringMap[V]":
        """Return the map without ``key``; the same object if it is not there."""
        young = self.young.delete(key) if key in self.young else self.young
        old = self.old.delete(key) if key in self.old else self.old
        if young is self.young and old is self.old:
            return self
        return ExpiringMap(young, old, self.since_ns)

    def __len__(self) -> int:
        return len(self.young) + sum(key not in self.young for key in self.old)


def without_oldest(entries: "Map[str, V]", age_of: Callable[[V], int | tuple[bool, int]]) -> "Map[str, V]":
    """Return a map without the oldest eighth of its entries, at least one.

    ``age_of`` returns an entry's time, or (whether it should be kept, time): such entries are dropped last.

    For maps whose keys come from outside, so that anybody could make them grow. An eighth is dropped at once, so that
    the search for the oldest, which looks at all entries, is rare.
    """
    by_age = sorted((age_of(value), key) for key, value in entries.items())
    for _, key in by_age[: max(1, len(by_age) // 8)]:
        entries = entries.delete(key)
    return entries


def with_entry(
    entries: "Map[str, V]", key: str, value: V, most: int, age_of: Callable[[V], int | tuple[bool, int]]
) -> "Map[str, V]":
    """Return a map with an entry set.

    If the key is new and the map has ``most`` entries, the oldest are dropped first, as :func:`without_oldest` does.
    """
    if key not in entries and len(entries) >= most:
        entries = without_oldest(entries, age_of)
    return entries.set(key, value)


class JoinBuffer(msgspec.Struct, Generic[V], frozen=True):
    """Joins the messages about each exchange until a verdict settles it; also knows which exchanges were settled
    lately.

    A message may come so long after the verdict that the settled entry has expired. It then opens a pending entry that
    no verdict will settle. So pending entries expire, too.
    """

    pending: ExpiringMap[V] = ExpiringMap()
    settled: ExpiringMap[bool] = ExpiringMap()

    def is_open(self, exchange: str) -> bool:
        """Whether a verdict on the exchange can still come; an empty name is no exchange."""
        return bool(exchange) and not self.settled.get(exchange)

    def gather(self, exchange: str, known: V, now_ns: int, lifetime_ns: int) -> "JoinBuffer[V]":
        """Return the buffer with ``known`` as all that is known of an exchange so far."""
        return JoinBuffer(self.pending.set(exchange, known, now_ns, lifetime_ns), self.settled)

    def settle(self, exchange: str, now_ns: int, lifetime_ns: int) -> "JoinBuffer[V]":
        """Return the buffer with an exchange settled and its messages dropped; an empty name changes nothing."""
        if not exchange:
            return self
        return JoinBuffer(self.pending.delete(exchange), self.settled.set(exchange, True, now_ns, lifetime_ns))

    def aged(self, now_ns: int, pending_ns: int, settled_ns: int) -> "JoinBuffer[V]":
        """Return the buffer without expired entries; the same object if there are none."""
        pending, settled = self.pending.aged(now_ns, pending_ns), self.settled.aged(now_ns, settled_ns)
        if pending is self.pending and settled is self.settled:
            return self
        return JoinBuffer(pending, settled)


class Derived:
    """A field of a state that can be computed from its other fields, such as an index. It does not count for equality.

    It is left out of snapshots and hashes, and any two of one class are equal. The reader of a snapshot makes an
    instance without arguments; such an instance must compute what it needs when it is first used.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class ByIdentity:
    """Immutable values as the key of a cache, compared by identity, since comparing their contents would cost more.

    For what a decision and the fold after it compute from the same state and message.
    """

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and all(map(is_, self.values, other.values))

    def __hash__(self) -> int:
        return id(self.values[-1])


def _to_builtin(value: Any) -> Any:
    if isinstance(value, Map):
        return dict(value)
    if isinstance(value, Derived):
        return None
    raise NotImplementedError(f"a state may not hold a {type(value).__name__}")


def _from_builtin(kind: type, value: Any) -> Any:
    if (get_origin(kind) or kind) is Map:
        key_type, value_type = get_args(kind) or (str, Any)
        return Map(msgspec.convert(value, dict[key_type, value_type], dec_hook=_from_builtin))  # type: ignore[valid-type]
    if issubclass(kind, Derived):
        return kind()
    raise NotImplementedError(f"a state may not hold a {kind}")


_state_encoder = msgspec.msgpack.Encoder(enc_hook=_to_builtin)


def encode_state(state: object) -> bytes:
    """Encode a state for a snapshot (MessagePack, insertion order kept)."""
    return _state_encoder.encode(state)


def state_pieces(state: Any) -> Iterator[bytes]:
    """Encode a state piece by piece: joined, they are ``encode_state(state)``, and none takes more than milliseconds.

    For a process that must do other things while it stores a state of many megabytes.
    """
    if not _is_large(state):
        yield encode_state(state)
    elif isinstance(state, Map):
        yield _map_header(len(state))
        batch: dict[Any, Any] = {}
        for key, value in state.items():
            if _is_large(value):
                yield _entries(batch)
                batch = {}
                yield _state_encoder.encode(key)
                yield from state_pieces(value)
            else:
                batch[key] = value
                if len(batch) == _PIECE_ENTRIES:
                    yield _entries(batch)
                    batch = {}
        yield _entries(batch)
    else:
        names = state.__struct_fields__
        yield _map_header(len(names))
        for name, encoded in zip(names, state.__struct_encode_fields__, strict=True):
            yield _state_encoder.encode(encoded)
            yield from state_pieces(getattr(state, name))


def _is_large(value: Any) -> bool:
    """Whether a value has a map of more than ``_PIECE_ENTRIES`` entries: it is then encoded piece by piece."""
    if isinstance(value, Map):
        return len(value) > _PIECE_ENTRIES or any(map(_is_large, value.values()))
    return any(_is_large(getattr(value, name)) for name in _nested_fields(value.__class__))


@cache
def _nested_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields of a struct that may hold maps: those of maps, structs and unions."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    config = kind.__struct_config__
    if config.array_like or config.tag is not None or config.omit_defaults:
        return ()  # encoded in another form than as a map of all fields
    return tuple(field.name for field in msgspec.structs.fields(kind) if _may_nest(field.type, ()))


def _may_nest(kind: Any, within: tuple[Any, ...]) -> bool:
    """Whether values of a type may hold maps; ``within`` are the structs that it is a part of."""
    found = get_origin(kind) or kind
    if found is Map or isinstance(kind, TypeVar):
        return True
    if isinstance(found, type) and issubclass(found, msgspec.Struct):
        if found in within:
            return False
        return any(_may_nest(field.type, (*within, found)) for field in msgspec.structs.fields(found))
    return found in (UnionType, Union) and any(_may_nest(each, within) for each in get_args(kind))


def _entries(batch: dict[Any, Any]) -> bytes:
    """Return the entries of a map as MessagePack, without its header."""
    return _state_encoder.encode(batch)[len(_map_header(len(batch))) :]


def _map_header(count: int) -> bytes:
    """Return what MessagePack has before the entries of a map."""
    if count < 16:
        return bytes((0x80 | count,))
    return b"\xde" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdf" + count.to_bytes(4, "big")


def decode_state(data: bytes, kind: type[V]) -> V:
    """Decode a snapshot's state; raises msgspec.DecodeError or ValidationError when it does not fit ``kind``."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_from_builtin)


def state_hash(state: object) -> str:
    """Return the SHA-256 of a state's canonical JSON. Equal states have equal hashes, whatever led to them."""
    return content_hash(msgspec.to_builtins(state, enc_hook=_to_builtin, str_keys=True))


def state_builtins(state: object) -> Any:
    """Return a state as plain dicts, lists and numbers, for display.

    Keys are sorted: the order in which a map yields them differs from process to process.
    """
    return msgspec.to_builtins(state, enc_hook=_to_builtin, str_keys=True, order="deterministic")


__all__ = [
    "ByIdentity", "Derived", "ExpiringMap", "JoinBuffer", "Map", "decode_state", "encode_state", "state_builtins",
    "state_hash", "state_pieces", "with_entry", "without_oldest",
]  # fmt: skip
