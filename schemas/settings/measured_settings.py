"""Settings that running processes measure with. What they measured is recorded as a fact, whatever is set now. Pure."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import inspect

from schemas.event import Milliseconds
from schemas.intake.error_messages import union_members

Reading = Literal["alone", "too"]
"""Whether no decision reads a setting, but running processes alone; or they do, too."""

_KEY = "x-measuring"

MEASURED_ALONE = msgspec.Meta(extra_json_schema={_KEY: "alone"})
"""Marks the type of a setting that no decision reads."""

MEASURED_TOO = msgspec.Meta(extra_json_schema={_KEY: "too"})
"""Marks the type of a setting that decisions read as well."""

MeasuredTimeout = Annotated[Milliseconds, MEASURED_ALONE]
"""How long a running process waits until what it measures is a fact, in milliseconds."""

Budget = Annotated[float, msgspec.Meta(gt=0.0), MEASURED_ALONE]
"""What a running process holds measured times against, in milliseconds."""


def measured_settings(settings: Mapping[str, Any], kind: type[Any]) -> dict[str, Reading]:
    """Return those of some settings, by path, that running processes read, nested as their type is."""
    return dict(_measured(settings, inspect.type_info(kind), ""))


def leaf_paths(settings: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of every single value among nested settings."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from leaf_paths(value, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def _measured(settings: Mapping[str, Any], kind: inspect.Type, path: str) -> Iterator[tuple[str, Reading]]:
    for struct in (each for each in union_members(kind) if isinstance(each, inspect.StructType)):
        for field in (each for each in struct.fields if each.encode_name in settings):
            name, value = f"{path}{field.encode_name}", settings[field.encode_name]
            if reading := _reading(field.type):
                yield name, reading
            elif isinstance(value, Mapping):
                yield from _measured(value, field.type, f"{name}.")


def _reading(kind: inspect.Type) -> Reading | None:
    if not isinstance(kind, inspect.Metadata):
        return None
    return (kind.extra_json_schema or {}).get(_KEY) or _reading(kind.type)
