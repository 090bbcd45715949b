"""Marks for settings that never apply above another setting, such as a count above the window that is counted in. Pure.

New settings of that kind are refused. Their types take them, since recorded settings of older logs must stay readable.
"""

import msgspec
from msgspec import inspect

from schemas.intake.error_messages import inspected_type

_KEY = "x-at-most"
"""The mark's key in the JSON Schema of a setting's type."""


def at_most(other: str) -> msgspec.Meta:
    """Mark the type of a setting that never applies while it is above another field of the same struct."""
    return msgspec.Meta(extra_json_schema={_KEY: other})


def unreachable_setting(settings: msgspec.Struct) -> str:
    """Return the first setting that never applies, worded as an error of msgspec's; empty if there is none."""
    kind = inspected_type(type(settings))
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        marks = (field.type.extra_json_schema or {}) if isinstance(field.type, inspect.Metadata) else {}
        if (other := marks.get(_KEY)) is None:
            continue
        value, most = getattr(settings, field.name), getattr(settings, other)
        if value > most:
            return f"{value} is above '{other}', which is {most}: it would never apply - at `$.{field.encode_name}`"
    return ""
