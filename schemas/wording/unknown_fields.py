"""Texts in fields that this release does not know: another release may have kept words of people there. Pure."""

from collections.abc import Callable
from typing import Any

import msgspec

from schemas.event import Event


def change_unknown(body: Any, event: Event, change: Callable[[str], Any]) -> Any:
    """Return a body in which ``change`` has replaced every text of a field that its event's type does not have.

    Args:
        body: The JSON document that the event was decoded from.
        event: The event; decoding passes over the fields that its type does not have, at any depth.
        change: Given a text, returns what replaces it; empty texts stay as they are.
    """
    return _change_where_unknown(body, msgspec.to_builtins(event, str_keys=True), change)


def _change_where_unknown(value: Any, known: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, dict) and isinstance(known, dict):
        return {
            name: _change_where_unknown(inner, known[name], change) if name in known else _change_all(inner, change)
            for name, inner in value.items()
        }
    if isinstance(value, list) and isinstance(known, list | tuple) and len(value) == len(known):
        return [
            _change_where_unknown(inner, known_item, change) for inner, known_item in zip(value, known, strict=True)
        ]
    return value


def _change_all(value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return change(value) if value else value
    if isinstance(value, dict):
        return {name: _change_all(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_change_all(inner, change) for inner in value]
    return value
