"""Nested values, such as settings: the path of each single value, and one set of values laid over another. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted path of every single value among nested ones, and the value; an empty mapping is one."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    else:
        yield path, value


def overlaid(below: Any, above: Any) -> Any:
    """Return values with others laid over them: mappings are merged key by key, anything else is replaced whole."""
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {**below, **{key: overlaid(below.get(key), value) for key, value in above.items()}}
