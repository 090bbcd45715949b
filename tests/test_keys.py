"""What is looked up by a whole struct can be: no struct used as a key has a field that cannot be hashed.

A list or a dict in it, added with a default, would raise ``TypeError`` on the first look-up of a recorded event.
"""

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, MutableSet, Set
from contextlib import suppress
from functools import lru_cache
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import msgspec

import actors
import events
import schemas
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.patterns import PatternSet, Signature

_KEYED = (dict, Mapping, set, frozenset, Set, Map, ExpiringMap)
_UNHASHABLE = (list, dict, set, bytearray, Mapping, MutableMapping, MutableSequence, MutableSet)
_OF_VARIABLES = re.compile(r"^ +[\w.]+: ((?:dict|set|Map|ExpiringMap)\[[\w\[\], .|]+\]) = ", re.M)
_Cached = type(lru_cache(lambda: None))


class _Held(msgspec.Struct, frozen=True):
    words: tuple[str, ...] | list[str] = ()


class _Key(NamedTuple):
    held: Annotated[tuple[_Held, ...], "some"]


def _modules() -> Iterator[ModuleType]:
    for package in (schemas, actors, events):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name != "actors.intuition.index.compiled":  # which takes an extra
                yield importlib.import_module(found.name)


def _hints(thing: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except (NameError, TypeError, AttributeError):  # of what only a type checker imports
        return {}


def _inner(kind: Any) -> Iterator[Any]:
    """Yield a type and all types within it."""
    yield typing.get_origin(kind) or kind
    for argument in typing.get_args(kind):
        yield from _inner(argument)


def _keys_in(kind: Any) -> Iterator[Any]:
    """Yield the types of keys of the mappings and sets in a type."""
    arguments = typing.get_args(kind)
    if arguments and typing.get_origin(kind) in _KEYED:
        yield arguments[0]
    for argument in arguments:
        yield from _keys_in(argument)


def _used_as_keys() -> Iterator[Any]:
    """Yield the types that caches are asked by, and those of keys in structs, arguments, results and variables."""
    for module in _modules():
        for annotation in _OF_VARIABLES.findall(inspect.getsource(module)):
            with suppress(NameError, TypeError, AttributeError):  # of what only a type checker imports
                yield from _keys_in(eval(annotation, vars(module)))
        for thing in vars(module).values():
            if getattr(thing, "__module__", "") != module.__name__:
                continue
            members = list(vars(thing).values()) if inspect.isclass(thing) else []
            for each in (thing, *members):
                hints = _hints(getattr(each, "__wrapped__", each)) if callable(each) else {}
                if isinstance(each, _Cached):
                    yield from (kind for name, kind in hints.items() if name != "return")
                for kind in hints.values():
                    yield from _keys_in(kind)


def _unhashable(kind: Any, known: set[Any]) -> Iterator[str]:
    """Yield the fields of a type, at every depth, that make it no key."""
    for each in _inner(kind):
        if not inspect.isclass(each) or each in known or {"__eq__", "__hash__"} <= vars(each).keys():
            continue  # those with a hash of their own do not take their fields'
        if not issubclass(each, msgspec.Struct) and not hasattr(each, "_fields"):
            continue
        known.add(each)
        for field, held in _hints(each).items():
            if typing.get_origin(held) is typing.ClassVar:
                continue
            if any(inner in _UNHASHABLE for inner in _inner(held)):
                yield f"{each.__qualname__}.{field}"
            yield from _unhashable(held, known)


def test_no_struct_that_is_used_as_a_key_has_a_field_that_cannot_be_hashed() -> None:
    known: set[Any] = set()

    wrong = [field for kind in _used_as_keys() for field in _unhashable(kind, known)]

    assert {PatternSet, Signature} <= known, "reflex looks its library up by them"
    assert wrong == [], "give it a tuple, or a key of its own to what looks it up"


def test_a_list_in_a_key_is_found_at_every_depth() -> None:
    assert list(_unhashable(Annotated[_Key | None, "a key"], set())) == ["_Held.words"]
