"""Marks for settings that running processes compare measured times with, such as a timeout or a latency budget. Pure.

The result of the comparison is recorded as an event, which a replay reads. So what-if cannot show the effect of another
value.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import inspect

from schemas.event import Milliseconds
from schemas.intake.error_messages import union_members

ReadBy = Literal["alone", "too"]
"""Who reads a setting: running processes alone (``alone``), or decisions as well (``too``)."""

_KEY = "x-measuring"
"""The marks' key in the JSON Schema of a setting's type."""

MEASURED_ALONE = msgspec.Meta(extra_json_schema={_KEY: "alone"})
"""Marks the type of a setting that no decision reads."""

MEASURED_TOO = msgspec.Meta(extra_json_schema={_KEY: "too"})
"""Marks the type of a setting that decisions read as well."""

MeasuredTimeout = Annotated[Milliseconds, MEASURED_ALONE]
"""How long a running process waits before it records what it measures, in milliseconds."""

Budget = Annotated[float, msgspec.Meta(gt=0.0), MEASURED_ALONE]
"""The longest time that a running process accepts for what it measures, in milliseconds."""


def measured_settings(settings: Mapping[str, Any], kind: type[Any]) -> dict[str, ReadBy]:
    """Return which of some settings, nested as ``kind`` is, running processes read: path -> who reads it."""
    return dict(_measured(settings, inspect.type_info(kind), ""))


def _measured(settings: Mapping[str, Any], kind: inspect.Type, path: str) -> Iterator[tuple[str, ReadBy]]:
    for struct in (each for each in union_members(kind) if isinstance(each, inspect.StructType)):
        for field in (each for each in struct.fields if each.encode_name in settings):
            name, value = f"{path}{field.encode_name}", settings[field.encode_name]
            if read_by := _read_by(field.type):
                yield name, read_by
            elif isinstance(value, Mapping):
                yield from _measured(value, field.type, f"{name}.")


def _read_by(kind: inspect.Type) -> ReadBy | None:
    if not isinstance(kind, inspect.Metadata):
        return None
    return (kind.extra_json_schema or {}).get(_KEY) or _read_by(kind.type)
