"""Making text safe for a terminal: no control character is left in it. Pure."""

from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def printable(text: str, keep: str = "") -> str:
    """Return a text with a space in place of each character that is not printable and not in ``keep``.

    So escape sequences, and marks that change the direction of writing, have no effect. Offsets stay the same.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else " " for each in text)


def printable_struct(struct: S) -> S:
    """Return a struct with every text in it printable."""
    return msgspec.convert(_clean(msgspec.to_builtins(struct)), type(struct))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_clean(name): _clean(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
